"""What is said of a run's facts, by topic: a function for each fact, to be read as text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from kvbench.analysis.means import diagnosis
from kvbench.analysis.means.diagnosis import Choice, Fact
from kvbench.model.annotated import about
from kvbench.report.words import bandwidth, choices, limits, stores, trust


@dataclass(frozen=True, slots=True)
class Sentence:
    """topic: a word to find it by; two sentences may share one."""

    topic: Annotated[str, about("a word to find it by")]
    text: Annotated[str, about("it")]


_SAID: dict[type, tuple[str, Callable[[Any], str]]] = {
    diagnosis.MemoryUntested: ("bandwidth", bandwidth.memory_untested),
    diagnosis.MemoryRate: ("bandwidth", bandwidth.memory_rate),
    diagnosis.L3Untested: ("l3", bandwidth.l3_untested),
    diagnosis.L3Verdict: ("l3", bandwidth.l3_verdict),
    diagnosis.Fit: ("fit", limits.fit),
    diagnosis.ThreadsHelp: ("threads", choices.threads_help),
    diagnosis.ThreadsSuffice: ("threads", choices.threads_suffice),
    diagnosis.Bounds: ("bound", limits.bounds),
    diagnosis.Tokens: ("tokens", limits.tokens),
    diagnosis.PassCost: ("overhead", limits.pass_cost),
    diagnosis.Stores: ("stores", stores.stores),
    diagnosis.Above: ("suspect", trust.above),
    diagnosis.Noise: ("doubt", trust.noise),
    diagnosis.Doubts: ("doubt", trust.doubts),
}


def sentences(facts: Iterable[Fact]) -> tuple[Sentence, ...]:
    return tuple(map(_sentence, facts))


def _sentence(fact: Fact) -> Sentence:
    """A choice is known by what is chosen."""
    topic, say = (fact.factor, choices.choice) if isinstance(fact, Choice) else _SAID[type(fact)]
    return Sentence(topic, say(fact))

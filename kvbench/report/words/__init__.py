"""What is said of a run's facts, by topic: a function for each fact, to be read as text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from kvbench.analysis.diagnosis import Fact
from kvbench.analysis.diagnosis import Sentence as Unmoved
from kvbench.analysis.diagnosis.bandwidth import MemoryRate, MemoryUntested
from kvbench.analysis.diagnosis.l3 import L3Untested, L3Verdict
from kvbench.model.annotated import about
from kvbench.report.words import bandwidth


@dataclass(frozen=True, slots=True)
class Sentence:
    """topic: a word to find it by; two sentences may share one."""

    topic: Annotated[str, about("a word to find it by")]
    text: Annotated[str, about("it")]


_SAID: dict[type, tuple[str, Callable[[Any], str]]] = {
    MemoryUntested: ("bandwidth", bandwidth.memory_untested),
    MemoryRate: ("bandwidth", bandwidth.memory_rate),
    L3Untested: ("l3", bandwidth.l3_untested),
    L3Verdict: ("l3", bandwidth.l3_verdict),
}


def sentences(facts: Iterable[Fact]) -> tuple[Sentence, ...]:
    return tuple(map(_sentence, facts))


def _sentence(fact: Fact) -> Sentence:
    if isinstance(fact, Unmoved):
        return Sentence(fact.topic, fact.text)
    topic, say = _SAID[type(fact)]
    return Sentence(topic, say(fact))

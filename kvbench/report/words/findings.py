"""What a run says beyond its first screen: sentences by topic. Each sentence shows an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.means.findings import Findings
from kvbench.model import Check
from kvbench.model.annotated import about
from kvbench.report.words import said as words
from kvbench.report.words.first import kernel, layout


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a report. Several sentences may have one topic."""

    topic: Annotated[str, about("a word for the topic")]
    text: Annotated[str, about("the sentence")]


def sentences(found: Findings) -> tuple[Sentence, ...]:
    """All sentences of a run. Topics without an answer are left out."""
    own = found.answers
    told = layout(own)  # the first screen has it
    chosen = [each for each in own.factors.choices if each.op == "decode" and each is not told]
    said = [
        ("mixed", words("mixed", "sentence", own.mixed)),
        ("scores", words("mixed", "scores", own.mixed)),
        ("speculate", words("speculate", "sentence", own.speculation)),
        ("latency", words("latency", "sentence", own.latency, own.virtual)),
        ("serve", words("serve", "sentence", own.serving)),
        ("peers", words("peers", "summary", found.beside) if len(found.peers) else ""),
        *((each.factor, _said("choice", each)) for each in chosen),
        ("threads", _said("teams", own.factors.threads, named(found))),
        ("prefetch", _said("prefetch", own.prefetch)),
        ("stores", _said("storing", own.storing, named(found))),
        ("between", _said("left", own.l3.families, own.workload)),
        ("step", words("step", "summary", own.steps)),
        ("fits", _said("fits", own.l3, own.workload)),
        ("servers", _said("servers", own.servers)),
        ("suspect", _said("suspects", own.trust)),
        ("open", words("gaps", "nearest", found.open, own.trust.launches)),
        ("doubt", _said("trust", own.trust)),
        ("checks", warnings(found.checks)),
    ]
    return tuple(Sentence(topic, text) for topic, text in said if text)


def _said(name: str, *facts: object) -> str:
    return words("findings", name, *facts)


def named(found: Findings) -> dict[str, str]:
    """Short names of points. The fastest point of each dtype is named by its kernel."""
    short = dict(zip(found.points["name"], found.points["short"], strict=True))
    return short | {row.point: kernel(row) for row in found.answers.decodes.rows}


def warnings(checks: Sequence[Check]) -> str:
    """The sentence on checks of the preflight that warned."""
    warned = [f"{check.name} ({check.value})" for check in checks if check.status == "warn"]
    return _said("checks", warned)

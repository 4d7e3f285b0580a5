"""What a run says of its machine, in sentences by topic. What it has nothing to say of is left out; but that memory or L3
was not tested is said."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.means.findings import Findings
from kvbench.model import OURS
from kvbench.model.annotated import about
from kvbench.report.words import bandwidth, choices, limits, stores, trust


@dataclass(frozen=True, slots=True)
class Sentence:
    """topic: a word to find it by; two sentences may share one."""

    topic: Annotated[str, about("a word to find it by")]
    text: Annotated[str, about("it")]


def sentences(found: Findings) -> tuple[Sentence, ...]:
    points = found.points[found.points["engine"] == OURS]
    said = [
        ("bandwidth", bandwidth.memory(points)),
        ("l3", bandwidth.l3(points, found.machine)),
        *((factor, choices.choice(found.overall, factor)) for factor in choices.FASTEST),
        ("fit", limits.fit(found.fits)),
        ("threads", choices.threads(found.saturation, points, found.contrasts)),
        ("bound", limits.bounds(points)),
        ("tokens", limits.tokens(found.tokens)),
        ("overhead", limits.overhead(found.scaling)),
        ("stores", stores.stores(points, found.breakeven)),
        ("suspect", trust.above(points)),
        ("doubt", trust.noise(points)),
        ("doubt", trust.warnings(found.checks)),
    ]
    return tuple(Sentence(topic, text) for topic, text in said if text)

"""Sentences on what a run's numbers should be trusted with."""

from kvbench.analysis.means.diagnosis.trust import Above, Doubts, Noise, Slow
from kvbench.report.words.phrases import listed
from kvbench.units import counted

_WARNINGS = 6  # that a sentence names


def above(fact: Above) -> str:
    said = f"{fact.count} of {counted(fact.points, 'point')} exceed what should bound them"
    example = f"For example {fact.name} exceeds its {fact.roof}"
    if not fact.unexplained:
        return f"{said}, all with an explanation. {example}: {fact.reason}."
    return f"{said}, {fact.unexplained} without an explanation: suspect. {example}: perhaps {fact.reason}."


def noise(fact: Noise) -> str:
    points = counted(fact.points, "point")
    if fact.spread is None:
        said = ["The noise is unknown: no point has more than one launch"]
    else:
        said = [
            f"Noise between launches: half of the points vary by {fact.spread:.1%} of their time or less, nine in ten by "
            f"{fact.most:.1%} of it or less"
        ]
    if fact.unstable:
        said.append(f"{fact.unstable} of {points} jump between launches")
    if fact.disturbed:
        said.append(f"{fact.disturbed:.1%} of the samples met other work")
    if fact.uneven:
        said.append(f"Launches of {counted(fact.uneven, 'point')} are in no ratio: their samples differ in length")
    if fact.slow:
        said.append(_slow(fact.slow))
    if fact.failed:
        said.append(f"Launches failed at {fact.failed} of {points}")
    return f"{'. '.join(said)}."


def _slow(fact: Slow) -> str:
    said = f"Cores ran at {fact.speed:.0%} of their speed during {fact.count} of {counted(fact.visits, 'visit')}"
    if fact.aside == fact.count:
        return f"{said}, which are set aside"
    return f"{said}, of which {fact.aside or 'none'} are set aside: too few others are left"


def doubts(fact: Doubts) -> str:
    return f"Doubts about the machine: {listed((f'{name} ({value})' for name, value in fact.checks), _WARNINGS)}."

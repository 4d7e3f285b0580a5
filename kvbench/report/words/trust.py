"""Sentences on how far to trust a run's numbers."""

from collections.abc import Iterator

from kvbench.analysis.means.diagnosis.trust import Above, Doubts, Noise, Slow
from kvbench.report.words.phrases import listed
from kvbench.units import counted

_WARNINGS = 6  # that a sentence names


def above(fact: Above) -> str:
    said = f"{fact.count} of {counted(fact.points, 'point')} are faster than what should limit them"
    example = f"{fact.name} exceeds its {fact.roof}"
    if not fact.unexplained:
        return f"{said}, all for a known reason. Example: {example}: {fact.reason}."
    return (
        f"{said}, {fact.unexplained} for no known reason: suspect. Example: {example}, perhaps because {fact.reason}."
    )


def noise(fact: Noise) -> str:
    return f"{'. '.join(_noise(fact))}."


def _noise(fact: Noise) -> Iterator[str]:
    points = counted(fact.points, "point")
    if fact.spread is None or fact.most is None:
        yield "Noise is unknown: no point has more than one launch"
    else:
        yield f"Noise: a typical point varied by {fact.spread:.0%} of its time between launches"
        yield f"One point in ten varied by {fact.most:.0%} of its time or more"
    if fact.unstable:
        yield f"{fact.unstable} of {points} {'is' if fact.unstable == 1 else 'are'} unstable"
    if fact.disturbed:
        yield f"Other work disturbed {fact.disturbed:.1%} of the samples"
    if fact.uneven:
        yield f"{counted(fact.uneven, 'point')} cannot be compared launch by launch: their samples differ in length"
    if fact.slow:
        yield _slow(fact.slow)
    if fact.failed:
        yield f"{fact.failed} of {points} failed in a launch or more"


def _slow(fact: Slow) -> str:
    said = f"The cores ran at {fact.speed:.0%} of their speed in {fact.count} of {counted(fact.visits, 'visit')}"
    if fact.aside == fact.count:
        return f"{said}, which are left out"
    return f"{said}; {fact.aside or 'none'} of these are left out, for too few others remain"


def doubts(fact: Doubts) -> str:
    return (
        f"What may have disturbed the run: {listed((f'{name} ({value})' for name, value in fact.checks), _WARNINGS)}."
    )

"""What holds for a comparison as a whole, in sentences."""

import math
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from kvbench.analysis.compare.limits import LIMITS, Effects
from kvbench.analysis.compare.ranks import COVERAGE, shift
from kvbench.analysis.compare.side import Side
from kvbench.analysis.compare.views import CEILING, SECONDS, WITNESS, Views, together
from kvbench.analysis.launches import complete
from kvbench.model import Judged
from kvbench.model.verdict import INCONCLUSIVE
from kvbench.units import counted


def notes(
    base: Side,
    head: Side,
    seen: Sequence[Views],
    points: Sequence[Judged],
    families: Sequence[Judged],
    enough: Effects,
) -> Iterator[str]:
    yield from _identity(base, head)
    yield from _launches(base, head)
    yield (
        "the effect is the share of base's time by which head takes longer beside its witness (twin or copy), measured "
        "in the same rounds, so that a machine that is slower for both is no part of it; a change must show in seconds "
        "too, less what the launches of a run show its witness to share"
        if base.same(head, "environment")
        else _elsewhere()
    )
    yield from _machine(seen)
    yield enough.note
    yield (
        f"tested by launch medians: exact Mann-Whitney, Benjamini-Hochberg (q) at {LIMITS.rate:.0%} over "
        f"{counted(len(families), 'test')} of families and over {counted(len(seen), 'test')} of points; "
        f"the same: the {COVERAGE:.0%} interval of the effect lies within {LIMITS.same:.0%} of base's time"
    )
    yield from _unclear(points, "points")
    yield from _unclear(families, "families")


def _elsewhere() -> str:
    return (
        "the environments differ (kernel, microcode, limits or allowed CPUs), so seconds are not compared: the effect is "
        "the share of base's time by which head takes longer beside its witness (twin or copy) of the same rounds"
    )


def _identity(base: Side, head: Side) -> Iterator[str]:
    if base.same(head, "build"):
        yield "both runs are of one build: what differs between them is noise, or what it ran on"
    if not base.same(head, "suite"):
        yield "the runs are of different suites, or of versions of one: only points that both have are compared"


def _launches(base: Side, head: Side) -> Iterator[str]:
    """Where a run is not whole."""
    for word, side in (("base", base), ("head", head)):
        failed = sum(not complete(record) for record in side.records)
        if failed:
            yield f"{counted(failed, 'visit')} of {word} failed"


def _machine(seen: Sequence[Views]) -> Iterator[str]:
    """Whether what both runs measured of the machine itself moved, over all points."""
    for view, what in ((CEILING, "the run's own ceilings"), (WITNESS, "witnesses"), (SECONDS, "points")):
        own = [views for views in seen if view in views]
        if not own:
            continue
        found = shift(*(np.array(list(side.values())) for side in together([views[view] for views in own])))
        if found.low > 0 or found.high < 0:
            low, high = math.expm1(found.low), math.expm1(found.high)
            took = f"{math.expm1(found.estimate):+.1%} of base's time in head ({low:+.1%} to {high:+.1%})"
            yield f"as a median over points, {what} took {took}" + ("" if view == SECONDS else ": the machine changed")


def _unclear(rows: Sequence[Judged], what: str) -> Iterator[str]:
    unclear = [row for row in rows if row.verdict == INCONCLUSIVE]
    if not unclear:
        return
    seen = [row.detectable for row in unclear if row.detectable is not None]
    said = f"{len(unclear)} of {len(rows)} {what} are not clear by themselves"
    if not seen:
        yield f"{said}: launches are too few for one alone to stand out"
    else:
        some = "" if len(seen) == len(unclear) else f" ({len(unclear) - len(seen)}: none)"
        yield (
            f"{said}: a slowdown of one alone would have been seen, {LIMITS.power:.0%} of the time, from "
            f"{min(seen):.1%} to {max(seen):.1%} of base's time on, half of them from {median(seen):.1%}{some}"
        )

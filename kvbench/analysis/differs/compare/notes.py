"""What holds for a comparison as a whole, in sentences."""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from kvbench.analysis.differs.compare.effects import Effects
from kvbench.analysis.differs.compare.side import Side
from kvbench.analysis.differs.compare.views import CEILING, SECONDS, WITNESS, Views, together
from kvbench.analysis.differs.compare.words import between
from kvbench.analysis.judge import COVERAGE, LIMITS, fewest
from kvbench.model import Judged
from kvbench.model.verdict import INCONCLUSIVE
from kvbench.units import counted

ADVISED = 12  # launches of each side: one point of fifty that takes 5 % longer is found nine times of ten


def notes(
    base: Side,
    head: Side,
    seen: Sequence[Views],
    points: Sequence[Judged],
    families: Sequence[Judged],
    enough: Effects,
) -> tuple[str, ...]:
    found = (
        _identity(base, head),
        _machine(seen),
        [enough.note],
        [
            f"tested by launch medians: exact Mann-Whitney, Benjamini-Hochberg (q) at {LIMITS.rate:.0%} over "
            f"{counted(len(families), 'test')} of families and over {counted(len(seen), 'test')} of points; "
            f"the same: the {COVERAGE:.0%} interval of the effect lies within {LIMITS.same:.0%} of base's time"
        ],
        _unclear(points, "points"),
        _unclear(families, "families"),
    )
    return tuple(line for lines in found for line in lines)


def _identity(base: Side, head: Side) -> Iterator[str]:
    if base.same(head, "build"):
        yield "both runs are of one build: what differs between them is noise, or what it ran on"
    if not base.same(head, "suite"):
        yield "the runs are of different suites, or of versions of one: only points that both have are compared"
    for word, side in (("base", base), ("head", head)):
        if failed := sum(bool(record.error) for record in side.records):
            yield f"{counted(failed, 'visit')} of {word} failed"
    effect = "the effect is the share of base's time by which head takes longer beside its witness (twin or copy)"
    if base.same(head, "environment"):
        yield (
            f"{effect}, measured in the same rounds, so that a machine that is slower for both is no part of it; a "
            "change must show in seconds too"
        )
    else:
        yield (
            "the environments differ (kernel, microcode, limits or allowed CPUs), so seconds are not compared: "
            f"{effect} of the same rounds"
        )


def _machine(seen: Sequence[Views]) -> Iterator[str]:
    """Whether what both runs measured of the machine itself moved, over all points."""
    for view, what in ((CEILING, "the run's own ceilings"), (WITNESS, "witnesses"), (SECONDS, "points")):
        own = [views[view] for views in seen if view in views]
        if own and (found := between(*together(own))).way:
            effect, low, high = (math.expm1(float(each)) for each in found[:3])
            took = f"{effect:+.1%} of base's time in head ({low:+.1%} to {high:+.1%})"
            yield f"as a median over points, {what} took {took}" + ("" if view == SECONDS else ": the machine changed")


def _unclear(rows: Sequence[Judged], what: str) -> Iterator[str]:
    unclear = [row for row in rows if row.verdict == INCONCLUSIVE]
    if not unclear:
        return
    seen = [row.detectable for row in unclear if row.detectable is not None]
    said = f"{len(unclear)} of {len(rows)} {what} are not clear by themselves"
    if not seen:
        base, head = (max(own) for own in zip(*(row.launches for row in unclear), strict=True))
        yield (
            f"{said}: {counted(base, 'launch')} against {head} show no change of one alone, however large; it takes {fewest(len(rows))} a side, and "
            f"{ADVISED} to find 5% on a quiet machine: kvbench sweep --launches {ADVISED}, or kvbench gate"
        )
    else:
        some = "" if len(seen) == len(unclear) else f" ({len(unclear) - len(seen)}: none)"
        yield (
            f"{said}: a slowdown of one alone would have been seen, {LIMITS.power:.0%} of the time, from "
            f"{min(seen):.1%} to {max(seen):.1%} of base's time on, half of them from {median(seen):.1%}{some}"
        )

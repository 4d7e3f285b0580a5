"""What holds for a comparison of two runs as a whole, in sentences."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from kvbench.analysis.differs.compare import LIMITS, SECONDS, WITNESS, Effects, Terms
from kvbench.analysis.judge import COVERAGE, fewest
from kvbench.analysis.judge import LIMITS as JUDGED
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import INCONCLUSIVE, NOT_COMPARABLE
from kvbench.units import counted

ADVISED = 12  # launches of each side: one point of fifty that takes 5 % longer is found nine times of ten
_NAMES = {WITNESS: "witnesses", SECONDS: "points"}  # of views; another is called what it is


def told(found: Comparison, terms: Terms) -> Comparison:
    """With its notes."""
    points = [row for row in found.points if row.verdict != NOT_COMPARABLE]
    tests = (
        f"tested by launch medians: exact Mann-Whitney, Benjamini-Hochberg (q) at {JUDGED.rate:.0%} over "
        f"{counted(len(found.families), 'test')} of families and over {counted(len(points), 'test')} of points; "
        f"the same: the {COVERAGE:.0%} interval of the effect lies within {JUDGED.same:.0%} of base's time"
    )
    unclear = (*_unclear(points, "points"), *_unclear(found.families, "families"))
    return replace(found, notes=(*_identity(terms), *_machine(terms), effects(terms.effects), tests, *unclear))


def _identity(terms: Terms) -> Iterator[str]:
    if "build" not in terms.differ:
        yield "both runs are of one build: what differs between them is noise, or what it ran on"
    if "suite" in terms.differ:
        yield "the runs are of different suites, or of versions of one: only points that both have are compared"
    for word, failed in zip(("base", "head"), terms.failed, strict=True):
        if failed:
            yield f"{counted(failed, 'visit')} of {word} failed"
    effect = "the effect is the share of base's time by which head takes longer beside its witness (twin or copy)"
    if "environment" not in terms.differ:
        yield (
            f"{effect}, measured in the same rounds, so that a machine that is slower for both is no part of it; a "
            "change must show in seconds too"
        )
    else:
        yield (
            "the environments differ (kernel, microcode, limits or allowed CPUs), so seconds are not compared: "
            f"{effect} of the same rounds"
        )


def _machine(terms: Terms) -> Iterator[str]:
    for view, found in terms.moved:
        effect, low, high = (math.expm1(float(each)) for each in found[:3])
        took = f"{effect:+.1%} of base's time in head ({low:+.1%} to {high:+.1%})"
        what = _NAMES.get(view, f"{view}s")
        yield f"as a median over points, {what} took {took}" + ("" if view == SECONDS else ": the machine changed")


def effects(found: Effects) -> str:
    why = "as asked, and" if found.asked else "careful, for"
    why += " no runs of one build have shown this machine's noise"
    if found.learned:
        pairs = f"{counted(found.learned.pairs, 'comparison')} of one build with itself"
        why = f"at least {LIMITS.above_noise:g} times what {LIMITS.hardly:.0%} of {pairs} stay below"
    points = f"{found.beyond:.1%}"
    if found.cached != found.beyond:
        points = f"{found.cached:.1%} in private caches and {points} beyond them"
    said = f"smallest effect that is called a change, as a share of base's time: {points} for a point, "
    return f"{said}{found.family:.1%} for a family; {why}"


def _unclear(rows: Sequence[Judged], what: str) -> Iterator[str]:
    unclear = [row for row in rows if row.verdict == INCONCLUSIVE]
    if not unclear:
        return
    seen = [row.detectable for row in unclear if row.detectable is not None]
    said = f"{len(unclear)} of {len(rows)} {what} are not clear by themselves"
    if not seen:
        base, head = (max(own) for own in zip(*(row.launches for row in unclear), strict=True))
        yield (
            f"{said}: {counted(base, 'launch')} against {head} show no change of one alone, however large; it takes "
            f"{fewest(len(rows))} a side, and {ADVISED} to find 5% on a quiet machine: kvbench sweep --launches "
            f"{ADVISED}, or kvbench gate"
        )
    else:
        some = "" if len(seen) == len(unclear) else f" ({len(unclear) - len(seen)}: none)"
        yield (
            f"{said}: a slowdown of one alone would have been seen, {JUDGED.power:.0%} of the time, from "
            f"{min(seen):.1%} to {max(seen):.1%} of base's time on, half of them from {median(seen):.1%}{some}"
        )

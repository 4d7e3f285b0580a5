"""Compare base and head: each point, each family, and overall."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

import numpy as np

from kvbench.analysis.differs.compare import views, words
from kvbench.analysis.differs.compare.side import Side, refuse, unusable
from kvbench.analysis.differs.compare.views import (
    BESIDE,
    CEILING,
    MACHINE,
    SECONDS,
    WITNESS,
    Both,
    Views,
)
from kvbench.analysis.differs.compare.words import LIMITS, Effects, Floor, Viewed, between, effects
from kvbench.analysis.judge import Difference, family, incomparable, whole, worst_first
from kvbench.errors import NotComparable
from kvbench.grouping import grouped
from kvbench.model import Comparison, Engine, Judged, Point
from kvbench.model.chases import NONE
from kvbench.model.engine import differing
from kvbench.model.tuning import rescheduled
from kvbench.units import gbps


@dataclass(frozen=True, slots=True)
class _Seen:
    """A point that both runs measured."""

    point: Point
    regime: str
    views: Views
    seconds: Both  # logarithms
    bytes_compulsory: float  # of a pass
    rescheduled: str

    @property
    def family(self) -> str:
        return family(self.point, self.regime)

    @property
    def place(self) -> tuple[tuple[int, ...], bool]:
        return tuple(sorted(self.point.cpus)), self.regime == "DRAM"


@dataclass(frozen=True, slots=True)
class Terms:
    """The conditions of a comparison.

    differ: identities that are not equal. failed: visits that failed in base and in head. moved:
    the views of the machine, and of seconds, that differ over all points. engines: engines that
    come from different libraries in base and in head. chased: whether a thread chases beside any
    point.
    """

    differ: frozenset[str]
    failed: tuple[int, int]
    moved: tuple[tuple[str, Difference], ...]
    effects: Effects
    engines: tuple[tuple[Engine, Engine], ...] = ()
    chased: bool = False


def compare(
    base: Side,
    head: Side,
    created: str,
    smallest: float | None = None,
    learned: Floor | None = None,
) -> tuple[Comparison, Terms]:
    """Compare two runs. The notes are left empty: they are made from the terms.

    smallest: the smallest effect that is called a change, as a share of base's time. learned: noise
    that A/A runs showed.
    """
    enough, (seen, lost) = effects(smallest, learned), _seen(base, head)
    if not seen:
        first = lost[0]
        raise NotComparable(
            f"no point that both runs have can be compared; the first of {len(lost)}:"
            f" {first.name}: {first.note}",
            "measure them again",
        )
    points, families = map(words.judged, _viewed(seen, enough))
    notes_of = (
        "; ".join(filter(None, [each.rescheduled, row.note]))
        for row, each in zip(points, seen, strict=True)
    )
    points = [replace(row, note=note) for row, note in zip(points, notes_of, strict=True)]
    differ = frozenset(
        what for what in ("build", "suite", "environment") if not base.same(head, what)
    )
    one, other = (sum(bool(record.error) for record in side.records) for side in (base, head))
    points += lost
    sides = ((base, head.names, "base"), (head, base.names, "head"))
    missing = (
        *(
            f"{p.name}: only {word} has it"
            for own, others, word in sides
            for p in own.planned
            if p.name not in others
        ),
        *(f"{each.name}: {each.note}" for each in lost),
    )
    said = whole(points, families), worst_first(points), worst_first(families), missing
    found = Comparison("compare", base.run, head.run, base.named, created, *said, notes=())
    return found, Terms(
        differ,
        (one, other),
        tuple(_moved(seen)),
        enough,
        differing(base.engines, head.engines),
        any(each.point.chase != NONE for each in seen),
    )


def _moved(seen: Sequence[_Seen]) -> Iterator[tuple[str, Difference]]:
    """The views of the machine, and of the points' seconds, that changed over all points."""
    for view in (CEILING, WITNESS, SECONDS):
        own = [each.views[view] for each in seen if view in each.views]
        if own and (found := between(*views.together(own))).way:
            yield view, found


def learn(runs: Sequence[Side]) -> Floor:
    """Learn the noise from runs of one build: the shift that hardly any point, or family, of any
    two of these runs exceeds, times a margin.
    """
    found: tuple[list[float], ...] = [], []  # shifts of points, and of families
    pairs = list(combinations(runs, 2))
    for base, head in pairs:
        if not base.same(head, "build"):
            raise NotComparable(
                f"runs {base.run} and {head.run} are of two builds, but noise is learned from runs"
                " of one",
                "name runs of base's build",
            )
        seen, _ = _seen(base, head)
        if not seen:
            raise NotComparable(
                f"runs {base.run} and {head.run} have no comparable point: they show no noise",
                "measure them again",
            )
        for shifts, rows in zip(found, _viewed(seen, effects(None, None)), strict=True):
            shifts += [row.found.share for row in rows]
    points, families = (
        LIMITS.above_noise * float(np.quantile(shifts, LIMITS.hardly)) for shifts in found
    )
    return Floor(points, families, len(pairs))


def _seen(base: Side, head: Side) -> tuple[list[_Seen], list[Judged]]:
    """The points that both runs were to measure: those that can be compared, and those that
    cannot.
    """
    refuse(base, head)
    there, of_base, of_head = head.names, base.visits(), head.visits()
    probes = views.probed(base.records, head.records)
    alike = base.same(head, "environment")
    found: list[_Seen] = []
    lost: list[Judged] = []
    for point in (point for point in base.planned if point.name in there):
        own = of_base.get(point.name, []), of_head.get(point.name, [])
        regime, footprint, why = "unknown", 0.0, unusable(*own)
        if good := next((each for each in (*own[0], *own[1]) if each.complete), None):
            regime, footprint = good.level, good.footprint
        one, other = map(views.by_launch, own)
        looked = {} if why else views.of_point(point, footprint, one, other, probes)
        if looked and not alike and BESIDE not in looked:
            why = "the environments differ, and the point has no witness"
        if why:
            lost.append(incomparable(point.name, family(point, regime), why))
            continue
        seconds = looked[SECONDS] if alike else looked.pop(SECONDS)
        first, second = (each[0] for each in own)
        again = rescheduled(first.ran, second.ran)
        moved = first.traffic["point"].bytes_compulsory
        found.append(_Seen(point, regime, looked, seconds, moved, again))
    return found, lost


def _viewed(seen: Sequence[_Seen], enough: Effects) -> tuple[list[Viewed], list[Viewed]]:
    points, families = [], []
    for each in seen:
        base, head = (math.exp(median(side.values())) for side in each.seconds)
        rates = gbps(each.bytes_compulsory, base), gbps(each.bytes_compulsory, head)
        looked, least = each.views | _around(seen, [each]), enough.of(each.regime)
        point = words.viewed(each.point.name, each.family, looked, least)
        points.append(replace(point, seconds=(base, head), gbps=rates))
    for name, own in grouped((each.family, each) for each in seen).items():
        looked = views.of_family([each.views for each in own]) | _around(seen, own)
        told = LIMITS.told_family if len(own) >= LIMITS.several else LIMITS.told
        families.append(words.viewed(name, name, looked, enough.family, told))
    return points, families


def _around(seen: Sequence[_Seen], own: Sequence[_Seen]) -> Views:
    """The view MACHINE: the witnesses of all points on the same CPUs and level."""
    places = {each.place for each in own}
    alike = [each.views[WITNESS] for each in seen if each.place in places and WITNESS in each.views]
    return {MACHINE: views.together(alike)} if alike else {}

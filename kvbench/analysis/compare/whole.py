"""Base and head held against each other: each point, each family, and the whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from kvbench.analysis.compare import views
from kvbench.analysis.compare.around import Around
from kvbench.analysis.compare.judge import Tested, incomparable, judged, middle, tested
from kvbench.analysis.compare.limits import LIMITS, Effects, Floor, effects, floor
from kvbench.analysis.compare.notes import notes
from kvbench.analysis.compare.side import Side, common, missing, refuse, unusable
from kvbench.analysis.compare.views import BESIDE, MACHINE, SECONDS, WITNESS, Both, Views
from kvbench.analysis.launches import complete
from kvbench.errors import NotComparable
from kvbench.model import Comparison, Judged, Machine, Point, Record
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    IMPROVEMENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
    WORDS,
)
from kvbench.regime import classify
from kvbench.units import gbps


@dataclass(frozen=True, slots=True)
class _Seen:
    """A point that both runs measured."""

    point: Point
    regime: str
    views: Views
    seconds: Both
    compulsory: float  # bytes of a pass

    @property
    def family(self) -> str:
        return family(self.point, self.regime)

    @property
    def place(self) -> tuple[tuple[int, ...], bool]:
        return tuple(sorted(self.point.cpus)), self.regime == "DRAM"


def compare(
    base: Side,
    head: Side,
    created: str,
    smallest: float | None = None,
    learned: Floor | None = None,
    command: str = "compare",
) -> Comparison:
    """`smallest`: effect that is called a change, a share of base's time. `learned`: what A/A runs showed."""
    refuse(base, head)
    enough = effects(smallest, learned)
    seen, lost = _seen(base, head)
    if not seen:
        first = lost[0]
        what = f"of {len(lost)} points that both runs have, none can be compared; the first: {first.name}: {first.note}"
        raise NotComparable(what, "measure them again")
    points, families = _judged(seen, enough)
    points += lost
    return Comparison(
        command=command,
        base=base.run,
        head=head.run,
        machine=base.named,
        created=created,
        verdict=verdict(points, families),
        points=worst_first(points),
        families=worst_first(families),
        missing=(*missing(base, head), *(f"{each.name}: {each.note}" for each in lost)),
        notes=tuple(notes(base, head, [each.views for each in seen], points, families, enough)),
    )


def learn(runs: Sequence[Side]) -> Floor:
    """From two runs of one build or more: what every two of them seem to differ by."""
    points: list[Judged] = []
    families: list[Judged] = []
    pairs = list(combinations(runs, 2))
    for base, head in pairs:
        refuse(base, head)
        if not base.same(head, "build"):
            what = f"runs {base.run} and {head.run} are of two builds, and noise is learned from runs of one"
            raise NotComparable(what, "name runs of base's build")
        seen, _ = _seen(base, head)
        if not seen:
            what = f"of runs {base.run} and {head.run} no point can be compared: they show no noise"
            raise NotComparable(what, "measure them again")
        for found, own in zip((points, families), _judged(seen, effects(None, None)), strict=True):
            found.extend(own)
    return floor((each.effect for each in points), (each.effect for each in families), len(pairs))


def verdict(points: Sequence[Judged], families: Sequence[Judged]) -> str:
    """Any change counts, of a point or of a family. What is the same, or not clear, families say: there noise of single
    points is gone. A point that head lost is not clear whatever the others say."""
    words = {each.verdict for each in (*points, *families)}
    for word in (REGRESSION, CONTAMINATED):
        if word in words:
            return word
    own = {each.verdict for each in families}
    if not own <= {EQUIVALENT, IMPROVEMENT} or NOT_COMPARABLE in words:
        return INCONCLUSIVE
    return IMPROVEMENT if IMPROVEMENT in words else EQUIVALENT


def family(point: Point, regime: str) -> str:
    """A kernel on any tier, where its data is: a change to one of these is likely to be one to all its points."""
    kernel = f"{point.op}.{point.variant}.{point.layout}.{point.dtype}"
    return f"{kernel} {regime}" if regime in ("DRAM", "unknown") else f"{kernel} caches"


# ---- points and families ---------------------------------------------------------------------------------------------


def _seen(base: Side, head: Side) -> tuple[list[_Seen], list[Judged]]:
    """Points that can be compared, and those that cannot."""
    of_base, of_head = base.visits(), head.visits()
    around = Around.of(base.records, head.records)
    alike = base.same(head, "environment")
    found: list[_Seen] = []
    lost: list[Judged] = []
    for point in common(base, head):
        own = of_base.get(point.name, []), of_head.get(point.name, [])
        regime, footprint = _where(point, base.machine, [*own[0], *own[1]])
        why = unusable(*own)
        looked = {} if why else views.of_point(point, footprint, *map(views.by_launch, own), around)
        if looked and not alike and BESIDE not in looked:
            why = "the environments differ, and no witness was measured beside it"
        if why:
            lost.append(incomparable(point.name, family(point, regime), why))
            continue
        seconds = looked[SECONDS] if alike else looked.pop(SECONDS)
        found.append(_Seen(point, regime, looked, seconds, own[0][0].traffic["point"].compulsory))
    return found, lost


def _where(point: Point, machine: Machine, records: Sequence[Record]) -> tuple[str, float]:
    """The regime, and the bytes that are walked."""
    record = next(filter(complete, records), None)
    if record is None:
        return "unknown", 0.0
    footprint = record.layers * record.traffic["point"].line
    return classify(machine, point.cpus, footprint, evicted=point.residency == "evicted").word, footprint


def _judged(seen: Sequence[_Seen], enough: Effects) -> tuple[list[Judged], list[Judged]]:
    members: dict[str, list[_Seen]] = {}
    for each in seen:
        members.setdefault(each.family, []).append(each)
    points = [_tested(each, _around(seen, [each]), enough.of(each.regime)) for each in seen]
    families = []
    for name, own in members.items():
        looked = views.of_family([each.views for each in own]) | _around(seen, own)
        families.append(tested(name, name, looked, enough.family, _told(own)))
    return judged(points), judged(families)


def _around(seen: Sequence[_Seen], own: Sequence[_Seen]) -> Views:
    """What the witnesses of all points that are where these are say of the machine."""
    places = {each.place for each in own}
    alike = [each.views[WITNESS] for each in seen if each.place in places and WITNESS in each.views]
    return {MACHINE: views.together(alike)} if alike else {}


def _told(members: Sequence[_Seen]) -> float:
    return LIMITS.told_family if len(members) >= LIMITS.several else LIMITS.told


def _tested(seen: _Seen, around: Views, smallest: float) -> Tested:
    seconds = tuple(middle(side) for side in seen.seconds)
    rates = tuple(gbps(seen.compulsory, each) for each in seconds)
    return tested(seen.point.name, seen.family, seen.views | around, smallest, gbps=rates, seconds=seconds)


def worst_first(rows: Sequence[Judged]) -> tuple[Judged, ...]:
    """Worst first."""
    return tuple(sorted(rows, key=lambda row: (WORDS.index(row.verdict), -(row.effect or 0.0), row.name)))

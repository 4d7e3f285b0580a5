"""What the launches of a stage say: who is a candidate for a change, and whether fresh launches confirm it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from kvbench.analysis.chances import q_values
from kvbench.analysis.compare.whole import family
from kvbench.analysis.paired.limits import LIMITS
from kvbench.analysis.paired.series import Duel
from kvbench.analysis.paired.signs import Middle, middle
from kvbench.model import Machine
from kvbench.regime import classify

SLOWER, FASTER = "slower", "faster"
_Series = Mapping[int, float]  # by launch


@dataclass(frozen=True, slots=True)
class Row:
    """A point or a family in one stage. `beside`: the same of the witnesses that no build has touched.

    q: of the two ways, after Benjamini and Hochberg over the rows of the level. `smallest`: effect that is a change.
    """

    name: str
    family: str
    members: tuple[Duel, ...]
    found: Middle
    beside: Middle
    smallest: float
    q: dict[str, float]

    @property
    def key(self) -> tuple[str, int]:
        """A family that lost a member is not the same row."""
        return self.name, len(self.members)

    @property
    def candidate(self) -> str:
        """Which way it seems to have changed; "" if none."""
        for way in (SLOWER, FASTER):
            if self.q[way] <= LIMITS.screen and self.share >= self.smallest:
                return way
        return ""

    @property
    def share(self) -> float:
        """Of base's time, either way."""
        return abs(math.expm1(self.found.estimate))

    @property
    def same(self) -> bool:
        low, high = math.expm1(self.found.low), math.expm1(self.found.high)
        return bool(-LIMITS.same < low and high < LIMITS.same)


@dataclass(frozen=True, slots=True)
class Screened:
    """All points and families of a stage that something can be said of, and the points of which nothing can: `lost`."""

    points: tuple[Row, ...]
    families: tuple[Row, ...]
    lost: tuple[Duel, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        return (*self.points, *self.families)

    @property
    def candidates(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.candidate)

    @property
    def unclear(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.candidate and not row.same)


def screened(found: Iterable[Duel], machine: Machine) -> Screened:
    duels = tuple(found)
    sound = [duel for duel in duels if not (duel.fault or duel.few)]
    members: dict[str, list[Duel]] = {}
    for duel in sound:
        members.setdefault(_family(duel, machine), []).append(duel)
    points = _rows([(duel.point.name, _family(duel, machine), (duel,)) for duel in sound])
    families = _rows([(name, name, tuple(own)) for name, own in members.items()])
    return Screened(points, families, tuple(duel for duel in duels if duel.fault or duel.few))


def _family(duel: Duel, machine: Machine) -> str:
    point = duel.point
    return family(point, classify(machine, point.cpus, duel.footprint, evicted=point.residency == "evicted").word)


def confirmed(candidates: Sequence[Row], fresh: Screened) -> dict[str, bool]:
    """By name, of candidates of all levels together. What the fresh launches could not measure is not confirmed."""
    rows, anew = {row.name: row for row in candidates}, again(fresh)
    found = {name: anew[row.key] for name, row in rows.items() if row.key in anew}
    chances = _hochberg({name: float(getattr(each.found, rows[name].candidate)) for name, each in found.items()})
    sure = {name for name, each in found.items() if chances[name] <= LIMITS.confirm and _shown(each)}
    return {name: name in sure for name in rows}


def alarmed(controls: Screened) -> list[str]:
    """Names of those that seem to have changed, either way, though both sides of them are base."""
    own = {row.name: row for row in controls.points}
    chances = _hochberg({name: 2 * float(min(row.found.slower, row.found.faster)) for name, row in own.items()})
    return [name for name, row in own.items() if chances[name] <= LIMITS.alarm and _shown(row)]


def again(fresh: Screened) -> dict[tuple[str, int], Row]:
    return {row.key: row for row in fresh.rows}


def _shown(row: Row) -> bool:
    """By fresh launches: enough of a change."""
    return row.share >= LIMITS.again * row.smallest


def of_family(members: Sequence[_Series]) -> dict[int, float]:
    """Of each launch the median over members, where most of them have it."""
    launches: dict[int, list[float]] = {}
    for series in members:
        for launch, value in series.items():
            launches.setdefault(launch, []).append(value)
    return {launch: median(values) for launch, values in launches.items() if 2 * len(values) > len(members)}


def _rows(named: Sequence[tuple[str, str, tuple[Duel, ...]]]) -> tuple[Row, ...]:
    found, beside = (
        _middles([of_family([getattr(duel, what) for duel in own]) for *_, own in named])
        for what in ("values", "beside")
    )
    q = {way: q_values([float(getattr(each, way)) for each in found]) for way in (SLOWER, FASTER)}
    return tuple(
        Row(*each, found[place], beside[place], _smallest(each[-1]), {way: own[place] for way, own in q.items()})
        for place, each in enumerate(named)
    )


def _middles(series: Sequence[_Series]) -> list[Middle]:
    """Those of equally many launches at once."""
    found: dict[int, Middle] = {}
    for count in {len(each) for each in series}:
        places = [place for place, each in enumerate(series) if len(each) == count]
        alike = middle(np.array([list(series[place].values()) for place in places]))
        for row, place in enumerate(places):
            found[place] = Middle(*(float(values[row]) for values in alike[:-1]), alike.launches)
    return [found[place] for place in range(len(series))]


def _smallest(members: Sequence[Duel]) -> float:
    return LIMITS.family if len(members) > 1 else LIMITS.point


def _hochberg(chances: Mapping[str, float]) -> dict[str, float]:
    """By name, each times the number of those that are no smaller, and none above one behind it.

    As Benjamini and Hochberg's it holds where the tests lean the same way. (Holm's would confirm nothing of 42 candidates
    that 12 launches all show.)"""
    adjusted, least = dict[str, float](), 1.0
    for passed, name in enumerate(sorted(chances, key=chances.__getitem__, reverse=True)):
        adjusted[name] = least = min(least, chances[name] * (passed + 1))
    return adjusted

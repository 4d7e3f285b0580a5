"""What a run's numbers should be trusted with."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kvbench.analysis.limits import frames
from kvbench.analysis.limits.bounds import SUSPECT
from kvbench.model import Check


@dataclass(frozen=True, slots=True)
class Above:
    """Points that are faster than a roof of theirs, `unexplained` ones among them; one of those is `name`, if there are
    any, with its `roof`, and what explains it or perhaps explains it."""

    count: int
    points: int
    unexplained: int
    name: str
    roof: str
    reason: str


@dataclass(frozen=True, slots=True)
class Slow:
    """Visits while the cores were slow: at so large a share of their speed, so many of all, so many set aside."""

    speed: float
    count: int
    visits: int
    aside: int


@dataclass(frozen=True, slots=True)
class Noise:
    """`spread` and `most`: shares of a point's time by which launches lie apart, of half and of nine in ten of the points;
    None where no point has more than one launch. The others count points, but for `disturbed`, a share of the samples.
    `uneven`: with launches whose samples differ in length."""

    points: int
    spread: float | None
    most: float | None
    unstable: int = 0
    disturbed: float = 0.0
    uneven: int = 0
    slow: Slow | None = None
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Doubts:
    """Checks of the machine that warned, with what they found."""

    checks: tuple[tuple[str, str], ...]


def above(points: pd.DataFrame) -> Above | None:
    found = points[points["above"] != ""]
    if found.empty:
        return None
    unexplained = found[found["above_reason"].str.startswith(SUSPECT)]
    row = (found if unexplained.empty else unexplained).iloc[0]
    why = row["above_reason"].removeprefix(SUSPECT)
    return Above(len(found), len(points), len(unexplained), row["short"], row["above"], why)


def noise(points: pd.DataFrame) -> Noise | None:
    if points.empty:
        return None
    found, slow = frames.noise(points), int(points["slow"].fillna(0).sum())
    aside = int(points["set_aside"].sum())
    visits = int(points.loc[points["core_speed"].notna(), "launches"].sum()) + aside
    return Noise(
        points=len(points),
        spread=found.gbps,
        most=found.gbps_most,
        unstable=int(points["unstable"].fillna(False).sum()),
        disturbed=found.disturbed or 0.0,
        uneven=int((points["uneven"].fillna(0) > 0).sum()),
        slow=Slow(float(points["slow_speed"].median()), slow, visits, aside) if slow else None,
        failed=int((points["failed"] > 0).sum()),
    )


def doubts(checks: Sequence[Check]) -> Doubts | None:
    warned = tuple((check.name, check.value) for check in checks if check.status == "warn")
    return Doubts(warned) if warned else None

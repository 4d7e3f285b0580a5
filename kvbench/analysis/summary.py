"""What a run says in short: its extremes, the verdicts so far, and how large the noise was."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from kvbench.analysis.names import short_names
from kvbench.analysis.verdicts import verdicts
from kvbench.model import Machine

_FEW = 2  # errors that are told in full
_MOST = 0.9  # of the points


@dataclass(frozen=True, slots=True)
class Place:
    """A point that stands out among its `kind`. `short` is its name for people; `efficiency` a share of `witness`."""

    kind: str
    rank: str
    name: str
    short: str
    gbps: float
    efficiency: float | None
    witness: str


@dataclass(frozen=True, slots=True)
class Noise:
    """Widths of the points' intervals over the launches, against their medians: half of the points, and nine of ten,
    are no wider. None where there is but one launch. `disturbed`: share of the samples."""

    gbps: float | None
    gbps_most: float | None
    efficiency: float | None
    efficiency_most: float | None
    disturbed: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """`failed`: points that lack a launch or more; `errors`: of the first of them, under their short names."""

    run: str
    points: int
    launches: int
    failed: int
    errors: tuple[str, ...]
    places: tuple[Place, ...]
    verdicts: tuple[str, ...]
    noise: Noise


def summary(points: pd.DataFrame, machine: Machine, run: str, launches: int) -> Summary:
    """`points`: the table of that name, of `launches` launches."""
    points = points.assign(short=short_names(points))
    failed = points[points["error"] != ""]
    return Summary(
        run=run,
        points=len(points),
        launches=launches,
        failed=len(failed),
        errors=tuple(f"{row.short}: {row.error}" for row in failed.head(_FEW).itertuples()),
        places=tuple(_places(points)),
        verdicts=tuple(verdicts(points, machine)),
        noise=_noise(points),
    )


def plain(summary: Summary) -> dict[str, Any]:
    """As JSON. Keys are part of the interface."""
    return {"version": 1, **asdict(summary)}


def _places(points: pd.DataFrame) -> Iterator[Place]:
    """Best and worst, of decodes and of stores."""
    decodes = points["op"] == "decode"
    for kind, rows in (("decode", points[decodes]), ("stores", points[~decodes])):
        rates, shares = rows["gbps"].dropna(), rows["efficiency"].dropna()
        if len(rates) == 1:
            yield _place(kind, "the only one", rows.loc[rates.idxmax()])
        elif len(rates):
            yield _place(kind, "fastest", rows.loc[rates.idxmax()])
            yield _place(kind, "slowest", rows.loc[rates.idxmin()])
            if len(shares):
                yield _place(kind, "most efficient", rows.loc[shares.idxmax()])
                yield _place(kind, "least efficient", rows.loc[shares.idxmin()])


def _place(kind: str, rank: str, row: pd.Series) -> Place:
    return Place(kind, rank, row["name"], row["short"], float(row["gbps"]), _known(row["efficiency"]), row["witness"])


def _noise(points: pd.DataFrame) -> Noise:
    several = points[points["launches"] > 1]
    efficiency = (several["efficiency_high"] - several["efficiency_low"]) / several["efficiency"]
    return Noise(
        gbps=_known(several["spread"].median()),
        gbps_most=_known(several["spread"].quantile(_MOST)),
        efficiency=_known(efficiency.median()),
        efficiency_most=_known(efficiency.quantile(_MOST)),
        disturbed=_known(points["disturbed"].mean()),
    )


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)

"""A run as tidy tables: a row for each sample, and one for each point with all that is known of it."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import pandas as pd

from kvbench.analysis.above import Held, above
from kvbench.analysis.bound import bound, evidence
from kvbench.analysis.ceilings import ceilings as ceilings_of
from kvbench.analysis.ceilings import huge_share
from kvbench.analysis.columns import EITHER, FOUND, POINT, SAMPLE, facts, table
from kvbench.analysis.disturbance import disturbed
from kvbench.analysis.l3 import claim
from kvbench.analysis.launches import Measured, complete, enclosed, measured
from kvbench.analysis.roofs import COPY, READ, Roofs
from kvbench.errors import BadArgument
from kvbench.model import Ceiling, Machine, Point, Probe, Record, Traffic
from kvbench.regime import Capacities
from kvbench.units import GB

_TWIN = ("twin_gbps", ("twin", "twin_ahead"))  # what a decode is a share of: its column, and its two forms
_COPY = ("copy_gbps", ("copy", "copy_nt"))  # and a store


def samples(records: Sequence[Record]) -> pd.DataFrame:
    """One row for each sample of every program, of points and probes alike. Visits that failed have none."""
    places: dict[Point | Probe, int] = {}
    of_point, rows, moved = [], [], []
    for record in records:
        if record.error:
            continue
        place, threads = places.setdefault(record.point, len(places)), len(record.point.cpus)
        for s in record.samples:
            of_point.append(place)
            moved.append((record.traffic[s.program].compulsory, record.traffic[s.program].flops))
            own = (s.program, record.launch, record.part, s.round, s.passes, s.seconds, 0.0, 0.0, 0.0)
            rows.append((*own, s.skew, s.switches, s.faults, s.steal, s.throttled, disturbed(s, threads)))
    found = table(rows, SAMPLE)
    seconds = found["seconds"] / found["passes"].astype(float)
    counts = pd.DataFrame(moved, columns=["gbps", "gflops"], dtype=float)
    found["seconds_per_pass"] = seconds
    found[["gbps", "gflops"]] = counts.where(counts > 0).div(seconds, axis=0) / GB
    points = table(map(facts, places), EITHER).take(of_point).reset_index(drop=True)
    return pd.concat([points, found], axis=1)


def points(
    records: Sequence[Record],
    machine: Machine,
    ceilings: Sequence[Ceiling] | None = None,
    capacities: Capacities | None = None,
) -> pd.DataFrame:
    """One row for each point, sorted by what it is. Points that failed have an error, and no numbers.

    `ceilings`: those of these records where none are given. `capacities`: of the caches, as they were seen to be where
    that is not as declared.
    """
    runs = sorted({record.run for record in records})
    if len(runs) > 1:
        raise BadArgument(f"records of {len(runs)} runs: {', '.join(runs)}", "one table for each run")
    if ceilings is None:
        ceilings = ceilings_of(records, machine, capacities)
    roofs = Roofs(machine, ceilings, "".join(runs), capacities)
    visits: dict[Point, list[Record]] = {}
    for record in records:
        if isinstance(record.point, Point):
            visits.setdefault(record.point, []).append(record)
    found = table((_row(point, own, roofs) for point, own in visits.items()), POINT | FOUND)
    order = [name for name in POINT if name not in ("name", "kernel")]
    return found.sort_values(order, ignore_index=True)


# ---- one point -------------------------------------------------------------------------------------------------------


def _row(point: Point, records: Sequence[Record], roofs: Roofs) -> dict[str, Any]:
    good = [record for record in records if complete(record)]
    lost = {record.launch for record in records} - {record.launch for record in good}
    errors = [record.error or "no sample was taken" for record in records if record.launch in lost]
    row = facts(point) | {"launches": 0, "samples": 0, "failed": len(lost), "error": errors[0] if errors else ""}
    if not good:
        return row
    found, traffic = measured(good), good[0].traffic["point"]
    footprint = good[0].layers * traffic.line
    row |= _rates(found, traffic) | _visits(good, len(point.cpus))
    row |= {"layers": good[0].layers, "slice_bytes": good[0].slice_bytes, "footprint": footprint}
    witnesses = _witnesses(point, found)
    row |= witnesses | _against(point, found, footprint, roofs)
    numbers = (witnesses.get("efficiency"), witnesses.get("core_fraction"), row["skew"])
    row |= {"bound": bound(*numbers), "bound_reason": evidence(witnesses.get("witness"), *numbers)}
    return row | _above(point, found, good, footprint, roofs)


def _rates(found: Measured, traffic: Traffic) -> dict[str, Any]:
    seconds = found.seconds["point"]
    return {
        "launches": seconds.launches,
        **enclosed("seconds", seconds),
        "spread": seconds.spread,
        "confidence": seconds.confidence,
        "unstable": seconds.unstable,
        "outliers": seconds.outliers,
        **enclosed("gbps", found.rates["point"]),
        "gflops": traffic.flops / seconds.median / GB if traffic.flops else None,
        "ai": traffic.ai if traffic.flops else None,
        "ai_issued": traffic.flops / traffic.issued if traffic.flops and traffic.issued else None,
        "compulsory_bytes": traffic.compulsory,
        "issued_bytes": traffic.issued,
        "line_bytes": traffic.line,
    }


def _visits(records: Sequence[Record], threads: int) -> dict[str, Any]:
    taken = [sample for record in records for sample in record.samples]
    own = [sample for sample in taken if sample.program == "point"]
    return {
        "samples": len(own),
        "skew": median(sample.skew for sample in own),
        "disturbed": sum(disturbed(sample, threads) for sample in taken) / len(taken),
        "huge": huge_share(records),
        "max_abs_err": max(record.max_abs_err for record in records),
    }


def _witnesses(point: Point, found: Measured) -> dict[str, Any]:
    """The point beside what was measured in the same rounds: a witness counts with the better of its two forms."""
    row: dict[str, Any] = {}
    rate, forms = _beside(point)
    if witness := found.better(forms):
        row |= {"witness": witness, rate: found.rates[witness].median}
        row |= enclosed("efficiency", found.shares[witness])
        row["efficiency_spread"] = found.shares[witness].spread
    if "copy_gbps" in row:
        row["copy_fraction"] = row["efficiency"]
    if "core" in found.shares:
        row |= {"core_gbps": found.rates["core"].median, "core_fraction": found.shares["core"].median}
    return row


def _beside(point: Point) -> tuple[str, tuple[str, str]]:
    return _TWIN if point.op == "decode" else _COPY


def _against(point: Point, found: Measured, footprint: float, roofs: Roofs) -> dict[str, Any]:
    """The point beside the run's ceilings, where it has ones that fit."""
    regime, decodes = roofs.regime(point, footprint), point.op == "decode"
    ceiling, note = roofs.ceiling(READ if decodes else COPY, point, regime.word, footprint)
    row: dict[str, Any] = {
        "regime": regime.word,
        "regime_reason": regime.reason,
        "regime_confidence": regime.confidence,
        "ceiling_note": note,
    }
    if ceiling:
        row |= {"ceiling_op": ceiling.probe.op, "ceiling_gbps": ceiling.median}
        row |= {"ceiling_low": ceiling.low, "ceiling_high": ceiling.high}
        row["ceiling_fraction"] = found.rates["point"].median / ceiling.median
    dram, lacking = roofs.dram(point)
    if dram:
        row |= {"dram_gbps": dram.median, "dram_low": dram.low, "dram_high": dram.high}
    if fma := roofs.fma(point):
        row["fma_gflops"] = fma.median
    if decodes:
        said = claim(found, regime, dram, lacking, ceiling)
        row |= {"l3": said.word, "l3_reason": said.reason}
    return row


def _above(point: Point, found: Measured, records: Sequence[Record], footprint: float, roofs: Roofs) -> dict[str, str]:
    """The roof that the point exceeds, if it does."""
    regime, decodes = roofs.regime(point, footprint), point.op == "decode"
    held = Held(
        found=found,
        traffic=records[0].traffic,
        stores=not decodes,
        witness=found.better(_beside(point)[1]),
        regime=regime,
        footprint=footprint,
        ceiling=roofs.ceiling(READ if decodes else COPY, point, regime.word, footprint)[0],
        fma=roofs.fma(point),
        peak=roofs.peak,
        huge=huge_share(records),
    )
    said = above(held)
    return {"above": said.roof, "above_reason": said.reason}

"""A run as tidy tables: a row for each sample, and one for each point with all that is known of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated, Any

import pandas as pd

from kvbench.analysis.limits.bounds import Against, above, beaten, bound, claim, decided_by, evidence, would_tell
from kvbench.analysis.measured.ceilings import Roofs, huge_share
from kvbench.analysis.measured.ceilings import ceilings as ceilings_of
from kvbench.analysis.measured.columns import EITHER, FOUND, POINT, SAMPLE, facts, table
from kvbench.analysis.measured.launches import (
    SLOW,
    PointRates,
    at_speed,
    complete,
    enclosed,
    measured,
    speeds,
    tailed,
    untold,
)
from kvbench.errors import BadArgument
from kvbench.model import NEIGHBOUR, Ceiling, Contrast, Machine, Point, Record, Sample, Traffic
from kvbench.model.annotated import about
from kvbench.model.contrast import value
from kvbench.model.point import Visited
from kvbench.regime import Capacities
from kvbench.units import GB, counted


def samples(records: Sequence[Record]) -> pd.DataFrame:
    """One row for each sample of every program, of points and probes alike; of contrasts the factor stands for the program.
    Visits that failed have none."""
    places: dict[Visited, int] = {}
    of_point, rows, moved = [], [], []
    for record, speed in zip(records, speeds(records), strict=True):
        if record.error:
            continue
        beside = isinstance(record.point, Contrast)
        own = {value(p, record.point.factor): p for p in record.point.points} if beside else {}
        for s in record.samples:
            point = own.get(s.program, record.point)
            of_point.append(places.setdefault(point, len(places)))
            threads = len(point.cpus)
            moved.append((record.traffic[s.program].compulsory, record.traffic[s.program].flops))
            name = record.point.factor if beside else s.program
            counts = (name, record.launch, record.part, s.round, s.passes, s.seconds, 0.0, 0.0, 0.0)
            rows.append((*counts, s.skew, s.switches, s.faults, s.steal, s.throttled, speed, disturbed(s, threads)))
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
    most: int = 0,
) -> pd.DataFrame:
    """One row for each point, sorted by what it is. Points that failed have an error, and no numbers.

    `ceilings`: those of these records where none are given. `capacities`: of the caches, as they were seen to be where
    that is not as declared. `most`: launches that the run can have where some are added until questions are
    decided, else 0.
    """
    runs = sorted({record.run for record in records})
    if len(runs) > 1:
        raise BadArgument(f"records of {len(runs)} runs: {', '.join(runs)}", "one table for each run")
    if ceilings is None:
        ceilings = ceilings_of(records, machine, capacities)
    roofs = Roofs(machine, ceilings, "".join(runs), capacities)
    visits: dict[Point, list[_Visit]] = {}
    used = set(map(id, at_speed(records)))
    for record, speed in zip(records, speeds(records), strict=True):
        if isinstance(record.point, Point):
            visits.setdefault(record.point, []).append((record, speed, id(record) in used))
    found = table((_row(point, own, roofs, most) for point, own in visits.items()), POINT | FOUND)
    order = [name for name in POINT if name not in ("name", "kernel")]
    return found.sort_values(order, ignore_index=True)


# ---- one point -------------------------------------------------------------------------------------------------------


_Visit = tuple[Record, float | None, bool]  # the cores' speed, and whether its numbers count


def _row(point: Point, visits: Sequence[_Visit], roofs: Roofs, most: int) -> dict[str, Any]:
    whole = [visit for visit in visits if complete(visit[0])]
    lost = {record.launch for record, *_ in visits} - {record.launch for record, *_ in whole}
    errors = [record.error or "no sample was taken" for record, *_ in visits if record.launch in lost]
    row = facts(point) | {"launches": 0, "samples": 0, "failed": len(lost), "error": errors[0] if errors else ""}
    good = [record for record, _, used in whole if used]
    if not good:
        return row
    row |= _cores([(speed, used) for _, speed, used in whole if speed is not None])
    found, traffic = measured(good), good[0].traffic["point"]
    footprint = good[0].footprint("point")
    row |= _rates(found, traffic) | _visits(good, len(point.cpus))
    row |= {
        "ran": good[0].schedule,
        "layers": good[0].layers,
        "slice_bytes": good[0].slice_bytes,
        "footprint": footprint,
    }
    row |= _witnesses(point, found) | _tails(found, good)
    numbers, roof = (row.get("efficiency"), row.get("core_fraction"), row["skew"]), beaten(found)
    row["core_level"] = good[0].core_level
    why = [evidence(found.witness, *numbers, row["core_level"])]
    why += [f"the point itself beats its {roof}, which so limits nothing"] if roof else []
    why += [f"samples of unlike length in {counted(found.uneven, 'launch')}"] if found.uneven else []
    word = bound(*numbers, beaten=bool(roof))
    if word == "unknown" and point.op == "decode":
        why.append(would_tell(*numbers[:2], bool(roof)) or "far from both: kvbench profile shows its stages")
    row |= {"bound": word, "bound_reason": ", ".join(why), "uneven": found.uneven}
    return row | _against(point, replace(_held(point, found, good, footprint, roofs), most=most))


def _cores(visits: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    if not visits:
        return {}
    slow = [speed for speed, _ in visits if speed < SLOW]
    return {
        "core_speed": median(speed for speed, used in visits if used),
        "slow": len(slow),
        "slow_speed": median(slow) if slow else None,
        "set_aside": sum(not used for _, used in visits),
    }


def _rates(found: PointRates, traffic: Traffic) -> dict[str, Any]:
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
        "kv_bytes": traffic.kv + traffic.scales + traffic.table,
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


def _witnesses(point: Point, found: PointRates) -> dict[str, Any]:
    """The point beside what was measured in the same rounds: a witness counts with the better of its two forms."""
    row: dict[str, Any] = {}
    if witness := found.witness:
        share = found.shares[witness]
        row |= {"witness": witness, **enclosed("efficiency", share), "efficiency_spread": share.spread}
        if point.op == "decode":
            row["twin_gbps"] = found.rates[witness].median
        else:
            row |= {"copy_gbps": found.rates[witness].median, "copy_fraction": share.median}
    if "core" in found.shares:
        row |= {"core_gbps": found.rates["core"].median, "core_fraction": found.shares["core"].median}
    return row


def _tails(found: PointRates, records: Sequence[Record]) -> dict[str, Any]:
    """Passes one by one, alone and beside a neighbour."""
    alone, beside = (
        [record.tails[name] for record in records if name in record.tails] for name in ("point", NEIGHBOUR)
    )
    row = (
        {"pass_note": untold(alone, found.seconds["point"].median)} | tailed(alone, "pass") | tailed(beside, NEIGHBOUR)
    )
    if slower := found.shares.get(NEIGHBOUR):
        row |= enclosed(f"{NEIGHBOUR}_times", slower)
        row[f"{NEIGHBOUR}_gbps"] = median(record.neighbour for record in records if record.neighbour)
    return row


def _held(point: Point, found: PointRates, records: Sequence[Record], footprint: float, roofs: Roofs) -> Against:
    regime = roofs.regime(point, footprint)
    ceiling, note = roofs.ceiling(point, regime.word, footprint)
    return Against(
        found=found,
        traffic=records[0].traffic,
        stores=point.op != "decode",
        appends=point.op == "append",
        regime=regime,
        footprint=footprint,
        ceiling=ceiling,
        note=note,
        plain=roofs.plain(point),
        computed=roofs.computed(point),
        peak=roofs.peak,
        core_level=records[0].core_level,
        huge=huge_share(records),
    )


def _against(point: Point, held: Against) -> dict[str, Any]:
    """The point beside the run's ceilings, where it has ones that fit."""
    row: dict[str, Any] = {
        "regime": held.regime.word,
        "regime_reason": held.regime.reason,
        "regime_confidence": held.regime.confidence,
        "ceiling_note": held.note,
    }
    for name, roof in (("ceiling", held.ceiling), ("dram", held.plain)):
        if roof:
            row |= {f"{name}_gbps": roof.median, f"{name}_low": roof.low, f"{name}_high": roof.high}
    if held.ceiling:
        row |= {"ceiling_op": held.ceiling.probe.op, "ceiling_form": held.ceiling.form}
        row["ceiling_threads"] = len(held.ceiling.probe.cpus)
        row["ceiling_fraction"] = held.rate.median / held.ceiling.median
    if held.computed:
        row["fma_gflops"] = held.computed.median
    if point.op == "decode":
        row["l3"], row["l3_reason"] = claim(held)
        row["l3_needs"] = decided_by(held)
        ratios = {"l3_reads": held.found.near, "l3_decode": held.found.shares.get("memory")}
        ratios["l3_gain"] = held.found.shares.get("rotated")
        for name, ratio in ratios.items():
            row |= enclosed(name, ratio) if ratio else {}
    row["above"], row["above_reason"] = above(held)
    return row


# ---- noise -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a sample may meet and still count as undisturbed: judgement."""

    steal: float = 0.01  # of the threads' time, taken by a hypervisor
    switches: float = 1.0  # involuntary, for each thread: a kernel thread's turn is short, a second is somebody's work
    faults: float = 0.0  # all memory was touched before: pages move, or are read back from disk
    throttled: int = 0


UNDISTURBED = Undisturbed()


def disturbed(sample: Sample, threads: int) -> bool:
    """Whether something else took part in it, which may show in its length alone."""
    return (
        sample.off
        or sample.steal > UNDISTURBED.steal * sample.seconds * threads
        or sample.throttled > UNDISTURBED.throttled
        or sample.switches > UNDISTURBED.switches * threads
        or sample.faults > UNDISTURBED.faults * threads
    )


@dataclass(frozen=True, slots=True)
class Noise:
    """How far launches lie apart. Half of the points are no wider, and nine of ten no wider than `most`."""

    gbps: Annotated[float | None, about("share of the median: interval over launches, of half of the points")]
    gbps_most: Annotated[float | None, about("share of the median: the same of nine points in ten")]
    efficiency: Annotated[float | None, about("share of the median: the same as gbps, of efficiency")]
    efficiency_most: Annotated[float | None, about("share of the median: the same of nine points in ten")]
    disturbed: Annotated[float | None, about("share of the samples that met other work")]


def noise(points: pd.DataFrame) -> Noise:
    """`points`: the table of that name."""
    several = points[points["launches"] > 1]
    efficiency = several["efficiency_spread"]
    return Noise(
        gbps=known(several["spread"].median()),
        gbps_most=known(several["spread"].quantile(0.9)),
        efficiency=known(efficiency.median()),
        efficiency_most=known(efficiency.quantile(0.9)),
        disturbed=known(points["disturbed"].mean()),
    )


def known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)

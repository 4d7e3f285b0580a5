"""Tables of a run: a row for each sample, and a row for each point with everything that is known
about it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pandas as pd

from kvbench.analysis.limits.above import Against, above
from kvbench.analysis.limits.bounds import (
    FAR,
    CoreSpeeds,
    Limit,
    Why,
    core_class,
    core_speeds,
    limit,
    of_core,
)
from kvbench.analysis.limits.claims import claim
from kvbench.analysis.measured.ceilings import Roofs, huge_share
from kvbench.analysis.measured.ceilings import ceilings as ceilings_of
from kvbench.analysis.measured.columns import EITHER, FOUND, POINT, SAMPLE, facts, table
from kvbench.analysis.measured.estimates import enclosed, outliers, steady
from kvbench.analysis.measured.families import alone
from kvbench.analysis.measured.line import members
from kvbench.analysis.measured.rates import PointRates, measured
from kvbench.analysis.measured.speeds import SLOW, at_speed, speeds
from kvbench.analysis.measured.tails import tailed, untold
from kvbench.errors import BadArgument
from kvbench.grouping import grouped
from kvbench.model import (
    MEMORY,
    NEIGHBOUR,
    ROTATED,
    Ceiling,
    Contrast,
    Machine,
    Point,
    Record,
    Sample,
    Traffic,
)
from kvbench.model.contrast import value
from kvbench.model.point import ATTENDS, Visited
from kvbench.model.program import parted
from kvbench.units import GB


def samples(records: Sequence[Record]) -> pd.DataFrame:
    """One row for each sample of every program, of points, probes and contrasts. Failed visits have
    no rows.

    For a contrast the program is the name of its factor, followed by the kind for witnesses. Shared
    witnesses belong to its first point.
    """
    places: dict[Visited, int] = {}
    of_point, rows = [], []
    for record, speed in zip(records, speeds(records), strict=True):
        if record.error:
            continue
        beside = record.point if isinstance(record.point, Contrast) else None
        own = {value(p, beside.factor): p for p in beside.points} if beside else {}
        for s in record.samples:
            kind, of = parted(s.program)
            point = own.get(of, beside.points[0]) if beside else record.point
            of_point.append(places.setdefault(point, len(places)))
            each, moved = s.each, record.traffic[s.program]
            rates = (
                count / each / GB if count > 0 else None
                for count in (moved.bytes_compulsory, moved.flops)
            )
            name = s.program
            if beside:
                name = beside.factor if kind == "point" else f"{beside.factor}/{kind}"
            counts = (name, record.launch, record.part, s.round, s.passes, s.seconds, each, *rates)
            met = (
                s.skew,
                s.switches,
                s.faults,
                s.steal,
                s.throttled,
                speed,
                disturbed(s, point.threads),
            )
            rows.append((*counts, *met))
    found = table(rows, SAMPLE)
    points = table(map(facts, places), EITHER).take(of_point).reset_index(drop=True)
    return pd.concat([points, found], axis=1)


def points(
    records: Sequence[Record],
    machine: Machine,
    ceilings: Sequence[Ceiling] | None = None,
    most: int = 0,
    fastest: CoreSpeeds | None = None,
) -> pd.DataFrame:
    """One row for each point, sorted by its fields. Points that failed have an error and no
    numbers. Points that were timed beside the fastest kernels of other dtypes have the numbers of
    those rounds.

    most: launches that the run can have, if launches are added until questions are decided; else 0.
    fastest: core speeds from other visits; by default from these records.
    """
    runs = sorted({record.run for record in records})
    if len(runs) > 1:
        raise BadArgument(
            f"records of {len(runs)} runs: {', '.join(runs)}", "one table for each run"
        )
    ceilings = ceilings_of(records, machine) if ceilings is None else ceilings
    roofs = Roofs(machine, ceilings)
    used = set(map(id, at_speed(records)))
    visits = grouped(
        (record.point, (record, speed, id(record) in used))
        for record, speed in zip(records, speeds(records), strict=True)
        if isinstance(record.point, Point)
    )
    found = {point: measured(good) for point, own in visits.items() if (good := _good(own))}
    fastest = core_speeds(found) if fastest is None else fastest
    rows = (
        _row(point, own, _at_core_speed(point, found.get(point), fastest), roofs, most)
        for point, own in visits.items()
    )
    made = {row["name"]: row | {"beside": False} for row in rows}
    if beside := members(records):
        found_beside = points(beside, machine, ceilings, fastest=fastest)
        for row in found_beside[found_beside["seconds"].notna()].to_dict("records"):
            made[row["name"]] = row | {"beside": True}
    order = [name for name in POINT if name not in ("name", "kernel")]
    return table(made.values(), POINT | FOUND).sort_values(order, ignore_index=True)


_Visit = tuple[Record, float | None, bool]  # speed of the cores, whether its numbers count
_REGIME = {"": "word", "_confidence": "confidence", "_bytes": "bytes", "_limit": "limit"}


def _good(visits: Sequence[_Visit]) -> list[Record]:
    """The complete records of used visits."""
    return [record for record, _, used in visits if used and record.complete]


def _at_core_speed(
    point: Point, found: PointRates | None, fastest: CoreSpeeds
) -> PointRates | None:
    """The rates with the share of the core speed, if another point of the class beats the window
    walk.
    """
    by, faster = fastest.get(core_class(point), (point, None))
    if not found or not faster or by == point or not (core := found.core):
        return found
    return replace(
        found,
        shares=found.shares | {core: of_core(found.shares[core], faster)},
        rates=found.rates | {core: found.rates[core].times(faster.median)},
    )


def _row(
    point: Point, visits: Sequence[_Visit], found: PointRates | None, roofs: Roofs, most: int
) -> dict[str, Any]:
    lost = {record.launch for record, *_ in visits} - {
        record.launch for record, *_ in visits if record.complete
    }
    errors = [
        record.error or "no sample was taken" for record, *_ in visits if record.launch in lost
    ]
    row = facts(point) | {
        "launches": 0,
        "samples": 0,
        "failed": len(lost),
        "error": errors[0] if errors else "",
    }
    if found is None:
        return row
    good = _good(visits)
    one, whole = good[0], [visit for visit in visits if visit[0].complete]
    return {
        **row,
        **_cores([(speed, used) for _, speed, used in whole if speed is not None]),
        **_rates(found, one.traffic["point"]),
        **_visits(good, point.threads),
        "ran": one.ran,
        "slices": one.slices,
        "slice_bytes": one.slice_bytes,
        "core_level": one.core_level,
        **_witnesses(point, found),
        **_tails(found, good),
        "uneven": found.uneven,
        **_against(point, found, good, roofs, most),
    }


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
    several = seconds.launches > 1
    return {
        "launches": seconds.launches,
        **enclosed("seconds", seconds),
        "spread": seconds.spread,
        "confidence": seconds.confidence,
        "unstable": not steady(seconds.values) if several else None,
        "outliers": outliers(seconds.values) if several else None,
        **enclosed("gbps", found.rates["point"]),
        "gflops": traffic.flops / seconds.median / GB if traffic.flops else None,
        "ai": traffic.ai if traffic.flops else None,
        "ai_issued": traffic.flops / traffic.bytes_issued
        if traffic.flops and traffic.bytes_issued
        else None,
        "bytes_compulsory": traffic.bytes_compulsory,
        "kv_bytes": traffic.bytes_kv + traffic.bytes_scales + traffic.bytes_table,
        "bytes_issued": traffic.bytes_issued,
        "bytes_line": traffic.bytes_line,
    }


def _visits(records: Sequence[Record], threads: int) -> dict[str, Any]:
    taken = [sample for record in records for sample in record.samples]
    own = [sample for sample in taken if sample.program == "point"]
    return {
        "samples": len(own),
        "skew": median_skew(records),
        "disturbed": sum(disturbed(sample, threads) for sample in taken) / len(taken),
        "huge": huge_share(records),
        "max_abs_err": max(record.max_abs_err for record in records),
    }


def median_skew(records: Iterable[Record]) -> float:
    """The median skew of the point's own samples."""
    return median(
        sample.skew for record in records for sample in record.samples if sample.program == "point"
    )


def _witnesses(point: Point, found: PointRates) -> dict[str, Any]:
    """Compare the point with its witnesses, each in its better form. A point with reads between
    passes has no reads of its rows: those have no other reads between them.
    """
    row = dict[str, Any]()
    if (witness := found.witness) and not point.streamed:
        share = found.shares[witness]
        row |= {
            "witness": witness,
            **enclosed("efficiency", share),
            "efficiency_spread": share.spread,
        }
        if point.op == "decode":
            row["twin_gbps"] = found.rates[witness].median
        elif point.op not in ATTENDS:
            row |= {"copy_gbps": found.rates[witness].median, "copy_fraction": share.median}
    if core := found.core:
        row |= {
            "core_gbps": found.rates[core].median,
            **enclosed("core_fraction", found.shares[core]),
        }
    return row


def _limited(point: Point, found: PointRates, regime: str, skew: float) -> dict[str, Any]:
    """What limits the point, from shares of the same rounds. Decodes are compared with all reads,
    steps only with reads of memory, other ops with none.
    """
    if point.op not in ATTENDS or point.streamed:
        why = Why.DISPLACED if point.streamed else Why.NO_DECODE
        return {"bound": str(Limit.UNKNOWN), "bound_reason": str(why)}
    far, rows = regime in FAR, found.witness if point.op == "decode" else None
    programs = {Limit.MEMORY: MEMORY, Limit.ROWS: rows, Limit.CORE: found.core}
    shares = {what: found.shares[name] for what, name in programs.items() if name in found.shares}
    made, memory = limit(shares, skew, far), shares.get(Limit.MEMORY)
    return {
        "bound": str(made.word),
        "bound_reason": str(made.why),
        "bound_by": ", ".join(made.by),
        **(enclosed("memory_share", memory) if far and memory else {}),
    }


def _tails(found: PointRates, records: Sequence[Record]) -> dict[str, Any]:
    """Columns on single passes, alone and beside a neighbour."""
    alone, beside = (
        [r.tails[name] for r in records if name in r.tails] for name in ("point", NEIGHBOUR)
    )
    row: dict[str, Any] = {
        "pass_note": untold(alone, found.seconds["point"].median),
        **tailed(alone, "pass"),
        **tailed(beside, NEIGHBOUR),
    }
    if slower := found.shares.get(NEIGHBOUR):
        row |= enclosed(f"{NEIGHBOUR}_times", slower)
        row[f"{NEIGHBOUR}_gbps"] = median(
            record.neighbour for record in records if record.neighbour
        )
    return row


def _against(
    point: Point, found: PointRates, records: Sequence[Record], roofs: Roofs, most: int
) -> dict[str, Any]:
    """Compare the point with the run's ceilings that fit it."""
    footprint = records[0].footprint
    regime, computed = roofs.regime(point, footprint), roofs.computed(point)
    ceiling, note = roofs.ceiling(point, regime.word, footprint)
    row = {
        **{f"regime{end}": getattr(regime, name) for end, name in _REGIME.items()},
        "regime_reason": str(regime.reason),
        "footprint": footprint,
        "ceiling_note": str(note),
        **_limited(point, found, regime.word, median_skew(records)),
        "fma_gflops": computed and computed.median,
    }
    for name, roof in (("ceiling", ceiling), ("dram", roofs.by_itself("read", point, "DRAM"))):
        if roof:
            row |= {f"{name}_gbps": roof.median, f"{name}_low": roof.low, f"{name}_high": roof.high}
    if ceiling:
        row |= {
            "ceiling_op": ceiling.probe.op,
            "ceiling_form": ceiling.form,
            "ceiling_threads": ceiling.probe.threads,
            "ceiling_fraction": found.rates["point"].median / ceiling.median,
        }
    held = Against(
        found,
        records[0].traffic,
        stores=point.op not in ATTENDS,
        appends=point.op == "append",
        regime=regime,
        footprint=footprint,
        ceiling=ceiling,
        computed=computed,
        peak=roofs.peak,
        core_level=records[0].core_level,
        huge=huge_share(records),
    )
    row |= {"suspect": False}
    if exceeded := above(held):
        row |= {
            "above": str(exceeded.roof),
            "above_reason": str(exceeded.cause),
            "above_also": ", ".join(exceeded.also),
            "suspect": not exceeded.explained,
        }
    return row | (_in_l3(point, found, regime.word, most) if point.op == "decode" else {})


def _in_l3(point: Point, found: PointRates, regime: str, most: int) -> dict[str, Any]:
    """The point's columns about L3. With several queries there are none: the decode from memory
    beside them has one query.
    """
    row = dict[str, Any]()
    if point.shape.q_len > 1:
        return row
    if point.streamed:
        gain = found.shares.get(ROTATED)
        return enclosed("l3_gain", gain) if gain else row
    if claimed := claim(found, regime, most):
        row |= {
            "l3": str(claimed.word),
            "l3_reason": str(claimed.why),
            "l3_allowed": claimed.allowed,
            "l3_needs": claimed.launches,
        }
    ratios = {
        "l3_reads": found.near,
        "l3_decode": found.shares.get(MEMORY) if found.near else None,
        "l3_gain": found.shares.get(ROTATED),
    }
    for name, ratio in ratios.items():
        row |= enclosed(name, ratio) if ratio else {}
    return row


def decodes_of(points: pd.DataFrame) -> pd.DataFrame:
    """The decodes with a rate and without reads between passes, with their row numbers."""
    return alone(points[(points["op"] == "decode") & points["gbps"].notna()])


_STOLEN = 0.01  # of the threads' time: if a hypervisor takes more, the sample is disturbed
# involuntary switches per thread: one may be a kernel thread's short turn, more are other work
_SWITCHES = 1.0


def disturbed(sample: Sample, threads: int) -> bool:
    """Whether something else ran during the sample, which may show only in its length. All memory
    was touched before it, so a fault means that a page was moved or read back from disk.
    """
    stolen = sample.steal > _STOLEN * sample.seconds * threads
    return (
        sample.off
        or stolen
        or bool(sample.throttled or sample.faults)
        or sample.switches > _SWITCHES * threads
    )


def known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)

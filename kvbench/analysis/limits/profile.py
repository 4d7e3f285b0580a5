"""One point in depth: its rates with their spread, its efficiency, and what limits it."""

from dataclasses import dataclass
from statistics import harmonic_mean, median
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, Meta, UnsetType

from kvbench.analysis.limits.bounds import FAR, Limit, Limited, Why, limit
from kvbench.analysis.measured.chases import SeenOnce, latencies
from kvbench.analysis.measured.estimates import Estimate, enclosed
from kvbench.analysis.measured.steps import PartOfStep, by_round
from kvbench.analysis.measured.tails import untold
from kvbench.grouping import grouped
from kvbench.model import (
    COMPUTE,
    COPY_NT,
    NEIGHBOUR,
    PACE,
    Point,
    Record,
    Role,
    Sample,
    Traffic,
    quotients,
)
from kvbench.model.annotated import about
from kvbench.model.chases import of_chase
from kvbench.model.point import ATTENDS, FLOPS, STEP
from kvbench.model.program import ALONE, MEMORY, PARTS, ROTATED, SLICE
from kvbench.native import default_library
from kvbench.units import GB, gbps


@dataclass(frozen=True, slots=True)
class ProgramRate:
    """GB/s of compulsory bytes (GFLOP/s for fma): the median of the samples, and their middle
    half.
    """

    median: Annotated[float, about("GB/s: median of the samples")]
    low: Annotated[float, about("GB/s: lower end of the middle half")]
    high: Annotated[float, about("GB/s: upper end of the middle half")]


@dataclass(frozen=True, slots=True)
class SliceMemory:
    """The memory that the system really gave for the slices."""

    page_bytes: Annotated[int, about("bytes: one page of the kind that was given")]
    mapped: Annotated[int, about("bytes: mapped")]
    resident_bytes: Annotated[int, about("bytes: really in memory")]
    huge_bytes: Annotated[int, about("bytes: really on huge pages")]


_Known = float | None
_Share = float | None | UnsetType
_BYTES = tuple(name for name in Traffic.__dataclass_fields__ if name.startswith("bytes_"))
_ALIKE = ("point", "max_abs_err", "slice_bytes")
_L3 = {
    "l3_reads": (SLICE, MEMORY),
    "l3_gain": ("point", ROTATED),
    "l3_gain_alone": (ALONE, ROTATED),
    "l3_decode": ("point", MEMORY),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A decode beside its twin, its core roof and the FMA peak; a store beside copies; a step
    beside its parts.

    A share is null if no round has samples of comparable length for both.
    """

    version: Annotated[
        Literal[2],
        about("version of this format; since 2 `order`, which was `shuffle`"),
    ] = 2
    kernel: Annotated[str, about("op.variant.layout.dtype.isa")]
    point: Annotated[Point, about("what was measured")]
    schedule: Annotated[str, about("order of rows and prefetches that ran; empty if there is none")]
    gbps: Annotated[float, about("GB/s: compulsory bytes over time, median of the samples")]
    twin_gbps: Annotated[float | UnsetType, about("GB/s: the same reads without a decode")] = UNSET
    twin_form: Annotated[str | UnsetType, about("program that twin_gbps is from")] = UNSET
    efficiency: Annotated[
        _Share, about("share of the point's time that its twin takes, median of the rounds")
    ] = UNSET
    efficiency_low: Annotated[
        _Share, about("share of the point's time: lower end of its interval over rounds")
    ] = UNSET
    efficiency_high: Annotated[
        _Share, about("share of the point's time: upper end of its interval over rounds")
    ] = UNSET
    memory_gbps: Annotated[
        float | UnsetType,
        about("GB/s: plain reads of memory; for steps and decodes from memory"),
    ] = UNSET
    memory_share: Annotated[_Share, about("share of memory_gbps, median of the rounds")] = UNSET
    memory_share_low: Annotated[
        _Share, about("share of memory_gbps: lower end of its interval over rounds")
    ] = UNSET
    memory_share_high: Annotated[
        _Share, about("share of memory_gbps: upper end of its interval over rounds")
    ] = UNSET
    core_gbps: Annotated[float | UnsetType, about("GB/s: the same kernel in a private cache")] = (
        UNSET
    )
    core_level: Annotated[str | UnsetType, about("the private cache of core_gbps")] = UNSET
    core_form: Annotated[str | UnsetType, about("program that core_gbps is from")] = UNSET
    core_fraction: Annotated[_Share, about("share of core_gbps, median of the rounds")] = UNSET
    core_fraction_low: Annotated[
        _Share, about("share of core_gbps: lower end of its interval over rounds")
    ] = UNSET
    core_fraction_high: Annotated[
        _Share, about("share of core_gbps: upper end of its interval over rounds")
    ] = UNSET
    ceiling_gbps: Annotated[
        float, about("GB/s: the fastest form of reads of this footprint by the same threads")
    ]
    ceiling_form: Annotated[str, about("program that ceiling_gbps is from")]
    ceiling_fraction: Annotated[_Known, about("share of ceiling_gbps, median of the rounds")]
    dram_gbps: Annotated[
        float, about("GB/s: the fastest form of reads from memory by the same threads")
    ]
    dram_form: Annotated[
        str | UnsetType, about("program that dram_gbps is from; if missing, ceiling_form")
    ] = UNSET
    dram_fraction: Annotated[_Known, about("share of dram_gbps, median of the rounds")]
    other_gbps: Annotated[float | UnsetType, about("GB/s: the other kind of stores")] = UNSET
    other_form: Annotated[str | UnsetType, about("program that other_gbps is from")] = UNSET
    other_fraction: Annotated[_Share, about("share of other_gbps, median of the rounds")] = UNSET
    copy_gbps: Annotated[
        float | UnsetType, about("GB/s: copies of as many bytes with ordinary stores")
    ] = UNSET
    copy_form: Annotated[str | UnsetType, about("program that copy_gbps is from")] = UNSET
    copy_fraction: Annotated[_Share, about("share of copy_gbps, median of the rounds")] = UNSET
    copy_nt_gbps: Annotated[
        float | UnsetType, about("GB/s: copies of as many bytes with non-temporal stores")
    ] = UNSET
    copy_nt_form: Annotated[str | UnsetType, about("program that copy_nt_gbps is from")] = UNSET
    copy_nt_fraction: Annotated[_Share, about("share of copy_nt_gbps, median of the rounds")] = (
        UNSET
    )
    alone_gbps: Annotated[
        float | UnsetType,
        about("GB/s: without reads between passes, with one query, or with plain scores"),
    ] = UNSET
    alone_form: Annotated[str | UnsetType, about("program that alone_gbps is from")] = UNSET
    alone_fraction: Annotated[_Share, about("share of alone_gbps, median of the rounds")] = UNSET
    l3_reads: Annotated[
        _Known, about("ratio: plain reads of a slice in L3 over those of memory")
    ] = None
    l3_gain: Annotated[
        _Known, about("ratio: time of the same decode from memory over the point's time")
    ] = None
    l3_gain_alone: Annotated[
        _Known, about("ratio: the same without reads between passes; null if the point has none")
    ] = None
    l3_decode: Annotated[
        _Known, about("ratio: GB/s of the point over those of plain reads of memory")
    ] = None
    fma_gflops: Annotated[
        float | UnsetType, about("GFLOP/s: peak of the kernel's own products, by the same threads")
    ] = UNSET
    fma_fraction: Annotated[_Share, about("share of fma_gflops that the point reaches")] = UNSET
    bound: Annotated[
        Limit, about("what limits the decode in this one visit; rows: reads of its own rows")
    ]
    bound_reason: Annotated[Why, about("the reason, as a word")]
    bound_by: Annotated[
        tuple[Limit, ...], about("the limits that the reason is about: memory, rows or core")
    ]
    ai: Annotated[float, about("FLOP per byte: arithmetic intensity, over compulsory bytes")]
    flops: Annotated[float, about("FLOP: one pass")]
    bytes_compulsory: Annotated[float, about("bytes: one pass, K and V once per KV head")]
    bytes_issued: Annotated[float, about("bytes: loaded by the cores in a pass")]
    bytes_line: Annotated[float, about("bytes: cache lines touched in a pass")]
    bytes_kv: Annotated[float, about("bytes: the part of K and V in bytes_compulsory")]
    bytes_scales: Annotated[float, about("bytes: the part of scales in bytes_compulsory")]
    bytes_table: Annotated[float, about("bytes: the part of the page table in bytes_compulsory")]
    seconds_per_pass: Annotated[float, about("seconds: median of the samples")]
    pass_p50: Annotated[
        _Known,
        about("seconds: median of all passes; null if too short to time one by one"),
    ]
    pass_p99: Annotated[
        _Known, about("seconds: 99 % of the passes took no longer; null if there are too few")
    ]
    pass_max: Annotated[_Known, about("seconds: the longest pass")]
    pass_note: Annotated[str, about("why pass_p50 or pass_p99 is null; else empty")]
    passes: Annotated[int, about("passes that were timed")]
    queries_times: Annotated[
        _Share, about("ratio: time with all queries over time with one, median of rounds")
    ] = UNSET
    scores_times: Annotated[
        _Share, about("ratio: time with sinks, cap and slopes over time without, median of rounds")
    ] = UNSET
    neighbour_p50: Annotated[_Known, about("seconds: as pass_p50, beside a neighbour")] = None
    neighbour_p99: Annotated[_Known, about("seconds: as pass_p99, beside a neighbour")] = None
    neighbour_times: Annotated[
        _Known, about("ratio: time of a pass beside a neighbour over that without")
    ] = None
    neighbour_gbps: Annotated[_Known, about("GB/s: that the neighbour read meanwhile")] = None
    latencies: Annotated[
        dict[str, SeenOnce] | UnsetType,
        about("latencies beside the point from a chase, by program"),
    ] = UNSET
    thread_skew: Annotated[
        float, about("share of the mean by which the slowest thread worked longer")
    ]
    parts: Annotated[
        dict[str, PartOfStep] | UnsetType,
        about("appends, decodes and weights of a step, by name"),
    ] = UNSET
    tokens_per_second: Annotated[
        float | UnsetType, about("tokens per second: of one sequence, for a step")
    ] = UNSET
    tokens_per_second_of_batch: Annotated[
        float | UnsetType, about("tokens per second: of all sequences, for a step")
    ] = UNSET
    step_times: Annotated[
        _Share, about("ratio: time of a step over the sum of its parts alone, median of rounds")
    ] = UNSET
    step_times_low: Annotated[_Share, about("ratio: lower end of its interval over rounds")] = UNSET
    step_times_high: Annotated[_Share, about("ratio: upper end of its interval over rounds")] = (
        UNSET
    )
    stage_share: Annotated[
        dict[str, float], about("share of the pass: each stage of a decode, by name")
    ]
    max_abs_err: Annotated[
        float, about("absolute: largest difference of an output element to float64")
    ]
    layers: Annotated[int, about("slices in rotation")]
    slice_bytes: Annotated[int, about("bytes: one slice")]
    memory: Annotated[SliceMemory, about("memory that the system really gave")]
    switches: Annotated[int, about("involuntary context switches during the samples")]
    faults: Annotated[int, about("page faults during the samples")]
    samples: Annotated[tuple[float, ...], about("seconds: one pass, for each sample")]
    rates: Annotated[
        dict[str, ProgramRate],
        about("every program that was timed in turn with the point, by name"),
    ]


_ROWS = ["twin_gbps", "twin_form", "efficiency"]  # of a decode without reads between passes
_DECODE = [
    "core_gbps",
    "core_form",
    "core_fraction",
    "core_level",
    "fma_gflops",
    "fma_fraction",
]
_STORE = [f"{copy}_{what}" for copy in ("copy", "copy_nt") for what in ("gbps", "form", "fraction")]
_ALONE = ["alone_gbps", "alone_form", "alone_fraction"]  # of a decode with reads between passes
_OF_STEP = ["memory_gbps", "memory_share", "parts", "step_times"]


def _where(field: str, value: Any, then: dict[str, Any], otherwise: dict[str, Any]) -> Any:
    """A part of a schema: `then` holds for points with that value, `otherwise` for others."""
    asked = {"properties": {"point": {"properties": {field: {"const": value}}}}}
    return {"if": asked, "then": then, "else": otherwise}


_BETWEEN = _where("between", 0, {"required": _ROWS}, {"required": _ALONE})
_STEPS = _where("op", STEP, {"required": _OF_STEP}, {"required": _STORE})
_CASES = _where("op", "decode", {"required": _DECODE} | _BETWEEN, _STEPS)
DecodeOrStore = Annotated[Profile, Meta(extra_json_schema=_CASES)]


def profile(visit: Record) -> Profile:
    names = [name for name in visit.traffic if not of_chase(name)]
    samples = {name: [s for s in visit.samples if s.program == name] for name in names}
    rates = {}
    for name, taken in samples.items():
        values = [gbps(visit.traffic[name].bytes_compulsory * s.passes, s.seconds) for s in taken]
        low, middle, high = map(float, np.quantile(values, (0.25, 0.5, 0.75)))
        rates[name] = ProgramRate(middle, low, high)
    facts = _facts(visit, samples["point"])
    facts["rates"] = {name: rate for name, rate in rates.items() if name not in (PACE, *COMPUTE)}
    facts["gbps"] = rates["point"].median
    facts |= _against(visit, samples, rates, facts["thread_skew"])
    if _point(visit).op == STEP:
        facts |= _of_parts(visit)
    for name, (over, under) in _L3.items() if SLICE in samples else ():
        if over in samples and under in samples:
            moved = visit.traffic[over].bytes_compulsory / visit.traffic[under].bytes_compulsory
            facts[name] = _times(moved, samples[under], samples[over])
    if ALONE in samples and not _point(visit).streamed:
        name = "queries_times" if _point(visit).shape.q_len > 1 else "scores_times"
        facts[name] = _times(1.0, samples["point"], samples[ALONE])
    if NEIGHBOUR in samples:
        found = visit.tails.get(NEIGHBOUR)
        facts |= {
            "neighbour_p50": found and found.p50,
            "neighbour_p99": found and found.p99,
            "neighbour_times": _times(1.0, samples[NEIGHBOUR], samples["point"]),
            "neighbour_gbps": visit.neighbour,
        }
    return Profile(**facts)


def _of_parts(visit: Record) -> dict[str, Any]:
    """A step beside its parts. Null if no round has samples of comparable length."""
    found, batch = by_round(visit), _point(visit).shape.batch
    each = median(sample.each for sample in visit.samples if sample.program == "point")
    rates = {"tokens_per_second": 1 / each, "tokens_per_second_of_batch": batch / each}
    if not found:
        return {**rates, "parts": {}, "step_times": None}
    parts = {
        name: PartOfStep(part.share.median, part.times.median) for name, part in found.parts.items()
    }
    return {**rates, "parts": parts, **enclosed("step_times", found.times)}


def _facts(visit: Record, samples: list[Sample]) -> dict[str, Any]:
    traffic, passes = visit.traffic["point"], [s.each for s in samples]
    alone, seconds = visit.tails.get("point"), median(passes)
    return {
        **{name: getattr(visit, name) for name in _ALIKE},
        **{name: getattr(traffic, name) for name in _BYTES},
        "latencies": latencies(visit) or UNSET,
        "kernel": visit.point.kernel,
        "schedule": visit.ran,
        "layers": visit.slices,
        "ai": traffic.ai,
        "flops": traffic.flops,
        "seconds_per_pass": seconds,
        "pass_p50": alone and alone.p50,
        "pass_p99": alone and alone.p99,
        "pass_max": alone and max(max(s.pass_seconds) for s in samples),
        "pass_note": untold([alone] if alone else [], seconds),
        "passes": sum(s.passes for s in samples),
        "thread_skew": median(s.skew for s in samples),
        "stage_share": dict(zip(("qk", "softmax", "pv"), visit.stage_share, strict=False)),
        "memory": SliceMemory(**visit.memory),
        "switches": sum(s.switches for s in samples),
        "faults": sum(s.faults for s in samples),
        "samples": tuple(passes),
    }


def _against(
    visit: Record,
    samples: dict[str, list[Sample]],
    rates: dict[str, ProgramRate],
    thread_skew: float,
) -> dict[str, Any]:
    """Compare a point with witnesses of the same rounds. A probe counts with its fastest form."""
    own, traffic, point = samples["point"], visit.traffic, _point(visit)
    # forms of a program together; each copy alone
    others = "point", SLICE, MEMORY, ROTATED, NEIGHBOUR, PACE
    found, without = dict[str, Any](), (*PARTS, *others, *COMPUTE)
    groups = grouped(
        (name if name == COPY_NT.name else Role.of(name).kind, name)
        for name in rates
        if name not in without
    )
    for key, forms in groups.items():
        best = max(forms, key=lambda name: rates[name].median)
        found[f"{key}_gbps"], found[f"{key}_form"] = rates[best].median, best
        moved = (
            traffic["point"].bytes_compulsory / traffic[best].bytes_compulsory
            if key != "twin"
            else 1.0
        )
        found["efficiency" if key == "twin" else f"{key}_fraction"] = _times(
            moved, samples[best], own
        )
    found.setdefault("dram_gbps", found.get("ceiling_gbps"))
    found.setdefault("dram_fraction", found.get("ceiling_fraction"))
    if point.op == "decode":
        found |= _computed(point, samples, traffic) | {"core_level": visit.core_level}
    return found | _limited(visit, samples, rates, found, thread_skew)


def _computed(
    point: Point, samples: dict[str, list[Sample]], traffic: dict[str, Traffic]
) -> dict[str, Any]:
    """The point beside its products of K and of V. Empty if not all of them were timed."""
    ops = default_library().computes(point.variant, point.kv_dtype)
    halves = [PACE if op == FLOPS else op for op in ops]
    if not samples.keys() >= {*halves}:
        return {}
    peaks = (
        median(traffic[name].flops * s.passes / s.seconds / GB for s in samples[name])
        for name in halves
    )
    flops = traffic["point"].flops
    shares = [
        _times(flops * part / traffic[name].flops, samples[name], samples["point"])
        for part, name in zip(point.shape.parts_of_flops, halves, strict=True)
    ]
    known = [share for share in shares if share is not None]
    return {
        "fma_gflops": harmonic_mean(peaks, weights=point.shape.parts_of_flops),
        "fma_fraction": sum(known) if len(known) == len(shares) else None,
    }


def _point(visit: Record) -> Point:
    assert isinstance(visit.point, Point)
    return visit.point


def _limited(
    visit: Record,
    samples: dict[str, list[Sample]],
    rates: dict[str, ProgramRate],
    found: dict[str, Any],
    thread_skew: float,
) -> dict[str, Any]:
    """What limits the point, from shares of the same rounds, with intervals over rounds."""
    op = _point(visit).op
    if op not in ATTENDS:
        made = Limited(Limit.UNKNOWN, Why.NO_DECODE)
        return {"bound": made.word, "bound_reason": made.why, "bound_by": made.by}
    own, moved = samples["point"], visit.traffic
    far = (visit.level or "unknown") in FAR
    programs = {
        "memory_share": (Limit.MEMORY, MEMORY if far or op == STEP else ""),
        "efficiency": (Limit.ROWS, found.get("twin_form", "")),
        "core_fraction": (Limit.CORE, found.get("core_form", "")),
    }
    row, shares = dict[str, Any](), {}
    for name, (what, program) in programs.items():
        if program not in samples:
            continue
        row |= dict.fromkeys((name, f"{name}_low", f"{name}_high"))
        if taken := quotients(samples[program], own):
            work = moved["point"].bytes_compulsory / moved[program].bytes_compulsory
            shares[what] = Estimate.of([(1.0 if what == Limit.ROWS else work) * t for t in taken])
            row |= enclosed(name, shares[what])
    if "memory_share" in row:
        row["memory_gbps"] = rates[MEMORY].median
    made = limit(shares, thread_skew, far)
    return row | {"bound": made.word, "bound_reason": made.why, "bound_by": made.by}


def _times(work: float, samples: list[Sample], own: list[Sample]) -> float | None:
    """The point's rate over the other's, if the point does `work` times as much; None if no round
    is comparable.
    """
    found = quotients(samples, own)
    return work * median(found) if found else None

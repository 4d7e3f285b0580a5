"""One point in depth: rates with their spread, efficiency, what binds it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Annotated, Any

import numpy as np

from kvbench.analysis.bound import bound
from kvbench.model import Sample, Visit
from kvbench.model.annotated import about
from kvbench.units import gbps


@dataclass(frozen=True, slots=True)
class Rate:
    """GB/s of compulsory bytes (GFLOP/s for fma) over the samples: median, and the middle half around it."""

    median: Annotated[float, about("GB/s: of the samples")]
    low: Annotated[float, about("GB/s: lower end of the middle half")]
    high: Annotated[float, about("GB/s: upper end of the middle half")]


def profile(visit: Visit) -> dict[str, Any]:
    """Everything `kvbench profile` reports. Keys are part of the interface."""
    samples = {name: [s for s in visit.samples if s.program == name] for name in visit.traffic}
    rates = {name: _rate(_gbps(visit, name, taken)) for name, taken in samples.items()}
    facts = _facts(visit, samples["point"])
    facts["rates"] = {name: asdict(rate) for name, rate in rates.items() if name != "fma"}
    facts["gbps"] = rates["point"].median
    facts |= _against(visit, samples, rates, facts["thread_skew"])
    return facts


def _facts(visit: Visit, samples: list[Sample]) -> dict[str, Any]:
    traffic, point = visit.traffic["point"], asdict(visit.point)
    passes = np.concatenate([s.pass_seconds for s in samples])
    return {
        "version": 1,
        "kernel": visit.point.kernel,
        "point": point,
        "ai": traffic.ai,
        "flops": traffic.flops,
        "bytes_compulsory": traffic.compulsory,
        "bytes_issued": traffic.issued,
        "bytes_line": traffic.line,
        "bytes_kv": traffic.kv,
        "bytes_scales": traffic.scales,
        "bytes_table": traffic.table,
        "seconds_per_pass": median(s.seconds / s.passes for s in samples),
        "pass_p50": float(np.quantile(passes, 0.5)),
        "pass_p99": float(np.quantile(passes, 0.99)),
        "pass_max": float(passes.max()),
        "passes": len(passes),
        "thread_skew": median(s.skew for s in samples),
        "stage_share": dict(zip(("qk", "softmax", "pv"), visit.stage_share, strict=False)),
        "max_abs_err": visit.max_abs_err,
        "layers": visit.layers,
        "slice_bytes": visit.slice_bytes,
        "memory": visit.memory,
        "switches": sum(s.switches for s in samples),
        "faults": sum(s.faults for s in samples),
        "samples": [s.seconds / s.passes for s in samples],
    }


def _against(
    visit: Visit, samples: dict[str, list[Sample]], rates: dict[str, Rate], thread_skew: float
) -> dict[str, Any]:
    """The point beside its witnesses of the same rounds. A probe counts with the better of its two forms."""
    own = _gbps(visit, "point", samples["point"])
    found: dict[str, Any] = {}
    for key, forms in _witnesses(rates).items():
        best = max(forms, key=lambda name: rates[name].median)
        found[f"{key}_gbps"], found[f"{key}_form"] = rates[best].median, best
        found[_FRACTION.get(key, f"{key}_fraction")] = median(np.divide(own, _gbps(visit, best, samples[best])))
    found.setdefault("dram_gbps", found.get("ceiling_gbps"))
    found.setdefault("dram_fraction", found.get("ceiling_fraction"))
    if "fma" in samples:
        found["fma_gflops"] = median(peaks := _gflops(visit, "fma", samples["fma"]))
        found["fma_fraction"] = median(np.divide(_gflops(visit, "point", samples["point"]), peaks))
    found["bound"] = bound(found.get("efficiency"), found.get("core_fraction"), thread_skew)
    return found


_FRACTION = {"twin": "efficiency"}


def _witnesses(rates: Iterable[str]) -> dict[str, list[str]]:
    """Programs by what they stand for: "twin" and "twin_ahead" are two forms of one probe."""
    groups: dict[str, list[str]] = {}
    for name in rates:
        if name not in ("point", "fma"):
            groups.setdefault(name.removesuffix("_ahead"), []).append(name)
    return groups


def _gflops(visit: Visit, name: str, samples: list[Sample]) -> list[float]:
    return [visit.traffic[name].flops * s.passes / s.seconds / 1e9 for s in samples]


def _gbps(visit: Visit, name: str, samples: list[Sample]) -> list[float]:
    return [gbps(visit.traffic[name].compulsory * s.passes, s.seconds) for s in samples]


def _rate(values: list[float]) -> Rate:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return Rate(float(middle), float(low), float(high))

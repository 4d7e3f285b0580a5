"""The claim that a slice which fits L3 is read faster than DRAM is: what one point says of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from kvbench.analysis.bound import CLOSE
from kvbench.analysis.interval import held
from kvbench.analysis.judge import COVERAGE, FASTER, LIMITS, SLOWER, apart
from kvbench.analysis.launches import Measured
from kvbench.model import Ceiling
from kvbench.regime import Regime
from kvbench.units import size

CONFIRMED, REFUTED, CORE, PRIVATE = "confirmed", "refuted", "core-bound", "private-cache"
NOT_TESTABLE, UNSTABLE = "not testable", "unstable"


@dataclass(frozen=True, slots=True)
class Claim:
    """word: empty where the point does not bear upon the claim."""

    word: str
    reason: str


def claim(found: Measured, regime: Regime, dram: Ceiling | None, lacking: str, reads: Ceiling | None = None) -> Claim:
    """`dram`: the read ceiling of the same threads; without it, `lacking` says why. `reads`: that of the footprint."""
    if regime.word in ("L1", "L2"):
        return Claim(PRIVATE, regime.reason)
    if regime.word == "unknown":
        return Claim(NOT_TESTABLE, regime.reason)
    if regime.word != "L3":
        return Claim("", "")
    if dram is None:
        return Claim(NOT_TESTABLE, lacking)
    if "core" not in found.rates:
        return Claim(NOT_TESTABLE, "there is no core roof")
    rates = found.rates["point"]
    for what, launches in (("the point", rates.launches), ("the DRAM read ceiling", len(dram.samples))):
        if not _enough(launches):
            return Claim(NOT_TESTABLE, f"{what} has {launches} launches, too few for a {COVERAGE:.0%} interval")
    if reads and _enough(len(reads.samples)) and not _way(dram, _medians(reads)):
        return Claim(NOT_TESTABLE, _lying(reads, dram, regime))
    return _judged(found, dram, _way(dram, rates.values))


def _enough(launches: int) -> bool:
    return held(launches, COVERAGE) >= COVERAGE


def _way(dram: Ceiling, rates: Sequence[float]) -> str:
    """Which way launches of these rates differ from those of reads from DRAM; "" where nothing shows.

    Also reads that are slower are reads of a cache: some memory is faster than the cache before it."""
    found = apart(*(-np.log(each) for each in (_medians(dram), rates)))
    return next((way for way in (FASTER, SLOWER) if found.shows(way, LIMITS.rate, LIMITS.point)), "")


def _medians(ceiling: Ceiling) -> list[float]:
    return [median(launch) for launch in ceiling.samples]


def _lying(reads: Ceiling, dram: Ceiling, regime: Regime) -> str:
    return (
        f"reads of {size(reads.probe.bytes)} ({_rate(reads)}) run no faster than from DRAM ({_rate(dram)}): "
        f"the L3 serves less than it declares, or strangers share it ({regime.reason})"
    )


def _judged(found: Measured, dram: Ceiling, way: str) -> Claim:
    rate, core = found.rates["point"], found.rates["core"].median
    ceiling = f"{dram.median:.3g} GB/s ({dram.low:.3g}..{dram.high:.3g}) read from DRAM"
    against = f"{rate.median:.3g} GB/s ({rate.low:.3g}..{rate.high:.3g}) against {ceiling} by the same threads"
    if way == FASTER:
        return Claim(CONFIRMED, against)
    if core <= dram.high or found.shares["core"].median >= CLOSE:
        return Claim(CORE, f"{against}; the core alone allows {core:.3g} GB/s")
    return Claim(REFUTED if way == SLOWER else UNSTABLE, against)


def _rate(ceiling: Ceiling) -> str:
    return f"{ceiling.median:.3g} GB/s, {ceiling.low:.3g}..{ceiling.high:.3g}"

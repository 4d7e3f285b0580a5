"""Judge the claim that a slice which fits L3 is read faster than memory, for one point."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kvbench.analysis.judge import FASTER, LIMITS, SLOWER, paired
from kvbench.analysis.limits.bounds import CLOSE, beats
from kvbench.analysis.looks import chance, needs
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import program


class Claim(StrEnum):
    """The verdict of a point on the claim."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    CORE = "core-bound"
    PRIVATE = "private-cache"
    NOT_TESTABLE = "not testable"
    UNSTABLE = "unstable"


CONFIRMED, REFUTED, CORE, PRIVATE, NOT_TESTABLE, UNSTABLE = Claim


class Grounds(StrEnum):
    """The reason for the verdict. The row has the ratios behind it."""

    READS = "reads of memory beside it"  # the decode over plain reads of memory decides
    PRIVATE = "it lies in a private cache"
    NO_CACHES = "no cache is known"
    NOT_TIMED = "not timed"  # reads of its slice or of memory were not timed beside it
    FEW = "too few launches"
    NO_FASTER = "L3 is read no faster than memory"
    CORE_BEATEN = "faster than its core speed"  # so it is unknown whether the core limits it
    CORE = "the core allows no more"


@dataclass(frozen=True, slots=True)
class Claimed:
    """The verdict with its reason.

    allowed: the rate that the core alone allows, over plain reads of memory. launches: about how
    many would decide, if more launches may; else None.
    """

    word: Claim
    why: Grounds
    allowed: float | None = None
    launches: int | None = None


def claim(found: PointRates, regime: str, most: int = 0) -> Claimed | None:
    """The verdict of a point; None if the claim does not concern it.

    All ratios come from the same rounds. For the machine: plain reads of the slice over those of
    memory. For the kernel: the decode over plain reads of memory. most: launches that the run can
    have, if launches are added until questions are decided; else 0.
    """
    if regime in ("L1", "L2"):
        return Claimed(PRIVATE, Grounds.PRIVATE)
    if regime == "unknown":
        return Claimed(NOT_TESTABLE, Grounds.NO_CACHES)
    if regime != "L3":
        return None
    if found.near is None or not found.core or program.MEMORY not in found.shares:
        return Claimed(NOT_TESTABLE, Grounds.NOT_TIMED)
    launches = found.near.launches
    if 0.5**launches > chance(launches, most):  # the chance that all lie on one side
        return Claimed(NOT_TESTABLE, Grounds.FEW, launches=_needs(found.near))
    if not _way(found.near, most):
        return Claimed(NOT_TESTABLE, Grounds.NO_FASTER, launches=_needs(found.near))
    return _judged(found, found.shares[found.core], most)


def _judged(found: PointRates, core: Estimate, most: int) -> Claimed:
    """The verdict on the kernel. `core`: its share of the core speed."""
    reads = found.shares[program.MEMORY]
    way, allowed = _way(reads, most), reads.median / core.median
    if way == FASTER:
        return Claimed(CONFIRMED, Grounds.READS, allowed)
    if beats(core):
        return Claimed(NOT_TESTABLE, Grounds.CORE_BEATEN, allowed)
    if allowed <= 1 or core.median >= CLOSE:
        return Claimed(CORE, Grounds.CORE, allowed)
    if way == SLOWER:
        return Claimed(REFUTED, Grounds.READS, allowed)
    return Claimed(UNSTABLE, Grounds.READS, allowed, _needs(reads))


def _needs(ratio: Estimate) -> int | None:
    return needs(ratio.median, ratio.low, ratio.high, ratio.launches)


def _way(ratio: Estimate, most: int) -> str:
    """The direction in which launches differ from 1: FASTER above 1; "" if none is certain.

    Slower reads also show that a cache was read: on some machines memory is faster than the last
    cache.
    """
    found = paired(-np.log(ratio.values))
    rate = chance(ratio.launches, most)
    return next((way for way in (FASTER, SLOWER) if found.shows(way, rate, LIMITS.point)), "")

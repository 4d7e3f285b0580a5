"""What a point's rate says beside what it is held against: what limits it, whether L3 feeds it
faster than memory would, and whether it exceeds a roof. That is a measurement too, of another walk
and often of another footprint: where that explains nothing, the point is suspect.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kvbench.analysis.judge import FASTER, LIMITS, SLOWER, paired
from kvbench.analysis.looks import chance, needs
from kvbench.analysis.measured.ceilings import REACH
from kvbench.analysis.measured.estimates import SPREAD, Estimate, enough
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Ceiling, Fact, Role, Traffic, program
from kvbench.regime import NO_LEVEL, Regime
from kvbench.units import GB, counted, size

CLOSE = 0.90  # of a witness: at it
SKEW = 0.10  # the slowest thread's lead over the mean: waiting, not working

SUSPECT = "suspect: "  # how a reason begins that explains nothing
# of an excess over what the point may well be level with: of many such points chance lifts some so
# far
_PARITY = 0.02
_OTHER_PAGES = 0.5  # of the memory, that lies on huge pages here and not there
_MOST = 2.0  # times a roof: beyond it nothing explains an excess
_HALF = 0.45  # of the bytes are stores: a copy's share is a half

_WITNESSES = {
    "twin": "plain twin",
    "twin_ahead": "twin in its own schedule",
    "copy": "copy",
    "copy_nt": "copy",
}

CONFIRMED, REFUTED, CORE, PRIVATE = "confirmed", "refuted", "core-bound", "private-cache"
NOT_TESTABLE, UNSTABLE = "not testable", "unstable"


@dataclass(frozen=True, slots=True)
class Against:
    """A point and what it is held against. `traffic`: of a pass, by program. `huge`: share of its
    memory on huge pages.
    `most`: launches that the run can have where some are added until questions are decided, else 0.
    """

    found: PointRates
    traffic: Mapping[str, Traffic]
    stores: bool
    regime: Regime
    footprint: float
    ceiling: Ceiling | None = None
    computed: Ceiling | None = None
    peak: Fact | None = None
    huge: float | None = None
    core_level: str = ""
    most: int = 0
    appends: bool = False

    @property
    def rate(self) -> Estimate:
        return self.found.rates["point"]

    @property
    def above_ceiling(self) -> bool:
        return self.ceiling is not None and self.rate.low > self.ceiling.high


# ---- what limits it ------------------------------------------------------------------------------


def bound(
    efficiency: float | None, core_fraction: float | None, thread_skew: float, beaten: bool = False
) -> str:
    """memory: at the twin. core: at the core roof. scheduling: far from both while threads wait for
    each other. A roof that is `beaten` by the point itself says nothing.
    """
    if efficiency is None or core_fraction is None or beaten:
        return "unknown"
    if max(efficiency, core_fraction) >= CLOSE:
        return "memory" if efficiency >= core_fraction else "core"
    return "scheduling" if thread_skew > SKEW else "unknown"


def reached(efficiency: float, witness: str) -> str:
    """Of what stands beside a point. One that beats its twin in all forms is at the reads: more
    there cannot be.
    """
    reads = Role.of(witness).kind == "twin"
    return (
        "at the reads"
        if reads and efficiency > 1
        else f"{efficiency:.0%} of its {_WITNESSES.get(witness, witness)}"
    )


def evidence(
    decode: bool,
    witness: str | None,
    numbers: tuple[float | None, float | None, float],
    level: str = "",
    beaten: str = "",
    uneven: int = 0,
) -> str:
    """The numbers behind it, efficiency, core fraction and thread skew, for a point beside its
    `witness`: a form of the twin of a decode, or of a store's copy; and what would tell what limits
    a decode where they do not. `level`: the cache that the core roof's data stays in. `beaten`: a
    roof; `uneven`: launches of samples that are unlike in length.
    """
    (efficiency, core_fraction, thread_skew), where = numbers, f" in {level}" if level else ""
    said = [
        "nothing was measured beside it"
        if efficiency is None
        else reached(efficiency, witness or ""),
        "no core roof" if core_fraction is None else f"{core_fraction:.0%} of its core roof{where}",
        # none of a single thread
        f"slowest thread {thread_skew:.0%} over the mean" if thread_skew else "",
        f"the point itself beats its {beaten}, which so limits nothing" if beaten else "",
        f"samples of unlike length in {counted(uneven, 'launch')}" if uneven else "",
    ]
    if decode and (efficiency is None or core_fraction is None):
        said.append("longer samples on an idle machine would tell")
    elif decode and bound(*numbers, bool(beaten)) == "unknown":
        more = "more launches on an idle machine would tell"
        said.append(more if beaten else "far from both: kvbench profile shows its stages")
    return ", ".join(filter(None, said))


def beaten(found: PointRates) -> str:
    """What is slower than the point itself, though it does less, by more than chance can do it;
    else empty.
    """
    for name, what in (
        (program.CORE, "core roof"),
        (found.witness, Role.of(found.witness or "").kind),
    ):
        share = found.shares.get(name or "")
        if share and _beats(share):
            return what
    return ""


def _beats(share: Estimate) -> bool:
    return not _chance(share.low, share.launches)


# ---- above a roof --------------------------------------------------------------------------------


def above(point: Against) -> tuple[str, str]:
    """The roof exceeded that is hardest to explain, and the reason, which begins with SUSPECT where
    nothing explains it and names the others; both empty where the point exceeds none.
    """
    found = []
    for roof, reason, times in _exceeded(point):
        if times > _MOST and not reason.startswith(SUSPECT):
            reason = f"{SUSPECT}more than this, which explains no {times:.1f} times: {reason}"
        found.append((roof, reason))
    if not found:
        return "", ""
    (roof, reason), *others = sorted(found, key=lambda above: not above[1].startswith(SUSPECT))
    also = ", ".join(f"its {other}" for other, _ in others)
    return roof, reason + (f"; also above {also}" if also else "")


def _exceeded(point: Against) -> Iterator[tuple[str, str, float]]:
    """Those that lie, with the high end of their interval, below the low end of the point's: so
    many times.
    """
    shares, rate, fact = point.found.shares, point.rate, point.peak
    peak = fact.value if fact and isinstance(fact.value, int | float) else 0
    if fact and point.regime.word == "DRAM" and 0 < peak < rate.low:
        reads = point.ceiling.high if point.ceiling else 0.0
        yield "theoretical DRAM peak", _over_peak(point, fact, peak), rate.low / max(peak, reads)
    gflops = point.traffic["point"].flops / GB / point.found.seconds["point"].high
    if point.computed and (times := gflops / point.computed.high) > 1:
        op = point.computed.probe.op
        name = "FMA" if op == "flops" else op
        yield f"{name} peak", _unexplained(point, times, "its instructions alone are slower"), times
    if program.CORE in shares and (times := shares[program.CORE].low) > 1:
        why = _unexplained(
            point, times, "the same kernel walks a window in a private cache more slowly"
        )
        if point.regime.word in ("L1", "L2") and point.regime.word <= (point.core_level or "L2"):
            why = (
                f"its data lies in {point.regime.word}, as near as the window that the core roof"
                " walks"
            )
        yield "core roof", why, times
    if point.found.witness and (times := shares[point.found.witness].low) > 1:
        yield "copy" if point.stores else "twin", _over_witness(point, point.found.witness), times
    if point.ceiling and point.above_ceiling:
        times = rate.low / point.ceiling.high
        yield f"{point.ceiling.probe.op} ceiling", _over_ceiling(point, point.ceiling), times


def _over_peak(point: Against, fact: Fact, peak: float) -> str:
    if point.ceiling and point.ceiling.low > peak:
        walked = size(point.ceiling.probe.bytes)
        return (
            f"reads of {walked} exceed it too: the memory runs faster than its modules are"
            " declared to"
        )
    if fact.confidence != "high":
        return f"the peak is in doubt: {fact.note or fact.source}"
    held = f"caches hold more of its {size(point.footprint)} than thought"
    return f"{SUSPECT}{held}, or the modules are faster than declared"


def _over_witness(point: Against, witness: str) -> str:
    share = point.found.shares[witness].low
    if few := _few_stores(point, share):
        return few
    if point.ceiling and not point.above_ceiling and share > 1 + _PARITY:
        what = "copy of the same rounds" if point.stores else "twin"
        return (
            f"the {point.ceiling.probe.op} ceiling of its footprint allows it: its {what} walks"
            " more slowly"
        )
    return _unexplained(
        point, share, f"{'copies' if point.stores else 'its reads'} alone are slower"
    )


def _over_ceiling(point: Against, ceiling: Ceiling) -> str:
    walked, witness = ceiling.probe.bytes, point.found.witness
    if (
        point.huge is not None
        and ceiling.huge is not None
        and point.huge - ceiling.huge > _OTHER_PAGES
    ):
        return (
            f"{point.huge:.0%} of its memory is on huge pages, but {ceiling.huge:.0%} of the"
            " ceiling's"
        )
    own = size(point.footprint)
    if point.regime.word in NO_LEVEL and walked > point.footprint:
        return (
            f"between levels, where less is faster: it walks {own}, the ceiling's probe"
            f" {size(walked)}"
        )
    if few := _few_stores(point, point.rate.low / ceiling.high):
        return few
    if point.regime.word == "DRAM" and walked > REACH * point.footprint:
        return (
            f"{SUSPECT}its {own} may lie nearer than DRAM: the ceiling's probe walks {size(walked)}"
        )
    if (
        witness
        and point.found.rates[witness].median > ceiling.high
        and point.found.shares[witness].low <= 1
    ):
        same = (
            "a copy of the same rounds"
            if point.stores
            else "its twin, the same reads and nothing else,"
        )
        return f"{same} exceeds it too: the ceiling's probe walks more slowly"
    if len(ceiling.samples) > 1 and not ceiling.stable:
        return f"{SUSPECT}the launches of the ceiling itself disagree"
    return _unexplained(
        point, point.rate.low / ceiling.high, f"its {own} may be nearer than thought"
    )


def _few_stores(point: Against, times: float) -> str:
    """A narrow dtype stores less than it reads, where a copy does both alike. If loads cost
    nothing, it would be faster by as much as it stores less; no more than that. What an append
    reads lies in caches: where a copy fetches a line that it reads, fetches the one that it stores
    to, and writes that back, an append spares the first.
    """
    own = point.traffic["point"]
    stored = (
        (own.bytes_kv + own.bytes_scales) / own.bytes_compulsory if own.bytes_compulsory else 1.0
    )
    if point.stores and stored < _HALF and times * stored <= 0.5:
        return f"{stored:.0%} of its bytes are stores, but 50% of a copy's: stores are dearer"
    if point.appends and times * stored <= 0.75:
        return "what it stores comes from a cache, what a copy stores from as far as it goes"
    return ""


def _unexplained(point: Against, times: float, what: str) -> str:
    """Suspect, unless chance can do it: `times` is the low end of the point's interval over the
    roof.
    """
    return _chance(times, point.rate.launches) or f"{SUSPECT}{what}"


def _chance(times: float, launches: int) -> str:
    if times <= 1 + _PARITY:
        return (
            f"less than {_PARITY:.0%} over the roof: level with it, as chance has it among many"
            " points"
        )
    if not enough(launches) and times <= 1 + SPREAD:
        return f"too few launches ({launches}) to tell it from chance"
    return ""


# ---- the claim that a slice which fits L3 is read faster than memory -----------------------------


def claim(point: Against) -> tuple[str, str]:
    """The word and the reason; both empty where the point does not bear upon the claim. All ratios
    are of times of the same rounds: of the machine, plain reads of the slice over those of memory;
    of the kernel, its own.
    """
    found, regime = point.found, point.regime
    if regime.word in ("L1", "L2"):
        return PRIVATE, regime.reason
    if regime.word == "unknown":
        return NOT_TESTABLE, regime.reason
    if regime.word != "L3":
        return "", ""
    if found.near is None or not found.shares.keys() >= {program.MEMORY, program.CORE}:
        return NOT_TESTABLE, "no reads of its slice and of memory were timed beside it"
    launches = found.near.launches
    if 0.5**launches > chance(launches, point.most):  # so often all lie on one side by chance
        return NOT_TESTABLE, f"the point has {counted(launches, 'launch')}, too few to tell"
    if not _way(found.near, point.most):
        said = (
            f"plain reads of its {size(point.footprint)} run at {_times(found.near)} those of"
            " memory"
        )
        return (
            NOT_TESTABLE,
            f"{said}: the L3 serves less than it declares, or strangers share it ({regime.reason})",
        )
    return _judged(found, found.near, point.most)


def decided_by(point: Against) -> int | None:
    """About how many launches the claim takes, where more of them may decide it."""
    found, (word, _) = point.found, claim(point)
    if point.regime.word != "L3" or found.near is None or program.MEMORY not in found.shares:
        return None
    ratio = found.shares[program.MEMORY] if word == UNSTABLE else found.near
    settled = (
        word not in (UNSTABLE, NOT_TESTABLE) or word == NOT_TESTABLE and _way(ratio, point.most)
    )
    return None if settled else needs(ratio.median, ratio.low, ratio.high, ratio.launches)


def _judged(found: PointRates, near: Estimate, most: int) -> tuple[str, str]:
    reads, core = found.shares[program.MEMORY], found.shares[program.CORE]
    rotated = found.shares.get(program.ROTATED)
    own = f"{_times(rotated)} as fast, " if rotated else ""
    said = f"plain reads run {_times(near)} as fast from L3 as from memory; "
    said += f"the decode {own}at {_times(reads)} plain reads of memory"
    way, allowed = _way(reads, most), reads.median / core.median
    if way == FASTER:
        return CONFIRMED, said
    if _beats(core):
        return (
            NOT_TESTABLE,
            f"{said}; the point itself beats its core roof: whether the core limits it is unknown",
        )
    if allowed <= 1 or core.median >= CLOSE:
        return CORE, f"{said}; the core alone allows {allowed:.2f} times plain reads of memory"
    return REFUTED if way == SLOWER else UNSTABLE, said


def _way(ratio: Estimate, most: int) -> str:
    """Which way launches differ from 1: FASTER above it; "" where nothing shows. Also reads that
    are slower are reads of a cache: some memory is faster than the cache before it.
    """
    found = paired(-np.log(ratio.values))
    rate = chance(ratio.launches, most)
    return next((way for way in (FASTER, SLOWER) if found.shows(way, rate, LIMITS.point)), "")


def _times(ratio: Estimate) -> str:
    return f"{ratio.median:.2f} times ({ratio.low:.2f}..{ratio.high:.2f})"

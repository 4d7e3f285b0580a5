"""Points that are faster than what should bound them: which roof they exceed, and why that can be.

A roof is a measurement too, of another walk and often of another footprint. Where that explains nothing, a point that
exceeds it is suspect.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvbench.analysis.ceilings import REACH
from kvbench.analysis.launches import Estimate, Measured
from kvbench.analysis.scatter import SPREAD
from kvbench.model import Ceiling, Fact, Traffic
from kvbench.regime import NO_LEVEL, Regime
from kvbench.units import GB, size

SUSPECT = "suspect: "  # how a reason begins that explains nothing
PEAK, FMA, CORE, TWIN, COPY = "theoretical DRAM peak", "FMA peak", "core roof", "twin", "copy"

_PARITY = 0.02  # of an excess over what the point may well be level with: of many such points chance lifts some so far
_OTHER_PAGES = 0.5  # of the memory, that lies on huge pages here and not there
_HALF = 0.45  # of the bytes are stores: a copy's share is a half


@dataclass(frozen=True, slots=True)
class Above:
    """roof: empty where the point exceeds none. reason: begins with SUSPECT where nothing explains it."""

    roof: str
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """A point and what it is held against. `traffic`: of a pass, by program. `witness`: the better form of its twin, or
    of the copy beside a store. `huge`: share of its memory on huge pages."""

    found: Measured
    traffic: Mapping[str, Traffic]
    stores: bool
    witness: str | None
    regime: Regime
    footprint: float
    ceiling: Ceiling | None
    fma: Ceiling | None
    peak: Fact | None
    huge: float | None

    @property
    def rate(self) -> Estimate:
        return self.found.rates["point"]

    @property
    def above_ceiling(self) -> bool:
        return self.ceiling is not None and self.rate.low > self.ceiling.high


def above(held: Held) -> Above:
    """The roof exceeded that is hardest to explain; the others are named in its reason."""
    found = sorted(_exceeded(held), key=lambda above: not above.reason.startswith(SUSPECT))
    if not found:
        return Above("", "")
    others = ", ".join(f"its {other.roof}" for other in found[1:])
    return Above(found[0].roof, found[0].reason + (f"; also above {others}" if others else ""))


def _exceeded(held: Held) -> Iterator[Above]:
    """A roof is exceeded where the low end of the point's interval lies above the high end of the roof's."""
    shares, rate, peak = held.found.shares, held.rate, held.peak.value if held.peak else None
    if peak and held.regime.word == "DRAM" and rate.low > peak:
        yield Above(PEAK, _over_peak(held, held.peak))
    gflops = held.traffic["point"].flops / GB / held.found.seconds["point"].high
    if held.fma and gflops > held.fma.high:
        yield Above(FMA, _unexplained(held, gflops / held.fma.high, "multiply-adds alone are slower"))
    if "core" in shares and shares["core"].low > 1:
        yield Above(CORE, _over_core(held, shares["core"].low))
    if held.witness and shares[held.witness].low > 1:
        yield Above(COPY if held.stores else TWIN, _over_witness(held, held.witness))
    if held.ceiling and held.above_ceiling:
        yield Above(f"{held.ceiling.probe.op} ceiling", _over_ceiling(held, held.ceiling))


# ---- reasons ---------------------------------------------------------------------------------------------------------


def _over_peak(held: Held, peak: Fact) -> str:
    if held.ceiling and held.ceiling.low > peak.value:
        walked = size(held.ceiling.probe.bytes)
        return f"reads of {walked} exceed it too: the memory runs faster than its modules are declared to"
    if peak.confidence != "high":
        return f"the peak is in doubt: {peak.note or peak.source}"
    return (
        f"{SUSPECT}caches hold more of its {size(held.footprint)} than thought, or the modules are faster than declared"
    )


def _over_core(held: Held, share: float) -> str:
    if held.regime.word in ("L1", "L2"):
        return f"its data lies in {held.regime.word}, as near as the window that the core roof walks"
    return _unexplained(held, share, "the same kernel walks a window in a private cache more slowly")


def _over_witness(held: Held, witness: str) -> str:
    share, own, other = held.found.shares[witness].low, held.traffic["point"], held.traffic[witness]
    ends = 1 - other.compulsory / own.compulsory if own.compulsory else 0.0
    if not held.stores and 1 + _PARITY < share <= 1 / (1 - ends):
        return f"{ends:.0%} of its bytes are queries and outputs, which its twin leaves out"
    if held.stores and (few := _few_stores(held)):
        return few
    if held.ceiling and not held.above_ceiling and share > 1 + _PARITY:
        what = "copy of the same rounds" if held.stores else "twin"
        return f"the {held.ceiling.probe.op} ceiling of its footprint allows it: its {what} walks more slowly"
    return _unexplained(held, share, f"{'copies' if held.stores else 'its reads'} alone are slower")


def _over_ceiling(held: Held, ceiling: Ceiling) -> str:
    walked, witness = ceiling.probe.bytes, held.witness
    if held.huge is not None and ceiling.huge is not None and held.huge - ceiling.huge > _OTHER_PAGES:
        return f"{held.huge:.0%} of its memory is on huge pages, but {ceiling.huge:.0%} of the ceiling's"
    if held.regime.word in NO_LEVEL and walked > held.footprint:
        return (
            f"between levels, where less is faster: it walks {size(held.footprint)}, the ceiling's probe {size(walked)}"
        )
    if held.stores and (few := _few_stores(held)):
        return few
    if held.regime.word == "DRAM" and walked > REACH * held.footprint:
        return f"{SUSPECT}its {size(held.footprint)} may lie nearer than DRAM: the ceiling's probe walks {size(walked)}"
    if witness and held.found.rates[witness].median > ceiling.high and held.found.shares[witness].low <= 1:
        same = "a copy of the same rounds" if held.stores else "its twin, the same reads and nothing else,"
        return f"{same} exceeds it too: the ceiling's probe walks more slowly"
    if len(ceiling.samples) > 1 and not ceiling.stable:
        return f"{SUSPECT}the launches of the ceiling itself disagree"
    return _unexplained(held, held.rate.low / ceiling.high, f"its {size(held.footprint)} may be nearer than thought")


def _few_stores(held: Held) -> str:
    """A narrow dtype stores less than it reads, where a copy does both alike."""
    own = held.traffic["point"]
    stored = (own.kv + own.scales) / own.compulsory if own.compulsory else 1.0
    return f"{stored:.0%} of its bytes are stores, but 50% of a copy's: stores are dearer" if stored < _HALF else ""


def _unexplained(held: Held, times: float, what: str) -> str:
    """Suspect, unless chance can do it: `times` is the low end of the point's interval over the roof."""
    if times <= 1 + _PARITY:
        return f"less than {_PARITY:.0%} over the roof: level with it, as chance has it among many points"
    if not held.rate.enough and times <= 1 + SPREAD:
        return f"too few launches ({held.rate.launches}) to tell it from chance"
    return f"{SUSPECT}{what}"

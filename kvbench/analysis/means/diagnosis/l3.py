"""Whether a decode from L3 is faster than memory, and how much faster plain reads are."""

from dataclasses import dataclass

import pandas as pd

from kvbench.analysis.limits.bounds import CONFIRMED, CORE, NOT_TESTABLE, PRIVATE, REFUTED
from kvbench.analysis.means.diagnosis.bandwidth import decodes_of, why_not
from kvbench.analysis.means.diagnosis.values import Interval, Untested
from kvbench.analysis.means.models import clearest
from kvbench.model import Machine
from kvbench.regime import suggestion

_SEVERAL = 2  # points: of many that the core limits, one may look otherwise by chance
_KERNELS = 4  # that are told


@dataclass(frozen=True, slots=True)
class L3Untested:
    """`private`: points in caches that a core has to itself. `closed`: why no footprint is in L3, and what to do."""

    why: Untested
    private: int = 0
    closed: str = ""


@dataclass(frozen=True, slots=True)
class L3Reads:
    """Plain reads of a slice in L3 over those of memory: of the middle point with so many threads."""

    threads: int
    ratio: Interval


@dataclass(frozen=True, slots=True)
class L3Decodes:
    """The clearest point of a kernel. `word`: of analysis.bounds, as in the table of points."""

    dtype: str
    variant: str
    group: int
    ratio: Interval
    word: str


@dataclass(frozen=True, slots=True)
class L3Verdict:
    """`counts`: points by their word, the leading word first. `doubtful`: the size of L3 is in doubt.

    `kernels`: those that gain most first; beside the same decode from memory, or else (`plain`) beside plain reads of
    memory. Where no point could be tested, `example` is the name of one, and why.
    """

    counts: tuple[tuple[str, int], ...]
    doubtful: bool
    reads: tuple[L3Reads, ...] = ()
    kernels: tuple[L3Decodes, ...] = ()
    plain: bool = False
    example: tuple[str, str] = ("", "")


def l3(points: pd.DataFrame, machine: Machine) -> L3Untested | L3Verdict:
    inside, decodes = inside_l3(points), decodes_of(points)
    if inside.empty:
        closed = suggestion(machine, machine.allowed)
        why = why_not(decodes, Untested.CLOSED if closed else Untested.ELSEWHERE)
        return L3Untested(why, int((decodes["l3"] == PRIVATE).sum()), closed.removeprefix("not testable: "))
    counts, doubtful = _leading_first(inside["l3"].value_counts()), bool((inside["regime_confidence"] != "high").any())
    tested = inside[inside["l3"] != NOT_TESTABLE]
    if tested.empty:
        row = clearest(inside)
        return L3Verdict(counts, doubtful, example=(row["short"], row["l3_reason"]))
    gain, sets = gain_of(tested), tested.groupby("threads")
    reads = tuple(L3Reads(int(count), Interval.of(middle(own), "l3_reads")) for count, own in sets)
    return L3Verdict(counts, doubtful, reads, _kernels(tested, gain), gain == "l3_decode")


def inside_l3(points: pd.DataFrame) -> pd.DataFrame:
    """Decodes that L3 serves, whatever their verdict."""
    decodes = decodes_of(points)
    return decodes[(decodes["regime"] == "L3") & ~decodes["l3"].isin(["", PRIVATE])]


def gain_of(tested: pd.DataFrame) -> str:
    """The column that tells what a decode gains from L3: over the same from memory where that was timed, else over reads."""
    return "l3_gain" if tested["l3_gain"].notna().all() else "l3_decode"


def middle(points: pd.DataFrame) -> pd.Series:
    """The point whose reads gain as much from L3 as those of the middle one."""
    return points.sort_values("l3_reads").iloc[(len(points) - 1) // 2]


def _kernels(tested: pd.DataFrame, gain: str) -> tuple[L3Decodes, ...]:
    """Of each the clearest point at the most threads."""
    groups = (own for _, own in tested.groupby(["dtype", "variant", "group"], sort=False))
    rows = [clearest(own[own["threads"] == own["threads"].max()]) for own in groups]
    return tuple(
        L3Decodes(row["dtype"], row["variant"], int(row["group"]), Interval.of(row, gain), row["l3"])
        for row in sorted(rows, key=lambda row: -row[gain])[:_KERNELS]
    )


def _leading_first(counts: pd.Series) -> tuple[tuple[str, int], ...]:
    """The word of most points; but those that the core limits say nothing against what several others settle."""
    others = counts.drop(CORE, errors="ignore")
    settled = len(others) and others.index[0] in (CONFIRMED, REFUTED) and others.iloc[0] >= _SEVERAL
    first = (others if settled else counts).index[0]
    return tuple((str(word), int(counts[word])) for word in sorted(counts.index, key=lambda word: word != first))

"""One answer to one question: what it is about, what it is held against, a figure with its
interval, how it was measured, and whether it is decided.

What shows an answer shows its values. It chooses nothing, compares nothing and divides nothing.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Self

from kvbench.model.annotated import about


class Unit(StrEnum):
    """Of a figure."""

    TOKENS = "tokens/s"
    GBPS = "GB/s"
    TIMES = "times"  # a ratio of rates: above 1 the subject is faster
    LENGTH = "times as long"  # a ratio of times: above 1 the subject takes longer
    SHARE = "share"  # of what it is held against
    SECONDS = "seconds"
    NS = "ns"
    CONTEXT = "tokens"


class Held(StrEnum):
    """What a figure is held against."""

    NOTHING = ""
    MEMORY = "plain reads of memory"
    ROWS = "reads of its own rows"
    CORE = "its core speed"
    FAR = "the same decode from memory"
    ALONE = "the same with nothing read in between"
    POINT = "another point"
    IDLE = "the idle latency"
    READS = "plain reads of as much"
    UNCHASED = "its rate without a chase"
    OFF = "the same without prefetches"
    STEP = "a decode step"
    PARTS = "its parts, each alone"


class Basis(StrEnum):
    """How what is compared was measured."""

    ROUNDS = "same rounds"
    APART = "visits of their own"


class State(StrEnum):
    """Whether the question is answered."""

    DECIDED = "decided"
    LEVEL = "level"
    OPEN = "open"
    NOT_TESTED = "not tested"


class Reason(StrEnum):
    """Why a state is what it is. `facts` of the answer have the particulars."""

    NONE = ""
    NOT_MEASURED = "not measured"
    TOO_FEW = "too few launches"
    NO_MODEL = "no point of a known model"
    NO_CACHE = "cache sizes unknown"
    NO_L3 = "no point lies in L3"
    CLOSED = "no footprint tests L3 with so many threads"
    NOT_FASTER = "L3 is read no faster than memory"
    SUSPECT = "faster than its limit"
    # what limits a decode
    MEMORY = "memory"
    ROWS = "reads of its rows"
    CORE = "core"
    BOTH = "both"
    NEITHER = "neither"
    NOT_CLEAR = "not clear"
    # why a step is not the sum of its parts
    LONGER = "a part takes longer within the step"
    SHORTER = "a part takes less time within the step"
    CACHED = "a part stays in a cache alone"
    NO_PART = "no part alone"
    DRIFTS = "the idle latency drifts"


@dataclass(frozen=True, slots=True)
class Figure:
    """A median over launches with its interval. A computed one has no interval."""

    value: Annotated[float, about("in `unit`: median over launches")]
    low: Annotated[float, about("in `unit`: lower end of its interval")]
    high: Annotated[float, about("in `unit`: upper end of its interval")]
    unit: Annotated[
        Unit, about("tokens/s, GB/s, times, times as long, share, seconds, ns or tokens")
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """`subject` first names the point whose figure it is; several where they are level."""

    question: Annotated[str, about("a word for it, the same in every run")]
    of: Annotated[str, about("what it is asked of, such as a dtype or a layout; or empty")]
    subject: Annotated[tuple[str, ...], about("names of the points it is about")]
    figure: Annotated[Figure | None, about("what was found; null where nothing was")]
    held: Annotated[Held, about("what it is held against; empty: nothing")] = Held.NOTHING
    against: Annotated[str, about("name of the point it is held against, or empty")] = ""
    basis: Annotated[Basis, about("same rounds, or visits of their own")] = Basis.APART
    state: Annotated[State, about("decided, level, open or not tested")] = State.DECIDED
    reason: Annotated[Reason, about("why, as a word; else empty")] = Reason.NONE
    facts: Annotated[dict[str, str | float], about("particulars of the reason")] = field(
        default_factory=dict
    )
    launches: Annotated[int, about("that stand behind it")] = 0
    # two-sided, of so large a difference or more if there were none; after correction `share`
    chance: Annotated[float | None, about("probability: of this by chance, uncorrected")] = None
    corrected: Annotated[
        float | None, about("probability: after correction over all that the page asks")
    ] = None

    @classmethod
    def untested(cls, question: str, reason: Reason, of: str = "", **facts: str | float) -> Self:
        return cls(question, of, (), None, state=State.NOT_TESTED, reason=reason, facts=facts)

    @property
    def tested(self) -> bool:
        return self.figure is not None

    def because(self, state: State, reason: Reason = Reason.NONE, **facts: str | float) -> Self:
        return replace(self, state=state, reason=reason, facts=self.facts | facts)

"""One answer to one question: its subject, what that is compared with, a figure with its interval,
how it was measured, and whether it is decided.

Code that shows an answer only shows its values. It chooses nothing, compares nothing and divides
nothing.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Self

from kvbench.model.annotated import about


class Unit(StrEnum):
    """The unit of a figure."""

    TOKENS = "tokens/s"
    GBPS = "GB/s"
    TIMES = "times"  # a ratio of rates: above 1 the subject is faster
    LENGTH = "times as long"  # a ratio of times: above 1 the subject takes longer
    SHARE = "share"  # of the value it is compared with
    SECONDS = "seconds"
    NS = "ns"
    CONTEXT = "tokens"


class Held(StrEnum):
    """What a figure is compared with."""

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
    """How the compared values were measured: side by side or apart."""

    ROUNDS = "same rounds"
    APART = "visits of their own"


class State(StrEnum):
    """Whether the question is answered."""

    DECIDED = "decided"
    LEVEL = "level"
    OPEN = "open"
    NOT_TESTED = "not tested"


class Reason(StrEnum):
    """The reason for the state. `facts` of the answer have the details."""

    NONE = ""
    NOT_MEASURED = "not measured"
    TOO_FEW = "too few launches"
    NO_MODEL = "no point of a known model"
    NO_CACHE = "cache sizes unknown"
    NO_L3 = "no point lies in L3"
    CLOSED = "no footprint tests L3 with so many threads"
    NOT_FASTER = "L3 is read no faster than memory"
    SUSPECT = "faster than its limit"
    # the limits of a decode
    MEMORY = "memory"
    ROWS = "reads of its rows"
    CORE = "core"
    BOTH = "both"
    NEITHER = "neither"
    NOT_CLEAR = "not clear"
    # reasons why a step is not the sum of its parts
    LONGER = "a part takes longer within the step"
    SHORTER = "a part takes less time within the step"
    CACHED = "a part stays in a cache alone"
    NO_PART = "no part alone"
    DRIFTS = "the idle latency drifts"


@dataclass(frozen=True, slots=True)
class Figure:
    """A median over launches with its interval. A computed figure has no interval."""

    value: Annotated[float, about("in `unit`: median over launches")]
    low: Annotated[float, about("in `unit`: lower end of its interval")]
    high: Annotated[float, about("in `unit`: upper end of its interval")]
    unit: Annotated[
        Unit, about("tokens/s, GB/s, times, times as long, share, seconds, ns or tokens")
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `subject` first names the point that the figure is from; further names are points
    that are level with it.
    """

    question: Annotated[str, about("name of the question, the same in every run")]
    of: Annotated[
        str, about("what the question is about, such as a dtype or a layout; may be empty")
    ]
    subject: Annotated[tuple[str, ...], about("names of the points of the answer")]
    figure: Annotated[Figure | None, about("the result; null if there is none")]
    held: Annotated[Held, about("what the figure is compared with; empty: nothing")] = Held.NOTHING
    against: Annotated[str, about("name of the point it is compared with, or empty")] = ""
    basis: Annotated[Basis, about("same rounds, or visits of their own")] = Basis.APART
    state: Annotated[State, about("decided, level, open or not tested")] = State.DECIDED
    reason: Annotated[Reason, about("the reason for the state, as a word; else empty")] = (
        Reason.NONE
    )
    facts: Annotated[dict[str, str | float], about("details of the reason")] = field(
        default_factory=dict
    )
    launches: Annotated[int, about("launches behind it")] = 0
    # two-sided, of a difference at least this large if there were none
    chance: Annotated[
        float | None, about("probability: of such a difference by chance, before correction")
    ] = None
    corrected: Annotated[
        float | None, about("probability: the chance corrected over all questions of the page")
    ] = None

    @classmethod
    def untested(cls, question: str, reason: Reason, of: str = "", **facts: str | float) -> Self:
        return cls(question, of, (), None, state=State.NOT_TESTED, reason=reason, facts=facts)

    @property
    def tested(self) -> bool:
        return self.figure is not None

    def because(self, state: State, reason: Reason = Reason.NONE, **facts: str | float) -> Self:
        return replace(self, state=state, reason=reason, facts=self.facts | facts)

"""Split the time of another engine's pass into a plain read of memory and the parts beyond it, as
far as they can be measured from outside.

Times of a round, in seconds of a pass, on n threads:

    m, m1   plain reads of as many bytes, by all threads and by one
    t, t1   the engine, by all threads and by one
    s, s1   the start of a call, by all threads and by one: a line through two calls with few
            tokens, taken at 0 tokens
    c       its core, by one thread for all heads: the time per token in a private cache, times the
            tokens

Parts of t:

    read     m
    start    s
    core     c/n - m, if its core needs longer than memory
    threads  t - s - e, if that is above 0
    rest     the remainder: it reads more than once, or waits

e is the time of a team that scales perfectly. One thread waits for memory for w = t1 - s1 - c
beyond its core time. With all threads memory is faster by m1/m, so the wait shrinks to w m/m1. So
e = c/n + w m/m1, and at least m.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Self

from kvbench.analysis.measured.estimates import Estimate
from kvbench.model import Point, Record
from kvbench.model.annotated import Printed, about
from kvbench.model.calls import (
    ALL,
    CORE,
    CORE_HALF,
    ONE,
    READ,
    READ_ONE,
    START,
    START_ONE,
    START_ONE_TWICE,
    START_TWICE,
    Calls,
    Part,
)
from kvbench.peers.known import Known
from kvbench.units import GB

FAINT = 0.02  # of a pass: a smaller part is not mentioned (judgement)
_Seconds = Mapping[str, float]  # of a pass, by program


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of times of the same rounds."""

    value: Annotated[float, about("ratio: median of the rounds")]
    low: Annotated[
        float, about("ratio: lower end of its interval over the rounds of this one visit")
    ]
    high: Annotated[float, about("ratio: upper end of its interval")]

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        found = Estimate.of(values)
        return cls(found.median, found.low, found.high)


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a pass."""

    part: Annotated[Part, about("name of the part")]
    share: Annotated[Ratio | None, about("share of a pass; null if not measured")]
    seconds: Annotated[float | None, about("seconds: median; null if not measured")]
    missing: Annotated[str, about("why it is not measured; then it is part of the rest")]


@dataclass(frozen=True, slots=True)
class Small:
    """Smaller calls, with one layer read again and again."""

    contexts: Annotated[tuple[int, ...], about("tokens of both calls; empty if not measured")]
    q_heads: Annotated[int, about("query heads")]
    kv_heads: Annotated[int, about("KV heads")]
    level: Annotated[str, about("private cache that holds the data; empty if none is needed")]

    @classmethod
    def of(cls, calls: Calls, programs: Sequence[str], level: str = "") -> Self:
        points = [calls.points[name] for name in programs if name in calls.points]
        shape = (points or [calls.points[ALL]])[0].shape
        contexts = tuple(sorted(point.shape.context for point in points))
        return cls(contexts, shape.q_heads, shape.kv_heads, level if points else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Printed):
    """A pass of another engine, split into parts that add up to it."""

    engine: Annotated[str, about("name of the engine")]
    release: Annotated[str, about("its version; empty if unknown")]
    library: Annotated[str, about("file with its kernels; empty if unknown")]
    python: Annotated[str, about("interpreter that ran it; empty for kvbench's own")]
    point: Annotated[Point, about("the point that it was asked for")]
    function: Annotated[str, about("function that a step calls")]
    flags: Annotated[
        str, about("arguments of that function, and CPU features that the engine found")
    ]
    rounds: Annotated[int, about("rounds, in each of which all calls were timed once")]
    slices: Annotated[int, about("layers in rotation")]
    seconds: Annotated[float, about("seconds: median of a pass")]
    gbps: Annotated[float, about("GB/s: median, over the bytes that a pass must read once")]
    read_gbps: Annotated[float, about("GB/s: median of plain reads of memory")]
    core_times: Annotated[
        Ratio | None,
        about("ratio: time that its core needs over time that memory needs; null if not measured"),
    ]
    scale: Annotated[
        Ratio | None,
        about("ratio: one thread's time over that of all threads; null for one thread"),
    ]
    parts: Annotated[tuple[Share, ...], about("they add up to a pass in every round")]
    largest: Annotated[
        Part | None, about("the largest part beside the read; null if none is above 2 % of a pass")
    ]
    clear: Annotated[bool, about("whether that part is surely larger than each other part")]
    start: Annotated[Small, about("the calls that measure the start")]
    core: Annotated[Small, about("the calls that measure the core")]
    max_abs_err: Annotated[
        float, about("absolute: largest difference of an output element to float64")
    ]


def split(visit: Record, calls: Calls, engine: Known) -> Split:
    """Analyse a visit of worker.visit_rest() with these calls."""
    point, rounds = visit.point, _rounds(visit)
    assert isinstance(point, Point)
    found = [parts(each, calls) for each in rounds]
    wholes = [each[ALL] for each in rounds]
    shares = {
        part: [each[part] / whole for each, whole in zip(found, wholes, strict=True)]
        for part in found[0]
    }
    largest, clear = _largest(shares)
    moved = visit.traffic[ALL].bytes_compulsory / GB
    return Split(
        engine=point.engine,
        release=engine.version,
        library=engine.library,
        python=engine.python,
        point=point,
        function=visit.function,
        flags=visit.flags,
        rounds=len(rounds),
        slices=visit.slices,
        seconds=median(wholes),
        gbps=moved / median(wholes),
        read_gbps=moved / median(each[READ] for each in rounds),
        core_times=_of_all(rounds, CORE, lambda each: _core(each, calls) / each[READ]),
        scale=_of_all(rounds, ONE, lambda each: each[ONE] / each[ALL]),
        parts=tuple(_share(part, found, shares, calls) for part in Part),
        largest=largest,
        clear=clear,
        start=Small.of(calls, (START, START_TWICE)),
        core=Small.of(calls, (CORE_HALF, CORE), calls.level),
        max_abs_err=visit.max_abs_err,
    )


def _rounds(visit: Record) -> list[_Seconds]:
    """Seconds of each program in each round. Plain reads are scaled to the bytes that a pass of the
    engine must read.
    """
    found = dict[int, dict[str, float]]()
    own = visit.traffic[ALL].bytes_compulsory
    for sample in visit.samples:
        seconds = sample.pass_seconds[0]
        if sample.program in (READ, READ_ONE):
            seconds *= own / visit.traffic[sample.program].bytes_compulsory
        found.setdefault(sample.round, {})[sample.program] = seconds
    return [*found.values()]


def _of_all(
    rounds: Sequence[_Seconds], program: str, value: Callable[[_Seconds], float]
) -> Ratio | None:
    """A ratio over all rounds; None if that program was not timed."""
    return Ratio.of([value(each) for each in rounds]) if program in rounds[0] else None


def parts(seconds: _Seconds, calls: Calls) -> dict[Part, float]:
    """The parts of one round. A part that is not measured counts as 0 and is left out."""
    whole, read = seconds[ALL], seconds[READ]
    start, core = _start(seconds, START, START_TWICE), _core(seconds, calls)
    found = {Part.READ: read, Part.START: start, Part.CORE: max(0.0, core - read)}
    if ONE in seconds:
        threads = calls.points[ALL].threads
        before = _start(seconds, START_ONE, START_ONE_TWICE)
        waits = max(0.0, seconds[ONE] - before - threads * core)
        scaled = max(core + waits * read / seconds[READ_ONE], read)
        found[Part.THREADS] = max(0.0, whole - start - scaled)
    found[Part.REST] = whole - sum(found.values())
    return {part: own for part, own in found.items() if part not in calls.missing}


def _start(seconds: _Seconds, few: str, twice: str) -> float:
    """The time at 0 tokens, from two calls of which the second has twice as many tokens."""
    return max(0.0, 2 * seconds[few] - seconds[twice]) if few in seconds else 0.0


def _core(seconds: _Seconds, calls: Calls) -> float:
    """Time of the core for all heads and tokens, split evenly over all threads.

    It is at most the time of the pass after its start: calls with one head may be slower per token
    than those with all heads.
    """
    if CORE not in seconds:
        return 0.0
    own, point = [calls.points[name].shape.context for name in (CORE, CORE_HALF)], calls.points[ALL]
    token = max(0.0, seconds[CORE] - seconds[CORE_HALF]) / (own[0] - own[1])
    core = token * point.shape.context * point.shape.kv_heads / point.threads
    return min(core, max(0.0, seconds[ALL] - _start(seconds, START, START_TWICE)))


def _share(
    part: Part,
    found: Sequence[Mapping[Part, float]],
    shares: Mapping[Part, Sequence[float]],
    calls: Calls,
) -> Share:
    if part not in shares:
        return Share(part, None, None, calls.missing[part])
    seconds = median(each[part] for each in found)
    return Share(part, Ratio.of(shares[part]), seconds, "")


def _largest(shares: Mapping[Part, Sequence[float]]) -> tuple[Part | None, bool]:
    """The largest part beside the read, and whether it is larger than each other part in most
    rounds.
    """
    own = {part: Estimate.of(each) for part, each in shares.items() if part != Part.READ}
    first, *others = sorted(own, key=lambda part: -own[part].median)
    if own[first].median < FAINT:
        return None, False
    ahead = (
        Estimate.of(
            [one - two for one, two in zip(own[first].values, own[other].values, strict=True)]
        )
        for other in others
    )
    return first, own[first].low > 0 and all(each.low > 0 for each in ahead)

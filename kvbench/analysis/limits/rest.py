"""What another engine misses of a plain read of memory, split by what can be measured from outside.

Of a round, in seconds of a pass, on n threads:

    m, m1   plain reads of as many bytes, by all threads and by one
    t, t1   the engine, by all threads and by one
    s, s1   the start of a call: a line through two calls of few tokens, where no token is left
    c       its core by one thread, for all heads: what each token more takes in a private cache

    read     m
    start    s
    core     c/n - m, where its core needs longer than memory
    threads  t - s - e, where that is above 0
    rest     what is left of t: it reads more than once, or waits

e is what a team that scales would take. Beyond its core one thread waits w = t1 - s1 - c, for
memory: of all threads' waiting as much is left as memory gains by them, m/m1. So e = c/n + w m/m1,
and no less than m.
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

FAINT = 0.02  # of a pass: less is not worth a word, a judgement
_Seconds = Mapping[str, float]  # of a pass, by program


@dataclass(frozen=True, slots=True)
class Ratio:
    """Of times of the same rounds."""

    value: Annotated[float, about("ratio: median of the rounds")]
    low: Annotated[float, about("ratio: lower end of its interval, of rounds of this one visit")]
    high: Annotated[float, about("ratio: upper end of its interval")]

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        found = Estimate.of(values)
        return cls(found.median, found.low, found.high)


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a pass."""

    part: Annotated[Part, about("what it is of")]
    share: Annotated[Ratio | None, about("of a pass; null where it is not measured")]
    seconds: Annotated[float | None, about("seconds: median; null where it is not measured")]
    missing: Annotated[str, about("why it is not measured: it is in the rest then")]


@dataclass(frozen=True, slots=True)
class Small:
    """Smaller calls, of one layer again and again."""

    contexts: Annotated[tuple[int, ...], about("tokens of either; none where it is not measured")]
    q_heads: Annotated[int, about("query heads")]
    kv_heads: Annotated[int, about("KV heads")]
    level: Annotated[str, about("the private cache that holds it; empty where none is meant")]

    @classmethod
    def of(cls, calls: Calls, programs: Sequence[str], level: str = "") -> Self:
        points = [calls.points[name] for name in programs if name in calls.points]
        shape = (points or [calls.points[ALL]])[0].shape
        contexts = tuple(sorted(point.shape.context for point in points))
        return cls(contexts, shape.q_heads, shape.kv_heads, level if points else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Printed):
    """A pass of another engine, by parts that add up to it."""

    engine: Annotated[str, about("its word")]
    release: Annotated[str, about("its version; empty where it is not known")]
    library: Annotated[str, about("the file that its kernels lie in; empty where not known")]
    python: Annotated[str, about("the interpreter that it ran in; empty of kvbench's own")]
    point: Annotated[Point, about("what it was asked for")]
    function: Annotated[str, about("what a step calls")]
    flags: Annotated[str, about("what that was given, and what the engine has found of this CPU")]
    rounds: Annotated[int, about("in which all calls were timed once each")]
    slices: Annotated[int, about("layers in rotation")]
    seconds: Annotated[float, about("seconds: median of a pass")]
    gbps: Annotated[float, about("GB/s: median, of the bytes that a pass has to read once")]
    read_gbps: Annotated[float, about("GB/s: median of plain reads of memory")]
    core_times: Annotated[
        Ratio | None,
        about("ratio: what its core needs over what memory needs; null where not measured"),
    ]
    scale: Annotated[
        Ratio | None, about("ratio: one thread's time over that of all; null of one thread")
    ]
    parts: Annotated[tuple[Share, ...], about("they add up to a pass in every round")]
    largest: Annotated[
        Part | None, about("of all but the read; null where none is above a fiftieth of a pass")
    ]
    clear: Annotated[bool, about("whether it is surely larger than each other part")]
    start: Annotated[Small, about("the calls that tell the start of a call")]
    core: Annotated[Small, about("the calls that tell the core")]
    max_abs_err: Annotated[
        float, about("absolute: largest difference of an output element to float64")
    ]


def split(visit: Record, calls: Calls, engine: Known) -> Split:
    """`visit`: as worker.visit_rest() makes it of these calls."""
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
    """Plain reads are of as many bytes as a pass of the engine has to read."""
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
    """None where that program was not timed."""
    return Ratio.of([value(each) for each in rounds]) if program in rounds[0] else None


def parts(seconds: _Seconds, calls: Calls) -> dict[Part, float]:
    """Of one round. What is not measured counts as nothing, and is no part."""
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
    """Where no token is left of two calls, the second of which has twice as many."""
    return max(0.0, 2 * seconds[few] - seconds[twice]) if few in seconds else 0.0


def _core(seconds: _Seconds, calls: Calls) -> float:
    """Of all heads and tokens, split evenly among all threads. No more than the pass takes behind
    its start: calls of one head may be slower for each token than those of all.
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
    """Of what the read is not; and whether it is larger than each other part in most rounds."""
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

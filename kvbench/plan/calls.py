"""Choose the calls of an engine that are timed beside a point's call, to find out where its time
goes.
"""

from collections.abc import Iterator
from dataclasses import replace

from kvbench.model import Machine, Point
from kvbench.model.calls import (
    ALL,
    CORE,
    CORE_HALF,
    ONE,
    START,
    START_ONE,
    START_ONE_TWICE,
    START_TWICE,
    Calls,
    Lacks,
    Part,
)
from kvbench.peers.host import layer_shape
from kvbench.peers.interface import Peer
from kvbench.plan.needs import sized, tokens_in
from kvbench.plan.witnesses import line_of
from kvbench.regime import THRESHOLDS, levels

_STEP = 256  # tokens: some engines work on multiples of this


def calls_of(point: Point, machine: Machine, kind: type[Peer]) -> Calls:
    """The calls to time for a point, and the parts that cannot be measured."""
    found, missing = {ALL: point}, dict[Part, str]()
    one = replace(point, cpus=point.cpus[:1])
    starts, why = _starts(point)
    missing |= {Part.START: why} if why else {}
    found |= starts
    if point.threads == 1:
        missing[Part.THREADS] = Lacks.ONE_THREAD
    else:
        alone = zip((START_ONE, START_ONE_TWICE), starts.values(), strict=False)
        found[ONE] = one
        found |= {name: replace(each, cpus=one.cpus) for name, each in alone}
    level, cores, why = _cores(one, machine)
    missing |= {Part.CORE: why} if why else {}
    found |= cores
    return _without_refused(Calls(found, level, missing), kind)


def _starts(point: Point) -> tuple[dict[str, Point], str]:
    """The calls with few tokens; or the reason why the point has none."""
    tokens = min(_STEP, point.shape.context // 2)
    if tokens < point.shape.q_len:
        return {}, Lacks.FEW_TOKENS
    return {START: _hot(point, tokens), START_TWICE: _hot(point, 2 * tokens)}, ""


def _cores(one: Point, machine: Machine) -> tuple[str, dict[str, Point], str]:
    """The cache that holds the data of the core's calls, these calls, and the reason if there are
    none.
    """
    below = [*levels(machine, one.cpus).items()][:-1]
    if not below:
        return "", {}, Lacks.NO_CACHE
    number, caches = below[-1]
    size = min(cache.size for cache in caches)
    head = replace(one, shape=replace(one.shape, q_heads=one.shape.group, kv_heads=1))
    # half of a cache is left for scores, sums and queries; a small cache may be filled further
    tokens = _fitting(head, size / 2) or min(2 * _STEP, _fitting(head, size * THRESHOLDS.private))
    if not tokens:
        return "", {}, Lacks.SMALL_CACHE
    tokens = min(tokens, max(2 * _STEP, one.shape.context // (2 * _STEP) * (2 * _STEP)))
    return f"L{number}", {CORE: _hot(head, tokens), CORE_HALF: _hot(head, tokens // 2)}, ""


def _fitting(head: Point, size: float) -> int:
    """The most tokens of one KV head that fit into `size` bytes, as a multiple of 2 * _STEP."""
    base = line_of(head)
    facts = sized(base) | {"pad": 0}
    fitting = tokens_in(size, False, 1, head.shape.head_dim, 1, **facts)
    return fitting // (2 * _STEP) * (2 * _STEP)


def _hot(point: Point, tokens: int) -> Point:
    """The point with one layer of `tokens` tokens, read again and again."""
    shape = replace(point.shape, context=tokens, capacity=tokens, layers=0)
    return replace(point, residency="hot", shape=shape)


def _without_refused(calls: Calls, kind: type[Peer]) -> Calls:
    """Remove the calls that the engine refuses."""
    missing = calls.missing | dict(_refused(calls, kind))
    lost = {START, START_TWICE, START_ONE, START_ONE_TWICE} if Part.START in missing else set()
    lost |= {CORE, CORE_HALF} if Part.CORE in missing else set()
    points = {name: point for name, point in calls.points.items() if name not in lost}
    return replace(calls, points=points, missing=missing)


def _refused(calls: Calls, kind: type[Peer]) -> Iterator[tuple[Part, str]]:
    """The parts whose calls the engine refuses, with its reasons."""
    parts = dict.fromkeys((START, START_TWICE), Part.START)
    parts |= dict.fromkeys((CORE, CORE_HALF), Part.CORE)
    for name, part in parts.items():
        if point := calls.points.get(name):
            if why := kind.lacking(point.dtype, layer_shape(point)):
                yield part, why

"""Does it pay to draft tokens and verify them together? A step that verifies reads the weights and
the cache once for all of its queries.

a step = the weights, read or multiplied, whichever takes longer + attention with all queries

It is not known in which format an engine multiplies: float32, or faster, bytes or bf16.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pandas as pd

from kvbench.errors import BadArgument, unknown_word
from kvbench.model.explained import (
    ARITHMETIC,
    IF,
    NO,
    OPEN,
    READS,
    YES,
    Drafted,
    DraftedFormat,
    Drafting,
    Expected,
    Explained,
    Queries,
    Range,
    Row,
    Span,
)
from kvbench.sizing.draft import BYTES, SECONDS, SHARE, Draft
from kvbench.sizing.known import KnownMachine
from kvbench.units import GB

_FLOP = 2  # FLOP for one parameter and one token
_RANGES = ("plain", "step", "before", "tokens", "times", "spare")  # fields of Drafted


def drafted(found: Explained, known: KnownMachine, draft: Draft, dtypes: Sequence[str]) -> Drafting:
    """Whether drafting pays, for each dtype of the cache. No `dtypes`: the base dtype of
    `found`.
    """
    weights, rate = found.weights, found.best_gbps
    if weights is None:
        raise BadArgument("--draft: the bytes of its weights are not known", "give --weights BYTES")
    if rate is None:
        raise BadArgument(
            "--draft: the run has no reads of memory", "name another run with --machine"
        )
    words = [each.dtype for each in found.formats]
    if odd := [dtype for dtype in dtypes if dtype not in words]:
        raise unknown_word("--dtype", odd[0], words)
    tokens = (found.decoder.batch * draft.queries, found.decoder.batch)  # verified, and plain
    reading = [weights.read(count) / (rate * GB) for count in tokens]
    flop = [_FLOP * weights.multiplied() * count for count in tokens]
    slow, fast = ([_seconds(each, peak) for each in flop] for peak in (known.gflops, known.narrow))
    arithmetic = (slow[0] or 0.0) > reading[0]
    ways = (slow, fast) if arithmetic else (slow,)
    speeds = [_Speed(*map(_longer, reading, way)) for way in ways]
    model = _Model(found, known, draft, tuple(speeds))
    return Drafting(
        drafts=draft.drafts,
        queries=draft.queries,
        accept=draft.accept,
        powers=draft.powers,
        yields=draft.yields,
        read=weights.read(tokens[0]),
        parameters=weights.multiplied(),
        reading=reading[0],
        float32=slow[0],
        narrow=fast[0],
        limit=ARITHMETIC if arithmetic else READS,
        formats=tuple(map(model.format, dtypes or (found.base,))),
    )


def _seconds(flop: float, peak: float | None) -> float | None:
    return flop / (peak * GB) if peak else None


def _longer(reading: float, multiplying: float | None) -> float:
    return max(reading, multiplying or 0.0)


@dataclass(frozen=True, slots=True)
class _Speed:
    """Seconds for the weights, in a step that verifies and in a plain step."""

    weights: float
    plain: float


@dataclass(frozen=True, slots=True)
class _Model:
    """All facts for the prediction. `speeds`: possible times of the weights, the slowest first."""

    found: Explained
    known: KnownMachine
    draft: Draft
    speeds: tuple[_Speed, ...]

    def format(self, dtype: str) -> DraftedFormat:
        rows = tuple(self._row(row, dtype) for row in self.found.rows)
        return DraftedFormat(dtype, rows, tuple(_spans(rows)))

    def _row(self, row: Row, dtype: str) -> Drafted:
        queries = self._queries(row.context, dtype)
        found = [self._at(speed, row.context, row.of(dtype), queries) for speed in self.speeds]
        facts: dict[str, Any] = {
            name: _enclosing([getattr(each, name) for each in found]) for name in _RANGES
        }
        facts["share"] = min(each.share for each in found)
        facts["pays"] = _verdict(facts["times"], found[0].cost)
        return replace(found[0], **facts)

    def _at(self, speed: _Speed, context: int, cell: Expected, queries: Queries) -> Drafted:
        """The prediction for one speed of the weights, without its verdict."""
        assert cell.seconds is not None  # because reads are known
        batch, yields = self.found.decoder.batch, self.draft.yields
        alone = cell.bytes / (queries.gbps * GB) if queries.gbps else cell.seconds
        plain = speed.plain + cell.seconds
        step = _rising(queries.times, lambda times: speed.weights + alone * times)
        cost = self._cost(plain)
        total = _rising(step, lambda seconds: seconds + (cost or 0.0))
        spare = _falling(step, lambda seconds: yields * plain - seconds)
        return Drafted(
            context=context,
            attention=queries,
            plain=Range(plain, plain, plain),
            step=step,
            cost=cost,
            before=Range(batch / plain, batch / plain, batch / plain),
            tokens=_falling(total, lambda seconds: batch * yields / seconds),
            times=_falling(total, lambda seconds: yields * plain / seconds),
            spare=spare,
            share=spare.low / plain,
            pays="",
        )

    def _queries(self, context: int, dtype: str) -> Queries:
        """How long attention takes with this many queries: of the fastest kernel at the nearest
        shape.
        """
        decoder = replace(self.found.decoder, context=context, dtype=dtype)
        queries = self.draft.queries
        timed = pd.DataFrame() if decoder.latent else self.known.with_queries(decoder)
        if timed.empty:
            return Queries(None, Range(None, 1.0, queries), None, "", None, None)
        kernels = [_of_kernel(points, queries) for _, points in timed.groupby("name", sort=False)]
        return min(kernels, key=_slowness)

    def _cost(self, plain: float) -> float | None:
        """Seconds of drafting for a step. The draft's weights are read once for each token."""
        cost, rate = self.draft.cost, self.found.best_gbps
        if cost is None:
            return None
        each = {SHARE: plain, SECONDS: 1.0, BYTES: self.draft.drafts / ((rate or 0.0) * GB)}
        return cost.amount * each[cost.unit]


def _of_kernel(points: pd.DataFrame, queries: int) -> Queries:
    """How long one kernel takes. `points`: with several queries, all of one kernel and shape."""
    points = points.sort_values("q_len")
    fewer, enough = points[points["q_len"] <= queries], points[points["q_len"] >= queries]
    first = points.iloc[0]
    low = float(fewer.iloc[-1]["times_low"]) if len(fewer) else 1.0
    times, timed = Range(None, low, float(queries)), None
    if len(enough):
        own = enough.iloc[0]
        value, high, timed = float(own["times"]), float(own["times_high"]), int(own["q_len"])
        most = math.inf if timed == queries else queries
        times = Range(min(value, most), min(low, value), min(high, most))
    rate, group, context = float(first["kv_gbps"]), int(first["group"]), int(first["context"])
    kernel = f"{first['variant']}, {first['layout']}"
    return Queries(timed, times, rate, kernel, group, context)


def _slowness(queries: Queries) -> float:
    """Seconds of attention for each GB of the cache."""
    assert queries.gbps is not None  # it was timed
    times = queries.times
    return (times.high if times.value is None else times.value) / queries.gbps


def _rising(found: Range, of: Callable[[float], float]) -> Range:
    value = None if found.value is None else of(found.value)
    return Range(value, of(found.low), of(found.high))


def _falling(found: Range, of: Callable[[float], float]) -> Range:
    value = None if found.value is None else of(found.value)
    return Range(value, of(found.high), of(found.low))


def _enclosing(found: Sequence[Range]) -> Range:
    """The range around all ranges. It has a value only if all ranges have the same value."""
    values = {each.value for each in found}
    value = values.pop() if len(values) == 1 else None
    return Range(value, min(each.low for each in found), max(each.high for each in found))


def _verdict(times: Range, cost: float | None) -> str:
    if times.high <= 1:
        return NO
    if times.low <= 1:
        return OPEN
    return IF if cost is None else YES


def _spans(rows: Sequence[Drafted]) -> Iterator[Span]:
    for pays, group in groupby(rows, key=lambda row: row.pays):
        own = list(group)
        spare = min(row.spare.low for row in own)
        yield Span(pays, own[0].context, own[-1].context, spare)

"""Whether it pays to draft tokens and verify them together: a step that verifies reads the weights
and the cache once for all of its queries.

a step = the weights, read or multiplied, whichever takes longer + attention with so many queries
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

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
    Explained,
    Queries,
    Range,
    Row,
    Span,
)
from kvbench.sizing.draft import BYTES, SECONDS, SHARE, Draft
from kvbench.sizing.known import KnownMachine
from kvbench.units import GB

_FLOP = 2  # of a parameter and a token


def drafted(found: Explained, known: KnownMachine, draft: Draft, dtypes: Sequence[str]) -> Drafting:
    """`dtypes`: of the cache; none: that of `found`."""
    weights, rate = found.weights, found.best_gbps
    if weights is None or found.read is None:
        raise BadArgument("--draft: the bytes of its weights are not known", "give --weights BYTES")
    if rate is None:
        raise BadArgument("--draft: no reads of memory are known", "name another --machine")
    words = [each.dtype for each in found.formats]
    if odd := [dtype for dtype in dtypes if dtype not in words]:
        raise unknown_word("--dtype", odd[0], words)
    batch, queries, parameters = found.decoder.batch, draft.queries, weights.multiplied()
    read = weights.read(batch * queries)
    reading, multiplying = read / (rate * GB), _multiplying(known, parameters, batch * queries)
    plain = max(found.read / (rate * GB), _multiplying(known, parameters, batch))
    model = _Model(found, known, draft, plain, max(reading, multiplying))
    return Drafting(
        drafts=draft.drafts,
        queries=queries,
        accept=draft.accept,
        powers=draft.powers,
        yields=draft.yields,
        read=read,
        parameters=parameters,
        plain=plain,
        weights=model.weights,
        limit=ARITHMETIC if multiplying > reading else READS,
        formats=tuple(map(model.format, dtypes or (found.base,))),
    )


def _multiplying(known: KnownMachine, parameters: int, tokens: int) -> float:
    """Seconds; 0 where the peak is not known."""
    return _FLOP * parameters * tokens / (known.gflops * GB) if known.gflops else 0.0


@dataclass(frozen=True, slots=True)
class _Model:
    """`plain`, `weights`: seconds of the weights in a plain step, and in one that verifies."""

    found: Explained
    known: KnownMachine
    draft: Draft
    plain: float
    weights: float

    def format(self, dtype: str) -> DraftedFormat:
        rows = tuple(self._row(row, dtype) for row in self.found.rows)
        return DraftedFormat(dtype, rows, tuple(_spans(rows)))

    def _row(self, row: Row, dtype: str) -> Drafted:
        cell, batch = row.of(dtype), self.found.decoder.batch
        assert cell.seconds is not None  # for reads are known
        queries = self._queries(row.context, dtype)
        alone = cell.bytes / (queries.gbps * GB) if queries.gbps else cell.seconds
        plain = self.plain + cell.seconds
        step = _rising(queries.times, lambda times: self.weights + alone * times)
        cost = self._cost(plain)
        total = _rising(step, lambda seconds: seconds + (cost or 0.0))
        yields = self.draft.yields
        tokens = _falling(total, lambda seconds: batch * yields / seconds)
        times = _falling(total, lambda seconds: yields * plain / seconds)
        spare = _falling(step, lambda seconds: yields * plain - seconds)
        return Drafted(
            context=row.context,
            attention=queries,
            plain=plain,
            step=step,
            cost=cost,
            before=batch / plain,
            tokens=tokens,
            times=times,
            spare=spare,
            share=spare.low / plain,
            pays=_verdict(times, cost),
        )

    def _queries(self, context: int, dtype: str) -> Queries:
        """Of the kernel that is the fastest with so many, of the shape that is nearest."""
        decoder = replace(self.found.decoder, context=context, dtype=dtype)
        queries = self.draft.queries
        timed = pd.DataFrame() if decoder.latent else self.known.with_queries(decoder)
        if timed.empty:
            return Queries(None, Range(None, 1.0, queries), None, "", None, None)
        kernels = [_of_kernel(points, queries) for _, points in timed.groupby("name", sort=False)]
        return min(kernels, key=_slowness)

    def _cost(self, plain: float) -> float | None:
        """Seconds. The weights of a draft are read once for each of its tokens."""
        cost, rate = self.draft.cost, self.found.best_gbps
        if cost is None:
            return None
        each = {SHARE: plain, SECONDS: 1.0, BYTES: self.draft.drafts / ((rate or 0.0) * GB)}
        return cost.amount * each[cost.unit]


def _of_kernel(points: pd.DataFrame, queries: int) -> Queries:
    """`points`: with several queries, of one kernel and shape."""
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
    """Seconds of attention for a GB of the cache."""
    assert queries.gbps is not None  # it was timed
    times = queries.times
    return (times.high if times.value is None else times.value) / queries.gbps


def _rising(found: Range, of: Callable[[float], float]) -> Range:
    value = None if found.value is None else of(found.value)
    return Range(value, of(found.low), of(found.high))


def _falling(found: Range, of: Callable[[float], float]) -> Range:
    value = None if found.value is None else of(found.value)
    return Range(value, of(found.high), of(found.low))


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

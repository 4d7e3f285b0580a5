"""Predict an engine's tokens per second on a model from the measured time of its own attention.

a step = the weights' bytes over plain reads + for each layer the engine's own attention
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kvbench.errors import BadArgument
from kvbench.model import Ceiling
from kvbench.model.explained import Apart, Attention, Engine, Explained, Held, Predicted
from kvbench.model.size import Decoder
from kvbench.peers.known import known as peer
from kvbench.regime import NO_LEVEL
from kvbench.sizing.decoder import cache_bytes, parts, token_bytes
from kvbench.sizing.known import KnownMachine, nearest
from kvbench.units import GB, counted

_MOST = 0.15  # share of a measured rate by which a prediction may be off without a remark
_NEAR = ("group", "head_dim", "kv_heads")
_EACH = 1000  # tokens
Asked = tuple[float, int]  # tokens per second, and at how many tokens
_Line = tuple[float, float]  # seconds where it begins, and for each token


def line(contexts: Sequence[int], seconds: Sequence[float]) -> _Line:
    """Fit a line: its start and slope, both at least 0, by least squares of the relative errors.
    With a single context, the line goes through the origin.
    """
    from scipy.optimize import nnls  # slow to load

    times = np.array(seconds, dtype=float)
    rows = np.stack([np.ones_like(times), np.array(contexts, dtype=float)], axis=1)
    if len(set(contexts)) == 1:
        rows[:, 0] = 0.0
    (start, slope), _ = nnls(rows / times[:, None], np.ones_like(times))
    return float(start), float(slope)


def between(context: float, contexts: Sequence[int], seconds: Sequence[float]) -> float:
    """The time at `context`, by straight lines between neighbours. Outside, the line of the two
    nearest goes on; but no time is below its share of the first time, nor, beyond the last context,
    below the last. A single context: the time is proportional to tokens.
    """
    share = seconds[0] * context / contexts[0]
    if len(contexts) == 1:
        return share
    last = min(max(bisect_left(contexts, context), 1), len(contexts) - 1)
    (near, far), (low, high) = contexts[last - 1 : last + 1], seconds[last - 1 : last + 1]
    time = low + (high - low) * (context - near) / (far - near)
    if contexts[0] <= context <= contexts[-1]:
        return time
    return max(time, share if context < contexts[0] else seconds[-1])


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of a layer at each context: medians, and both ends of their intervals."""

    attention: Attention
    seconds: tuple[tuple[float, ...], ...]

    def of(self, decoder: Decoder) -> tuple[float, ...]:
        """Seconds of attention in all layers. Layers with a window read only the window."""
        every = [(layers.count, self.of_a_layer(layers.read)) for layers in parts(decoder)]
        return tuple(sum(count * own[end] for count, own in every) for end in range(3))

    def of_a_layer(self, context: int) -> tuple[float, ...]:
        """Outside the timed contexts, both ends are as far from the median, as a ratio, as at the
        nearest one: lines through the ends alone could cross.
        """
        contexts = self.attention.contexts
        if contexts[0] <= context <= contexts[-1]:
            return tuple(between(context, contexts, each) for each in self.seconds)
        nearest = 0 if context < contexts[0] else -1
        time = between(context, contexts, self.seconds[0])
        return tuple(time * each[nearest] / self.seconds[0][nearest] for each in self.seconds)


def predict(
    found: Explained,
    known: KnownMachine,
    name: str,
    dtypes: Sequence[str],
    contexts: Sequence[int],
    asked: Sequence[Asked],
) -> Explained:
    """The explanation, with the engine's predicted tokens per second. No `dtypes`: those of the
    run. No `contexts`: those of the measured rates in `asked`, else those of the run.
    """
    decoder = found.decoder
    if found.read is None:
        raise BadArgument(
            "--engine: the bytes of its weights are not known", "give --weights BYTES"
        )
    if decoder.batch > 1 or decoder.latent:
        raise BadArgument(
            "--engine predicts one sequence, with K and V in rows of their own",
            "leave out --users, or name another MODEL",
        )
    if known.plain_read() is None:
        raise BadArgument(
            "--engine: the run has no reads of memory", "name another run with --machine"
        )
    timed = _timed(decoder, known, name, dtypes)
    if asked and len(timed) > 1:
        words = ", ".join(each.attention.dtype for each in timed)
        raise BadArgument(
            f"--measured: it is not clear with which cache format: {words}",
            "name it, such as --dtype f16",
        )
    reached = {context: tokens for tokens, context in asked}
    rows = list[Predicted]()
    for each in timed:
        own = sorted({*contexts, *reached} or each.attention.contexts)
        rows += _rows(found, known, each, own, reached)
    apart = _apart(rows)
    lines = tuple(each.attention for each in timed)
    shown = tuple(_blamed(row, apart) for row in rows)
    return replace(found, engine=Engine(name, _MOST, lines, shown, apart))


def _timed(decoder: Decoder, known: KnownMachine, name: str, dtypes: Sequence[str]) -> list[Timed]:
    layout, points = peer(name).kind.kept, known.peers
    if points is not None:
        points = points[(points["engine"] == name) & (points["layout"] == layout)]
    wanted = dtypes or (() if points is None else sorted(set(points["dtype"])))
    found = list[Timed]()
    for dtype in wanted:
        own = points if points is None else points[points["dtype"] == dtype]
        if own is None or own.empty:
            break
        found.append(_timed_of(replace(decoder, dtype=dtype), nearest(own, decoder, _NEAR), layout))
    if found and len(found) == len(wanted):
        return found
    lacking = f"{wanted[len(found)]}, " if wanted else ""
    threads = counted(len(known.cpus), "thread")
    raise BadArgument(
        f"--engine: {known.name} has no decode of {name} ({lacking}{layout}) by {threads}",
        "kvbench peers --model MODEL --peers ENGINE --context 512,2k,8k measures it",
    )


def _timed_of(decoder: Decoder, points: pd.DataFrame, layout: str) -> Timed:
    """An engine's times. Of several points at one context the fastest counts."""
    points = points.sort_values("seconds").drop_duplicates("context").sort_values("context")
    first, contexts = points.iloc[0], tuple(map(int, points["context"]))
    q_heads, kv_heads, head_dim = (int(first[n]) for n in ("q_heads", "kv_heads", "head_dim"))
    there = replace(decoder, q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim)
    scale = token_bytes(decoder) / token_bytes(there)
    times = (tuple(scale * points[f"seconds{end}"]) for end in ("", "_low", "_high"))
    own, low, high = (tuple(map(float, each)) for each in times)
    start, slope = line(contexts, own)
    found = Attention(
        dtype=decoder.dtype,
        layout=layout,
        pages=first["pages"],
        contexts=contexts,
        heads=(q_heads, kv_heads, head_dim),
        scale=scale,
        seconds=own,
        start=start,
        slope=_EACH * slope,
        off=max(abs((start + slope * t) / s - 1) for t, s in zip(contexts, own, strict=True)),
    )
    return Timed(found, (own, low, high))


def _rows(
    found: Explained,
    known: KnownMachine,
    timed: Timed,
    contexts: Sequence[int],
    reached: dict[int, float],
) -> list[Predicted]:
    rows, read = list[Predicted](), found.read or 0
    near, far = timed.attention.contexts[0], timed.attention.contexts[-1]
    for context in contexts:
        if context > found.max_context:
            raise BadArgument(f"--context: {context}", f"at most {found.max_context}")
        decoder = replace(found.decoder, context=context, dtype=timed.attention.dtype)
        level = known.regime(read + cache_bytes(decoder)).word
        reads = _reads(known, level)
        weights = [read / (rate * GB) for rate in (reads.median, reads.high, reads.low)]
        own = timed.of(decoder)
        tokens, high, low = (1 / sum(both) for both in zip(weights, own, strict=True))
        row = Predicted(
            context=context,
            dtype=decoder.dtype,
            level=level,
            reads=reads.level,
            weights=weights[0],
            attention=own[0],
            tokens=tokens,
            low=low,
            high=high,
            outside=not near <= context <= far,
            held=None,
        )
        held = _held(row, reached[context]) if context in reached else None
        rows.append(replace(row, held=held))
    return rows


def _reads(known: KnownMachine, level: str) -> Ceiling:
    """Plain reads of the level in which a step lies, if the run has them; else of memory."""
    found = known.plain_read(level) if level not in NO_LEVEL else None
    found = found or known.plain_read()
    assert found is not None  # predict() has checked it
    return found


def _held(row: Predicted, tokens: float) -> Held:
    step = 1 / tokens
    left = step - row.weights - row.attention
    shares = (row.weights / step, row.attention / step, left / step)
    off = row.tokens / tokens - 1
    return Held(tokens, step, *shares, abs(left), left < 0, off, abs(off) > _MOST, "")


def _apart(rows: Sequence[Predicted]) -> tuple[Apart, ...]:
    """How far measured steps are from the predictions, for formats with several contexts."""
    found = list[Apart]()
    for dtype in dict.fromkeys(row.dtype for row in rows):
        own = [row for row in rows if row.held and row.dtype == dtype]
        if len(own) > 1:
            contexts = [row.context for row in own]
            steps = line(contexts, [row.held.step for row in own if row.held])
            parted = line(contexts, [1 / row.tokens for row in own])
            stays, grows = (one - other for one, other in zip(steps, parted, strict=True))
            found.append(Apart(dtype, stays, _EACH * grows))
    return tuple(found)


def _blamed(row: Predicted, apart: Sequence[Apart]) -> Predicted:
    """The prediction, with the part that is further off: attention or all others."""
    own = next((each for each in apart if each.dtype == row.dtype), None)
    if row.held is None or own is None:
        return row
    more = abs(own.grows / _EACH * row.context) > abs(own.stays)
    return replace(row, held=replace(row.held, part="attention" if more else "other"))

"""Does a sliding window bound bytes and time, and how far is its answer from that of full attention?"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.diagnosis.phrases import number, times
from kvbench.analysis.launches import enclosed
from kvbench.errors import BadArgument
from kvbench.lab.experiment import Asked, Outcome
from kvbench.lab.measuring import Remembered, bench, beside, named, point, refuse_impossible, refuse_wrong
from kvbench.native import Cache, decode_task
from kvbench.oracle import attention, whole
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import model as geometry
from kvbench.units import duration, size
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program

_NEAR = 8  # where attention is local, its reach is the window over this


def experiment(
    asked: Asked, model: str = "llama-3-8b", context: int = 32768, window: int = 1024, dtype: str = "f16"
) -> Outcome:
    if context <= window:
        raise BadArgument(f"--context {context} never leaves a window of {window}", "more context, or less window")
    contexts = _contexts(context, window)
    held = ([point(asked, model, each, dtype=dtype) for each in own] for own in ([window], contexts))
    refuse_impossible(asked, *held)
    found = pd.DataFrame(_measured(asked, model, contexts, window, dtype))
    found = found.merge(pd.DataFrame(_deviations(asked, model, found["context"], window)), on="context")
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found), _notes(found, window))


def _contexts(most: int, window: int) -> list[int]:
    """From half a window on, each twice as long."""
    found = sorted({max(1, window // 2), window})
    while found[-1] * 2 < most:
        found.append(2 * found[-1])
    return [*found, most]


# ---- time ------------------------------------------------------------------------------------------------------------


def _measured(asked: Asked, model: str, contexts: Sequence[int], window: int, dtype: str) -> Iterator[dict[str, Any]]:
    """Of each context: attention to all of it, and to a ring's window, in the same rounds as attention to all of a context
    that is as long as the window."""
    answers = Remembered()
    with (
        Ground(asked.library, asked.machine) as near,
        Ground(asked.library, asked.machine) as far,
        bench(point(asked, model, window, dtype=dtype), near, answers) as base,
    ):
        for context in contexts:
            everything = point(asked, model, context, dtype=dtype)
            with bench(everything, far, answers) as full, _ring(base, context) as ring:
                programs = [named("base", base.own), named("full", full.own), ring]
                taken = beside(base.team, programs, asked.seed)
            row = {"context": context, "window": window, "rounds": taken.rate("full").launches}
            row |= {"full_held": full.room.slice_bytes, "window_held": base.room.slice_bytes}
            for name in ("full", "window"):
                row[f"{name}_bytes"] = int(taken.moved[name])
                row |= enclosed(f"{name}_seconds", taken.seconds(name)) | enclosed(f"{name}_gbps", taken.rate(name))
                row |= enclosed(f"{name}_growth", taken.times(name, "base"))
            yield row | enclosed("times", taken.times("full", "window"))


@contextmanager
def _ring(base: Bench, context: int) -> Iterator[Program]:
    """The same memory as a ring of as many slots, after `context` tokens."""
    with ExitStack() as owned:
        caches = [owned.enter_context(_as_ring(base, layer, context)) for layer in range(base.room.layers)]
        facts = {"isa": base.point.isa, "schedule": base.point.schedule}
        out = np.zeros_like(base.q)
        tasks = [
            owned.enter_context(decode_task("decode", cache, base.q, out, base.team.threads, **facts))
            for cache in caches
        ]
        base.team.run(tasks[0])
        refuse_wrong(caches[0], base.q, out)
        yield Program("window", tuple(tasks), warm=base.own.warm)
        refuse_wrong(caches[0], base.q, out)


def _as_ring(base: Bench, layer: int, context: int) -> Cache:
    shape, room = base.point.shape, base.room
    facts = {"window": shape.context, "dtype": base.point.dtype, "library": room.library}
    place = {"arena": room.arena, "offset": layer * room.slice_bytes}
    cache = Cache(shape.kv_heads, shape.head_dim, shape.capacity, **facts, **place)
    cache.lengths[:] = context
    return cache


# ---- answers ---------------------------------------------------------------------------------------------------------


def _deviations(asked: Asked, model: str, contexts: Sequence[int], window: int) -> Iterator[dict[str, Any]]:
    """Of one KV head and its query heads, in float64: on random keys, and where the weight of a token falls with its
    distance."""
    known, most = geometry(model), max(contexts)
    drawn = np.random.default_rng(asked.seed)
    k, v = drawn.standard_normal((2, 1, most, 1, known.head_dim), dtype=np.float32)
    q = drawn.standard_normal((1, known.q_heads // known.kv_heads, known.head_dim), dtype=np.float32)
    for context in contexts:
        row = {"context": context}
        last_k, last_v = k[:, :context], v[:, :context]
        for data, keys, queries in (("random", last_k, q), ("local", *_local(last_k, q, window / _NEAR))):
            full, windowed = (attention(queries, whole(keys, last_v), [context], limit) for limit in (None, window))
            row[f"{data}_deviation"] = float(np.linalg.norm(windowed - full) / np.linalg.norm(full))
        yield row


def _local(k: np.ndarray, q: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Keys and queries of which one element makes a token weigh less by a factor e with every `reach` tokens' distance."""
    tokens, dim = k.shape[1], k.shape[3]
    k, q = k.astype(np.float64), q.astype(np.float64)
    k[0, :, 0, 0] = -np.arange(tokens - 1, -1, -1) / reach
    q[:, :, 0] = np.sqrt(dim)
    return k, q


# ---- what is shown ---------------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("context", "context"),
    Column("full_bytes", "all: bytes", size),
    Column("full_seconds", "time", duration),
    Column("full_gbps", "GB/s", number),
    Column("window_bytes", "window: bytes", size),
    Column("window_seconds", "time", duration),
    Column("window_gbps", "GB/s", number),
    Column("times", "all over window", "{:.3g}".format),
    Column("random_deviation", "off, random", "{:.1e}".format),
    Column("local_deviation", "off, local", "{:.1e}".format),
)


def _notes(found: pd.DataFrame, window: int) -> tuple[str, ...]:
    held = found.iloc[-1]
    return (
        f"bytes: those of a decode step of one layer, which reads K and V once. A ring holds {size(held['window_held'])} of "
        f"memory whatever the context, all of {int(held['context'])} tokens {size(held['full_held'])}; both walk as many slices "
        "as leave the caches behind",
        f"times: median of {found['rounds'].min()} rounds, in which each is timed once, in a random order",
        "off: root mean square of the difference to attention to all tokens, over that of the latter, in float64; random: "
        f"keys of a normal distribution, where all tokens weigh alike and what they sum up to evens out; local: a token weighs less by a factor e with "
        f"every {window / _NEAR:g} tokens of distance. Neither is a model's own: that lies where it was trained to",
    )


def _figure(found: pd.DataFrame) -> Figure:
    parts = [
        found[["context", *(f"{name}_{column}" for column in ("bytes", "seconds", "seconds_low", "seconds_high"))]]
        .rename(columns=lambda column, name=name: column.removeprefix(f"{name}_"))
        .assign(attends=attends)
        for name, attends in (("full", "to all tokens"), ("window", f"to the last {found['window'].iloc[0]}"))
    ]
    times_ = pd.concat(parts, ignore_index=True)
    times_["mib"] = times_["bytes"] / (1 << 20)
    for column in ("seconds", "seconds_low", "seconds_high"):
        times_[column] *= 1e6
    off = pd.concat(
        found[["context", f"{data}_deviation"]].set_axis(["context", "off"], axis=1).assign(attends=f"on {data} data")
        for data in ("random", "local")
    )
    shared = {"x": "context", "x_label": "tokens of context", "by": "attends", "text": _tokens}
    panels = (
        Panel(y="mib", y_label="MiB for a layer and token", log="xy", title="Bytes", **shared),
        Panel(y="seconds", y_label="µs for a layer and token", log="xy", low="seconds_low", high="seconds_high", title="Time", **shared),
        Panel(y="off", y_label="off full attention, over its size", log="xy", title="Deviation", **shared),
    )  # fmt: skip
    about = "One decode step of one layer from memory. Whiskers: intervals over rounds. No mark: no deviation."
    return chart("window", "Sliding window", about, pd.concat([times_, off[off["off"] > 0]], ignore_index=True), panels)


def _tokens(count: float) -> str:
    return f"{count / 1024:g}k" if count >= 1024 else f"{count:g}"


def _sentence(found: pd.DataFrame) -> str:
    last, window = found.iloc[-1], found["window"].iloc[0]
    windowed, full = (
        times(*(last[f"{name}_growth{end}"] for end in ("", "_low", "_high"))) for name in ("window", "full")
    )
    return (
        f"From {window} to {int(last['context'])} tokens the time of a token with a window of {window} becomes {windowed} what "
        f"it was, {_judged(last)}, and its bytes {_bytes(found)}; with attention to all tokens the time becomes {full} what it "
        f"was; at the end the window's answer is off by {last['random_deviation']:.2g} times its size on random data, and by "
        f"{last['local_deviation']:.1e} times it where attention is local."
    )


def _judged(last: pd.Series) -> str:
    if last["window_growth_low"] > 1:
        return "growth beyond the noise"
    if last["window_growth_high"] < 1:
        return "less beyond the noise"
    return "flat within the noise"


def _bytes(found: pd.DataFrame) -> str:
    beyond = found["window_bytes"][found["context"] >= found["window"]]
    return "stay the same" if beyond.nunique() == 1 else f"become {beyond.iloc[-1] / beyond.iloc[0]:.2f} times as many"

"""What does a narrower number format of the cache save in bytes and time, and how wrong does it make the answer?"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.diagnosis.phrases import listed, number
from kvbench.analysis.launches import enclosed
from kvbench.lab.experiment import Asked, Outcome
from kvbench.lab.measuring import Remembered, bench, beside, named, of_twin, point, refuse_impossible
from kvbench.model import Point
from kvbench.native import Cache, decode_task
from kvbench.oracle import attention, whole
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import model as geometry
from kvbench.units import duration
from kvbench.worker.ground import Ground

_ALIKE = 1.1  # times as long, at most, as what should take as long


def experiment(asked: Asked, model: str = "llama-3-8b", context: int = 4096, layout: str = "head") -> Outcome:
    points = [point(asked, model, context, layout=layout, dtype=dtype) for dtype in _dtypes(asked, layout)]
    widest = max(points, key=lambda each: _token_bytes(asked, model, each.dtype))
    refuse_impossible(asked, [widest], points)
    found = pd.DataFrame(_measured(asked, points, widest))
    answers = pd.DataFrame(_answers(asked, model, context, layout, [each.dtype for each in points]))
    found = found.merge(answers, on="dtype", validate="one_to_one")
    found["token_share"] = found["token_bytes"] / found["token_bytes"].max()
    return Outcome(found, _columns(widest.dtype), _figure(found, widest.dtype), _sentence(found), _notes(found))


def _measured(asked: Asked, points: Sequence[Point], widest: Point) -> Iterator[dict[str, Any]]:
    """Each in the same rounds as the widest; and that too, on memory of its own, which shows what a ratio is worth."""
    answers = Remembered()
    with (
        Ground(asked.library, asked.machine) as ground,
        Ground(asked.library, asked.machine) as other,
        bench(widest, ground, answers) as base,
    ):
        for each in points:
            with bench(each, other, answers) as own:
                taken = beside(base.team, [named("base", base.own), own.own], asked.seed)
                efficiency = of_twin(own, asked.seed)
            name = own.own.name
            yield {
                "dtype": each.dtype,
                **enclosed("seconds", taken.seconds(name)),
                **enclosed("times", taken.times(name, "base")),
                **enclosed("gbps", taken.rate(name)),
                "efficiency": efficiency,
                "rounds": taken.seconds(name).launches,
            }


def _dtypes(asked: Asked, layout: str) -> list[str]:
    """Those that have a kernel here."""
    known = {
        kernel.dtype
        for kernel in asked.library.kernels()
        if (kernel.op, kernel.variant, kernel.layout, kernel.isa) == ("decode", "flash", layout, asked.isa)
    }
    return [dtype for dtype in asked.library.words("dtype") if dtype in known]


def _token_bytes(asked: Asked, model: str, dtype: str) -> int:
    """Of one layer's K and V, that a decode reads of each token."""
    known = geometry(model)
    q = np.zeros((1, known.q_heads, known.head_dim), dtype=np.float32)
    with Cache(known.kv_heads, known.head_dim, 1, dtype=dtype, library=asked.library) as cache:
        cache.lengths[:] = 1
        with decode_task("decode", cache, q, np.empty_like(q), 1, isa=asked.isa) as task:
            moved = task.traffic()
    return int(moved.kv + moved.scales)


# ---- errors ----------------------------------------------------------------------------------------------------------


def _answers(asked: Asked, model: str, context: int, layout: str, dtypes: list[str]) -> Iterator[dict[str, Any]]:
    """Attention in float64 on what was stored, on what it reads back as, and what the kernel makes of that."""
    known, threads = geometry(model), len(asked.cpus)
    drawn = np.random.default_rng(asked.seed)
    k, v = drawn.standard_normal((2, 1, context, known.kv_heads, known.head_dim), dtype=np.float32)
    q = drawn.standard_normal((1, known.q_heads, known.head_dim), dtype=np.float32)
    exact = attention(q, whole(k, v), [context])
    for dtype in dtypes:
        facts = {"layout": layout, "dtype": dtype, "library": asked.library}
        with Cache(known.kv_heads, known.head_dim, context, **facts) as cache:
            cache.bulk(k, v, isa=asked.isa, threads=threads)
            decoded = attention(q, cache.rows, [context])
            got = cache.decode(q, isa=asked.isa, threads=threads)
        yield {
            "dtype": dtype,
            "token_bytes": _token_bytes(asked, model, dtype),
            "format_error": _size(decoded - exact) / _size(exact),
            "kernel_error": _size(got - decoded) / _size(exact),
            "format_error_max": float(np.abs(decoded - exact).max()),
            "kernel_error_max": float(np.abs(got - decoded).max()),
        }


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _columns(widest: str) -> tuple[Column, ...]:
    return (
        Column("dtype", "dtype"),
        Column("token_bytes", "bytes/token", "{:,}".format),
        Column("token_share", f"of {widest}'s", "{:.1%}".format),
        Column("seconds", "time", duration),
        Column("times", f"times {widest}", "{:.2f}".format),
        Column("gbps", "GB/s", number),
        Column("efficiency", "of twin", "{:.0%}".format),
        Column("format_error", "format error", _error),
        Column("kernel_error", "kernel error", _error),
    )


def _error(share: float) -> str:
    return f"{share:.1e}" if share else "none"


def _notes(found: pd.DataFrame) -> tuple[str, ...]:
    return (
        "bytes/token: K and V of one layer with their scales; GB/s are compulsory bytes over time, of twin: share of a pure "
        "read of the same rows by the same threads",
        f"times: time over that of the widest format, in the same round, median of {found['rounds'].min()} rounds",
        "format error: float64 attention on what the cache reads back as, against the same on the float32 numbers that were "
        "stored; kernel error: the kernel's output against the former. Both are root mean squares, over that of the output",
        "the numbers are drawn from a normal distribution; rows of a model may be spread more widely than that",
    )


def _figure(found: pd.DataFrame, widest: str) -> Figure:
    parts = {"bytes": "token_share", "time": "times", "format": "format_error", "kernel": "kernel_error"}
    rows = [found[["dtype", column]].set_axis(["dtype", "value"], axis=1).assign(of=of) for of, column in parts.items()]
    costs, errors = (pd.concat(pair).sort_index(kind="stable") for pair in (rows[:2], rows[2:]))
    costs = costs.join(found[["times_low", "times_high"]])
    costs.loc[costs["of"] == "bytes", ["times_low", "times_high"]] = np.nan
    table = pd.concat([costs, errors[errors["value"] > 0].rename(columns={"value": "error"})], ignore_index=True)
    shared = {"x": "dtype", "x_label": "number format of the cache", "by": "of", "bars": True}
    panels = (
        Panel(y="value", y_label=f"over that of {widest}", title="Cost", low="times_low", high="times_high", **shared),
        Panel(y="error", y_label="over the output's size", title="Errors", log="y", **shared),
    )
    about = "One decode step of one layer from memory; whiskers: intervals over rounds. An error without a bar is zero."
    return chart("quant", "Number formats", about, table, panels)


def _sentence(found: pd.DataFrame) -> str:
    return f"{_time(found)}; {_errors(found)}."


def _time(found: pd.DataFrame) -> str:
    base = found.loc[found["token_bytes"].idxmax()]
    if not base["times_low"] <= 1 <= base["times_high"] and max(base["times"], 1 / base["times"]) > _ALIKE:
        return f"Times tell nothing here: {base['dtype']} beside itself takes {_times(base)} as long"
    others = found[found["dtype"] != base["dtype"]]
    faster = others[others["times_high"] < 1]
    if faster.empty:
        narrow = found.loc[found["token_bytes"].idxmin()]
        return (
            f"No number format decodes faster than {base['dtype']} beyond the noise, though {narrow['dtype']} moves "
            f"{narrow['token_share']:.0%} of the bytes of it and takes {_times(narrow)} as long"
        )
    best = faster.loc[faster["times"].idxmin()]
    share = best["token_share"]
    if best["times_low"] > share:
        kept = f"though it moves only {share:.2f} of the bytes"
    elif best["times_high"] < share:
        kept = f"even less than the {share:.2f} of the bytes that it moves"
    else:
        kept = f"within the noise what the {share:.2f} of the bytes that it moves promise"
    return f"{best['dtype']} decodes {_rank(others, best)} {_times(best)} the time of {base['dtype']}, {kept}"


def _times(row: pd.Series) -> str:
    return f"{row['times']:.2f} times ({row['times_low']:.2f}..{row['times_high']:.2f} over {row['rounds']} rounds)"


def _rank(others: pd.DataFrame, best: pd.Series) -> str:
    """Of the fastest that is so beyond noise, beside those that may be as fast."""
    near = others[(others["times_low"] <= best["times_high"]) & (others["dtype"] != best["dtype"])]
    less = near[near["times"] < best["times"]]
    if len(less):
        unsure = listed(
            f"{row['dtype']} ({row['times_low']:.2f}..{row['times_high']:.2f})" for _, row in less.iterrows()
        )
        return f"fastest of those that are faster beyond the noise, which {unsure} may be or not, in"
    return f"fastest, not beyond the noise of {listed(near['dtype'])}, in" if len(near) else "fastest, in"


def _errors(found: pd.DataFrame) -> str:
    coarse, rough = found.loc[found["format_error"].idxmax()], found.loc[found["kernel_error"].idxmax()]
    lossy = found[found["format_error"] > 0]
    kernels = f"kernels by up to {rough['kernel_error']:.1e} of it ({rough['dtype']})"
    if lossy.empty:
        return f"no format changes the answer, {kernels}"
    fine = lossy.loc[lossy["format_error"].idxmin()]
    ratio = fine["format_error"] / rough["kernel_error"]
    beside = f"{number(ratio)} times less than" if ratio > 1 else "which is no less than"
    return (
        f"formats change the answer by up to {coarse['format_error']:.1e} of its size ({coarse['dtype']}), {kernels}, "
        f"{beside} the finest format that rounds does ({fine['dtype']})"
    )

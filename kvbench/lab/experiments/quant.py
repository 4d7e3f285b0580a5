"""How wrong does a narrower number format of the cache make the answer, and how wrong the kernel that reads it?"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from kvbench.lab.experiment import Outcome, Setup, refuse_too_large
from kvbench.model import Kernel
from kvbench.native import Cache, decode_task
from kvbench.oracle import attention, whole
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.ruled import Column
from kvbench.report.words.phrases import number
from kvbench.suite import Model
from kvbench.suite import model as geometry


def experiment(setup: Setup, model: str = "llama-3-8b", context: int = 4096, layout: str = "head") -> Outcome:
    known = geometry(model)
    refuse_too_large(4 * 4 * context * (known.kv_heads * known.head_dim + known.q_heads))
    kernels = [
        kernel
        for kernel in setup.library.kernels()
        if (kernel.op, kernel.variant, kernel.layout, kernel.isa) == ("decode", "flash", layout, setup.isa)
    ]
    found = pd.DataFrame(_errors(setup, known, context, kernels))
    found["token_share"] = found["token_bytes"] / found["token_bytes"].max()
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found), _NOTES)


def _errors(setup: Setup, known: Model, context: int, kernels: list[Kernel]) -> Iterator[dict[str, Any]]:
    """Attention in float64 on what was stored and on what it reads back as, and what the kernel makes of the latter."""
    threads, drawn = len(setup.cpus), np.random.default_rng(setup.seed)
    k, v = drawn.standard_normal((2, 1, context, known.kv_heads, known.head_dim), dtype=np.float32)
    q = drawn.standard_normal((1, known.q_heads, known.head_dim), dtype=np.float32)
    exact = attention(q, whole(k, v), [context])
    for kernel in kernels:
        facts = {"layout": kernel.layout, "dtype": kernel.dtype, "library": setup.library}
        with Cache(known.kv_heads, known.head_dim, context, **facts) as cache:
            cache.bulk(k, v, isa=setup.isa, threads=threads)
            decoded = attention(q, cache.rows, [context])
            got = cache.decode(q, isa=setup.isa, threads=threads)
            with decode_task("decode", cache, q, got.copy(), 1, isa=setup.isa) as task:
                moved = task.traffic()
        yield {
            "dtype": kernel.dtype,
            "token_bytes": int(moved.kv + moved.scales) // context,
            "format_error": _size(decoded - exact) / _size(exact),
            "kernel_error": _size(got - decoded) / _size(exact),
            "format_error_max": float(np.abs(decoded - exact).max()),
            "kernel_error_max": float(np.abs(got - decoded).max()),
        }


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _error(share: float) -> str:
    return f"{share:.1e}" if share else "none"


_COLUMNS = (
    Column("dtype", "dtype"),
    Column("token_bytes", "bytes/token", "{:,}".format),
    Column("token_share", "of the widest", "{:.1%}".format),
    Column("format_error", "format error", _error),
    Column("kernel_error", "kernel error", _error),
)
_NOTES = (
    "bytes/token: K and V of one layer with their scales. What a format saves in time: kvbench sweep dtypes --report",
    "format error: float64 attention on what the cache reads back as, against the same on the float32 numbers that "
    "were stored; kernel error: the kernel's output against the former. Both are root mean squares, over that of the output",
    "the numbers are drawn from a normal distribution; rows of a model may be spread more widely than that",
)


def _figure(found: pd.DataFrame):
    errors = found.melt("dtype", ["format_error", "kernel_error"], "of", "error")
    errors = errors.assign(of=errors["of"].str.removesuffix("_error"))[errors["error"] > 0]
    shared = {"x": "dtype", "x_label": "number format of the cache", "bars": True}
    panels = (
        Panel(y="token_bytes", y_label="bytes of a token in a layer", title="Bytes", **shared),
        Panel(y="error", y_label="over the output's size", title="Errors", log="y", by="of", **shared),
    )
    table = pd.concat([found[["dtype", "token_bytes"]], errors], ignore_index=True)
    return chart("quant", "Number formats", "An error without a bar is zero.", table, panels)


def _sentence(found: pd.DataFrame) -> str:
    coarse, rough = found.loc[found["format_error"].idxmax()], found.loc[found["kernel_error"].idxmax()]
    lossy = found[found["format_error"] > 0]
    kernels = f"kernels by up to {rough['kernel_error']:.1e} of it ({rough['dtype']})"
    if lossy.empty:
        return f"No format changes the answer, {kernels}."
    fine = lossy.loc[lossy["format_error"].idxmin()]
    ratio = fine["format_error"] / rough["kernel_error"]
    beside = f"{number(ratio)} times less than" if ratio > 1 else "which is no less than"
    return (
        f"Formats change the answer by up to {coarse['format_error']:.1e} of its size ({coarse['dtype']}, "
        f"{coarse['token_share']:.0%} of the bytes), {kernels}, {beside} the finest format that rounds does "
        f"({fine['dtype']})."
    )

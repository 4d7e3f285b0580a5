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
from kvbench.suite import Model
from kvbench.suite import model as geometry

KEYS = ("normal", "heavy")  # heavy: some channels are larger, as those of a model are
_LARGE, _TIMES = 4, 20  # channels of a head, and by how much


def experiment(setup: Setup, model: str = "llama-3-8b", context: int = 4096, layout: str = "head") -> Outcome:
    known = geometry(model)
    refuse_too_large(4 * 4 * context * (known.kv_heads * known.head_dim + known.q_heads))
    kernels = [
        kernel
        for kernel in setup.library.kernels()
        if (kernel.op, kernel.layout, kernel.isa) == ("decode", layout, setup.isa) and _wanted(setup, kernel, known)
    ]
    found = pd.DataFrame(row for keys in KEYS for row in _errors(setup, known, context, kernels, keys))
    found["token_share"] = found["token_bytes"] / found["token_bytes"].max()
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found), _NOTES)


def _wanted(setup: Setup, kernel: Kernel, known: Model) -> bool:
    """The exact variant, and those that round to whole numbers."""
    first = next(each.variant for each in setup.library.kernels() if each.op == "decode")
    return kernel.variant == first or setup.library.levels(kernel.variant, kernel.dtype, known.head_dim) is not None


def _errors(setup: Setup, known: Model, context: int, kernels: list[Kernel], keys: str) -> Iterator[dict[str, Any]]:
    """Attention in float64 on what was stored and on what it reads back as, and what the kernel makes of the latter."""
    threads, drawn = len(setup.cpus), np.random.default_rng(setup.seed)
    k, v = drawn.standard_normal((2, 1, context, known.kv_heads, known.head_dim), dtype=np.float32)
    q = drawn.standard_normal((1, known.q_heads, known.head_dim), dtype=np.float32)
    if keys == "heavy":
        k[..., drawn.choice(known.head_dim, _LARGE, replace=False)] *= _TIMES
    exact = attention(q, whole(k, v), [context])
    for kernel in kernels:
        facts = {"layout": kernel.layout, "dtype": kernel.dtype, "library": setup.library}
        with Cache(known.kv_heads, known.head_dim, context, **facts) as cache:
            cache.bulk(k, v, isa=setup.isa, threads=threads)
            decoded = attention(q, cache.rows, [context])
            got = cache.decode(q, variant=kernel.variant, isa=setup.isa, threads=threads)
            with decode_task("decode", cache, q, got.copy(), 1, isa=setup.isa) as task:
                moved = task.traffic()
        yield {
            "keys": keys,
            "dtype": kernel.dtype,
            "variant": kernel.variant,
            "token_bytes": int(moved.kv + moved.scales) // context,
            "format_error": _size(decoded - exact) / _size(exact),
            "kernel_error": _size(got - decoded) / _size(exact),
            "weights_error": _of_weights(setup, kernel, q, k),
            "format_error_max": float(np.abs(decoded - exact).max()),
            "kernel_error_max": float(np.abs(got - decoded).max()),
        }


def _of_weights(setup: Setup, kernel: Kernel, q: np.ndarray, k: np.ndarray) -> float:
    """Of a kernel's weights on the stored keys, against float64 ones on the keys as they were. As many tokens as a row
    has elements, of which each has a V of its own that is 1 in one place: so the output is the weights."""
    _, _, kv_heads, dim = k.shape
    k = k[:, :dim]
    ones = np.broadcast_to(np.eye(dim, dtype=np.float32)[None, : k.shape[1], None], k.shape)
    exact = attention(q, whole(k, ones), [k.shape[1]])
    facts = {"layout": kernel.layout, "dtype": kernel.dtype, "library": setup.library}
    with Cache(kv_heads, dim, k.shape[1], **facts) as cache:
        cache.bulk(k, np.ascontiguousarray(ones), isa=setup.isa)
        got = cache.decode(q, variant=kernel.variant, isa=setup.isa)
    return _size(got - exact) / _size(exact)


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _error(share: float) -> str:
    return f"{share:.1e}" if share else "none"


_COLUMNS = (
    Column("keys", "keys"),
    Column("dtype", "dtype"),
    Column("variant", "variant"),
    Column("token_bytes", "bytes/token", "{:,}".format),
    Column("token_share", "of the widest", "{:.1%}".format),
    Column("format_error", "format error", _error),
    Column("kernel_error", "kernel error", _error),
    Column("weights_error", "weights", _error),
)
_NOTES = (
    "bytes/token: K and V of one layer with their scales. What a format saves in time: kvbench sweep dtypes --report",
    "format error: float64 attention on what the cache reads back as, against the same on the float32 numbers that "
    "were stored; kernel error: the kernel's output against the former. Both are root mean squares, over that of the output",
    "weights: of as many tokens as a row has elements, the kernel's attention weights against float64 ones on the keys "
    "as they were, likewise",
    f"the numbers are drawn from a normal distribution; of heavy keys {_LARGE} elements of a row are {_TIMES} times larger, "
    "as in a model",
)


def _figure(found: pd.DataFrame):
    first = found["variant"].iloc[0]
    formats = found[found["variant"] == first].assign(of="format", error=found["format_error"])
    kernels = found.assign(of=found["variant"] + " kernel", error=found["kernel_error"])
    table = pd.concat([formats, kernels], ignore_index=True)[["keys", "dtype", "of", "error"]]
    panels = [
        Panel("dtype", "error", "number format of the cache", "over the output's size", title=f"{keys.capitalize()} keys",
              where=("keys", keys), log="y", by="of", bars=True)
        for keys in KEYS
    ]  # fmt: skip
    title = "How wrong are formats, and the kernels that read them?"
    return chart("quant", title, "An error without a bar is zero.", table[table["error"] > 0], panels)


def _sentence(found: pd.DataFrame) -> str:
    first = found["variant"].iloc[0]
    exact, steps = found[found["variant"] == first], found[found["variant"] != first]
    said = [f"{_worst(own)} on {keys} keys" for keys, own in exact.groupby("keys", sort=False)]
    rough = exact["kernel_error"].max()
    lines = f"Formats change the answer by up to {', and by '.join(said)}; {first} kernels by up to {rough:.1e}"
    if steps.empty:
        return f"{lines}."
    worst = steps.loc[steps["kernel_error"].idxmax()]
    return f"{lines}, {worst['variant']} by up to {worst['kernel_error']:.1e} ({worst['dtype']}, {worst['keys']} keys)."


def _worst(own: pd.DataFrame) -> str:
    row = own.loc[own["format_error"].idxmax()]
    return f"{row['format_error']:.1e} of its size ({row['dtype']}, {row['token_share']:.0%} of the bytes)"

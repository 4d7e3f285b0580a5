"""How wrong does a narrower number format of the cache make the answer, and how wrong the kernel
that reads it?
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from kvbench.checkpoint import find
from kvbench.lab.experiment import Outcome, Setup, refuse_too_large
from kvbench.model import Kernel
from kvbench.native import Cache, decode_task
from kvbench.oracle import attention, whole
from kvbench.report.ruled import Column
from kvbench.suite import Model

KEYS = ("normal", "heavy")  # heavy: some channels are larger, as those of a model are
_LARGE, _TIMES = 4, 20  # channels of a head, and by how much


def experiment(
    setup: Setup, model: str = "llama-3-8b", context: int = 4096, layout: str = "head"
) -> Outcome:
    known = find(model, "--model")[1]
    refuse_too_large(4 * 4 * context * (known.kv_heads * known.head_dim + known.q_heads))
    own = [
        each
        for each in setup.library.kernels()
        if (each.op, each.layout, each.isa) == ("decode", layout, setup.isa)
    ]
    kernels = [kernel for kernel in own if _wanted(setup, kernel, known)]
    found = pd.DataFrame(
        row for keys in KEYS for row in _errors(setup, known, context, kernels, keys)
    )
    found["token_share"] = found["token_bytes"] / found["token_bytes"].max()
    return Outcome(found, _COLUMNS, _sentence(found), _NOTES)


def _wanted(setup: Setup, kernel: Kernel, known: Model) -> bool:
    """The exact variant, and those that round to whole numbers."""
    first = next(each.variant for each in setup.library.kernels() if each.op == "decode")
    return (
        kernel.variant == first
        or setup.library.levels(kernel.variant, kernel.dtype, known.head_dim) is not None
    )


def _errors(
    setup: Setup, known: Model, context: int, kernels: list[Kernel], keys: str
) -> Iterator[dict[str, Any]]:
    """Attention in float64 on what was stored and on what it reads back as, and what the kernel
    makes of the latter.
    """
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
            "token_bytes": int(moved.bytes_kv + moved.bytes_scales) // context,
            "format_error": _size(decoded - exact) / _size(exact),
            "kernel_error": _size(got - decoded) / _size(exact),
        }


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


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
)
_NOTES = (
    (
        "bytes/token: K and V of one layer with their scales. What a format saves in time: kvbench"
        " sweep dtypes --report"
    ),
    (
        "format error: float64 attention on what the cache reads back as, against the same on the"
        " float32 numbers that were stored; kernel error: the kernel's output against the former."
        " Both are root mean squares, over that of the output"
    ),
    (
        f"the numbers are drawn from a normal distribution; of heavy keys {_LARGE} elements of a"
        f" row are {_TIMES} times larger, as in a model"
    ),
)


def _sentence(found: pd.DataFrame) -> str:
    first = found["variant"].iloc[0]
    exact, steps = found[found["variant"] == first], found[found["variant"] != first]
    said = [f"{_worst(own)} on {keys} keys" for keys, own in exact.groupby("keys", sort=False)]
    rough = exact["kernel_error"].max()
    lines = (
        f"Formats change the answer by up to {', and by '.join(said)}; {first} kernels by up to"
        f" {rough:.1e}"
    )
    if steps.empty:
        return f"{lines}."
    worst = steps.loc[steps["kernel_error"].idxmax()]
    return (
        f"{lines}, {worst['variant']} by up to {worst['kernel_error']:.1e} ({worst['dtype']},"
        f" {worst['keys']} keys)."
    )


def _worst(own: pd.DataFrame) -> str:
    row = own.loc[own["format_error"].idxmax()]
    return (
        f"{row['format_error']:.1e} of its size ({row['dtype']}, {row['token_share']:.0%} of the"
        " bytes)"
    )

"""How far is the answer of a sliding window from that of attention to all tokens?"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from kvbench.checkpoint import find
from kvbench.errors import BadArgument
from kvbench.lab.experiment import Outcome, Setup, refuse_too_large
from kvbench.oracle import attention, whole
from kvbench.report.ruled import Column
from kvbench.suite import Model

_NEAR = 8  # where attention is local, its reach is the window over this


def experiment(
    setup: Setup, model: str = "llama-3-8b", context: int = 32768, window: int = 1024
) -> Outcome:
    if context <= window:
        raise BadArgument(
            f"--context {context} never leaves a window of {window}", "more context, or less window"
        )
    known = find(model, "--model")[1]
    refuse_too_large(8 * context * (4 * known.head_dim + known.q_heads))
    contexts = [window << octave for octave in range(((context - 1) // window).bit_length())]
    found = pd.DataFrame(_deviations(setup.seed, known, [*contexts, context], window))
    return Outcome(found, _COLUMNS, _sentence(found, window), _notes(window))


def _deviations(
    seed: int, known: Model, contexts: Sequence[int], window: int
) -> Iterator[dict[str, Any]]:
    """One KV head and its query heads, in float64: on random keys, and where the weight of a token
    falls with its distance.
    """
    drawn = np.random.default_rng(seed)
    k, v = drawn.standard_normal((2, 1, max(contexts), 1, known.head_dim), dtype=np.float32)
    q = drawn.standard_normal(
        (1, known.q_heads // known.kv_heads, known.head_dim), dtype=np.float32
    )
    for context in contexts:
        row = {"context": context, "window": window}
        last_k, last_v = k[:, :context], v[:, :context]
        for data, keys, queries in (
            ("random", last_k, q),
            ("local", *_local(last_k, q, window / _NEAR)),
        ):
            full, windowed = (
                attention(queries, whole(keys, last_v), [context], limit)
                for limit in (None, window)
            )
            row[f"{data}_deviation"] = float(np.linalg.norm(windowed - full) / np.linalg.norm(full))
        yield row


def _local(k: np.ndarray, q: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Keys and queries of which one element makes a token weigh less by a factor e with each
    `reach` of distance.
    """
    tokens, dim = k.shape[1], k.shape[3]
    k, q = k.astype(np.float64), q.astype(np.float64)
    k[0, :, 0, 0] = -np.arange(tokens - 1, -1, -1) / reach
    q[:, :, 0] = np.sqrt(dim)
    return k, q


_COLUMNS = (
    Column("context", "context"),
    Column("random_deviation", "off, random", "{:.1e}".format),
    Column("local_deviation", "off, local", "{:.1e}".format),
)


def _notes(window: int) -> tuple[str, ...]:
    return (
        (
            "off: root mean square of the difference to full attention, over that of full"
            " attention, in float64"
        ),
        (
            "random: all tokens weigh alike; local: a token weighs e times less with every"
            f" {window / _NEAR:g} tokens of distance. A trained model lies somewhere between"
        ),
        "what a window saves in bytes and time: kvbench sweep window --report",
    )


def _sentence(found: pd.DataFrame, window: int) -> str:
    last = found.iloc[-1]
    return (
        f"At {last['context']:.0f} tokens, a window of {window} changes the answer by"
        f" {last['random_deviation']:.2g} times its size on random data, and by"
        f" {last['local_deviation']:.1e} times where attention is local."
    )

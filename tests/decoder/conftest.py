"""A decoder, and its logits when it computes all keys and values again at each step."""

import os
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import kvbench
from kvbench.apart import apart
from kvbench.native import default_library
from suites.experiments import Decoder, Naive, greedy

STEPS = 256
PROMPT = np.random.default_rng(7).integers(256, size=16).tolist()
TOKENS = len(PROMPT) + STEPS - 1  # that a cache holds at the end
LAYOUTS = {
    word: {"layout": word}
    for word in default_library().words("layout")
    if "f32" in default_library().dtypes(word)
}
LAYOUTS |= {
    f"paged, {inner}": {"layout": "paged", "inner": inner, "shuffle": 5}
    for inner in default_library().words("inner")
}
LAYOUTS["paged, a pool"] = {"layout": "paged", "blocks": True}


@pytest.fixture(scope="session")
def decoder():
    return Decoder()


def _naive():
    return greedy(Naive(Decoder()).step, PROMPT, STEPS)


@pytest.fixture(scope="session")
def naive():
    """The logits of each step, in float64. A process of its own gives NumPy one thread: several
    threads would wait for each other while other tests run.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OMP", "OPENBLAS", "MKL"):
            patch.setenv(f"{name}_NUM_THREADS", "1")
        root = Path(__file__).resolve().parents[2]
        patch.setenv("PYTHONPATH", str(root), prepend=os.pathsep)
        return apart(_naive)


@pytest.fixture
def caches(decoder):
    """Make a cache for each layer, with room for TOKENS and one more."""
    with ExitStack() as owned:

        def made(blocks=False, **facts):
            s, made = decoder.sizes, []
            for _ in range(s.layers):
                facts |= {"blocks": kvbench.Blocks(TOKENS // 16 + 1)} if blocks else {}
                cache = kvbench.Cache(s.kv_heads, s.head_dim, TOKENS + 1, **facts)
                made.append(owned.enter_context(cache))
            return made

        yield made

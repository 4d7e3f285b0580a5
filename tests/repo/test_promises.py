"""What this project must offer: a table with a call and its known answer for each promise.

Answers are written by hand or computed by NumPy. Whoever drops something edits this table.
"""

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.model import Shape
from kvbench.native import default_library
from kvbench.suite.axes import words as axis_words
from tests.cli.test_cli import call
from tests.raw import ROOT
from tests.repo.promises import PROMISES as RECIPES

QUICK = ROOT / "results" / "zen4-kvm-2" / "quick"
COMMANDS = {line for page in RECIPES.values() for line in page}


# ---- the library ---------------------------------------------------------------------------------


def words(kind):
    return set(default_library().words(kind))


def kernels(op):
    """Return layouts, dtypes and variants of the kernels of an op."""
    found = [kernel for kernel in default_library().kernels() if kernel.op == op]
    return tuple({getattr(kernel, name) for kernel in found} for name in ("layout", "dtype"))


LAYOUTS = {"head", "position", "paged", "blockt", "block16"}
DTYPES = {"f32", "f16", "bf16", "e4m3", "e5m2", "i8", "q8_0", "q4_0"}
OPS = {
    *("decode", "twin", "append", "bulk", "clear", "reset", "repack", "transpose", "logits"),
    *("read", "write", "write_nt", "copy", "copy_nt", "triad"),
    *("flops", "dot8", "dot16", "latency", "clock", "fill", "unpack"),
}
VARIANTS = {"flash", "twopass", "perhead", "round16", "dot"}
SCHEDULES = {"off", "cross", "weave", "stream"}
TIERS = {"scalar", "avx2", "avx512", "neon", "sve256", "sve512"}

TIMED = {"decode", "append", "bulk", "repack", "transpose", "logits", "step"}
BATCH = Shape(3, 8, 2, 64, context=9, capacity=9, window=0, layers=0)

LIBRARY = {
    "layouts": (lambda: words("layout"), LAYOUTS),
    "orders inside a page": (lambda: words("inner"), {"head", "token"}),
    "dtypes": (lambda: words("dtype"), DTYPES),
    "variants of decode": (lambda: words("variant"), VARIANTS),
    "schedules": (lambda: words("schedule"), SCHEDULES),
    "instruction sets": (lambda: words("isa"), TIERS),
    "operating system's pages": (lambda: words("pages"), {"base", "thp", "huge"}),
    "ops": (lambda: {kernel.op for kernel in default_library().kernels()}, OPS),
    "decode of every layout and dtype": (lambda: kernels("decode"), (LAYOUTS, DTYPES)),
    "append to every layout and dtype": (lambda: kernels("append"), (LAYOUTS, DTYPES)),
    "bulk store to every layout and dtype": (lambda: kernels("bulk"), (LAYOUTS, DTYPES)),
    "repack of every dtype": (lambda: kernels("repack"), ({"head", "blockt", "block16"}, DTYPES)),
    "ops that are timed": (lambda: set(axis_words("op")), TIMED),
    "lengths of a batch": (
        lambda: [replace(BATCH, lengths=lengths).held for lengths in ("even", "listed:5,9,2")],
        [(9, 9, 9), (5, 9, 2)],
    ),
    "lengths by a seed": (lambda: replace(BATCH, lengths="ragged:7").held, (9, 3, 2)),
}


# ---- the cache -----------------------------------------------------------------------------------


def rows(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def kv_heads_of(q_heads, kv_heads, asked):
    """Return which KV head each of these query heads reads: every V of a head holds its number."""
    numbers = np.broadcast_to(np.arange(kv_heads, dtype=np.float32)[:, None], (kv_heads, 16))
    with kvbench.Cache(kv_heads, 16, 4) as cache:
        cache.append(rows(1, kv_heads, 16), numbers[None])
        return [int(head) for head in cache.decode(rows(1, q_heads, 16))[0, asked, 0]]


def block_and_offset(token, table):
    """Return the block and the offset of a token in a paged cache."""
    with kvbench.Cache(1, 16, 16 * 256, layout="paged", block_tokens=16) as cache:
        cache.table[0, : len(table)] = table
        block, left = divmod(cache.place(token, 0)[0], cache.struct.k.seq_stride)
        return block, left // cache.struct.k.token_stride


def ring():
    """Return the tokens that a ring of 8 holds after 11 were stored, read from their keys."""
    with kvbench.Cache(1, 16, 8, window=8) as cache:
        for token in range(11):
            cache.append(np.full((1, 1, 16), token, np.float32), rows(1, 1, 16))
        return cache.length, [int(token) for token in cache.numpy()[0][0, :, 0, 0]]


def windowed(window):
    """Return whether a decode of the last `window` of 20 tokens equals float64 attention."""
    k, v, q = rows(1, 20, 1, 16, seed=1), rows(1, 20, 1, 16, seed=2), rows(1, 1, 16, seed=3)
    with kvbench.Cache(1, 16, 32, window=window) as cache:
        cache.bulk(k, v)
        got = cache.decode(q)[0, 0]
    scores = k[0, -window:, 0].astype(np.float64) @ q[0, 0] / 4
    weights = np.exp(scores - scores.max())
    exact = weights @ v[0, -window:, 0] / weights.sum()
    return bool(np.abs(got - exact).max() < 1e-5)


def lengths_of_a_life():
    """Return the lengths after 6 tokens, after 2 are taken back and after a reset; and whether
    there was room for more.
    """
    with kvbench.Cache(1, 16, 6) as cache:
        cache.bulk(rows(1, 6, 1, 16), rows(1, 6, 1, 16))
        full, lengths = cache.would_overflow(), [cache.length]
        cache.rollback(2)
        lengths.append(cache.length)
        cache.reset()
        return full, [*lengths, cache.length], cache.would_overflow(6)


def advanced():
    """Return whether a token that was written earlier counts again after advance()."""
    with kvbench.Cache(1, 16, 8) as cache:
        cache.bulk(rows(1, 3, 1, 16), rows(1, 3, 1, 16))
        before = cache.numpy()[0].copy()
        cache.rollback(2)
        cache.advance(2)
        return cache.length, bool((cache.numpy()[0] == before).all())


def pooled():
    """Two sequences share the two blocks of a prefix of 8 tokens, and each has one more block.
    Return how many of 8 blocks are free with both, with one and with no sequence.
    """
    pool, free = kvbench.native.Blocks(8), []
    shape = {"layout": "paged", "block_tokens": 4, "blocks": pool}
    with kvbench.Cache(1, 16, 16, **shape) as one:
        one.bulk(rows(1, 8, 1, 16), rows(1, 8, 1, 16))
        with kvbench.Cache(1, 16, 16, arena=one.arena, **shape) as two:
            pool.share(one, two, 8)
            for cache in (one, two):
                cache.append(rows(1, 1, 16), rows(1, 1, 16))
            free.append(pool.free)
        free.append(pool.free)
    return [*free, pool.free]


def scaled():
    """Store keys of 1,000 in e4m3, whose largest number is 448: as they are, and divided by one
    scale of all K.
    """
    found = []
    for tensor in (None, (4.0, 1.0)):
        with kvbench.Cache(1, 16, 1, dtype="e4m3", tensor=tensor) as cache:
            cache.append(np.full((1, 1, 16), 1024, np.float32), rows(1, 1, 16))
            found.append(float(cache.numpy()[0][0, 0, 0, 0]))
    return found


def overflow():
    """Return the length of a cache of four tokens after it has refused a fifth."""
    with kvbench.Cache(1, 16, 4) as cache:
        cache.bulk(rows(1, 4, 1, 16), rows(1, 4, 1, 16))
        with pytest.raises(BadArgument, match="more than the capacity of 4"):
            cache.append(rows(1, 1, 16), rows(1, 1, 16))
        return cache.length


def prefix_reuse():
    """Return whether, after a rollback to a prefix, answers are those of a cache that never held
    more.
    """
    k, v = rows(1, 9, 2, 16, seed=4), rows(1, 9, 2, 16, seed=5)
    q = rows(1, 4, 16, seed=6)
    with kvbench.Cache(2, 16, 16) as reused, kvbench.Cache(2, 16, 16) as fresh:
        reused.bulk(k[:, :6], v[:, :6])
        reused.rollback(to=4)
        for cache in (reused, fresh):
            start = cache.length
            cache.bulk(k[:, start:4], v[:, start:4]) if start < 4 else None
            cache.bulk(k[:, 6:], v[:, 6:])
        return bool((reused.decode(q) == fresh.decode(q)).all())


CACHE = {
    "GQA: heads 0, 7, 8, 31, 63 of 64 query heads on 8 KV heads": (
        lambda: kv_heads_of(64, 8, [0, 7, 8, 31, 63]),
        [0, 0, 1, 3, 7],
    ),
    "page table: token 37 in blocks of 16": (
        lambda: block_and_offset(37, [91, 17, 44, 203]),
        (44, 5),
    ),
    "ring": (ring, (11, list(range(3, 11)))),
    "window": (lambda: windowed(7), True),
    "would overflow, rollback, reset": (lengths_of_a_life, (True, [6, 4, 0], False)),
    "advance": (advanced, (3, True)),
    "a pool of blocks that two sequences share": (pooled, [4, 5, 8]),
    "one scale for all of K": (scaled, [448.0, 1024.0]),
    "a full cache takes no token": (overflow, 4),
    "prefix reuse": (prefix_reuse, True),
}


# ---- sizes ---------------------------------------------------------------------------------------


@cache
def said(*arguments):
    """Return what a command prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert call(*arguments) == 0
    return out.getvalue()


def size(key, *arguments):
    return json.loads(said("size", *arguments, "--json"))[key]


QWEN = ("qwen3-0.6b", "--context", "1024", "--dtype", "f32")


def arena():
    """Return the bytes of a decoder's arena, and whether each buffer ends before the next one."""
    found = size("map", *QWEN, "--map")
    apart = pairwise(found["buffers"])
    return found["total"], all(one["end"] <= other["offset"] for one, other in apart)


MIXTRAL = ("--layers", "32", "--q-heads", "32", "--kv-heads", "8", "--head-dim", "128")
SIZES = {
    "Qwen3-0.6B, 1,024 tokens in f32": (
        lambda: size("bytes", *QWEN),
        234_881_024,
    ),
    "its arena: bytes, and no buffer upon another": (arena, (966_807_552, True)),
    "Llama-3-8B, a token in f16": (lambda: size("bytes_per_token", "llama-3-8b"), 128 << 10),
    "Llama-2-7B, a token in f16": (lambda: size("bytes_per_token", "llama-2-7b"), 512 << 10),
    "Mixtral-8x7B by its numbers, a token in f16": (
        lambda: size("bytes_per_token", *MIXTRAL, "--context", "32768"),
        128 << 10,
    ),
}


# ---- what a run answers --------------------------------------------------------------------------


def of_kept_run(pattern):
    """Return the text that a pattern finds in a kept run's report."""
    found = re.search(pattern, said("report", QUICK, "--format", "md"))
    return found and " ".join(found[1].split())


def placed():
    """Return whether a kept run's decodes lie on the roofline: each rate of products is what the
    intensity allows at the bandwidth.
    """
    points = kvbench.load(QUICK).frame("points")
    decodes = points[(points["op"] == "decode") & points["gbps"].notna()]
    rates = decodes["ai"] * decodes["gbps"] / decodes["gflops"]
    return len(decodes) > 20 and bool(np.allclose(rates, 1, rtol=1e-6))


EXPERIMENTS = [  # each is run, and what it says is checked, by tests/test_notebook.py
    "What does a cache save?",
    "What if the cache is wrong?",
    "What does a shared prefix save?",
    "How far off is the answer of a sliding window?",
    "How far off is the answer of each number format?",
    "When does it pay to keep pages elsewhere?",
    "What does a ragged batch cost?",
]


def experiments():
    notebook = json.loads((ROOT / "suites" / "experiments.ipynb").read_text())
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    return re.findall(r"(?m)^## \d\. (.*)$", text)


ANSWERS = {
    "the seven experiments": (experiments, EXPERIMENTS),
    "the L3 question": (  # whether L3 is read faster than memory, and whether decode gains by it
        lambda: (
            of_kept_run(r"\*\*L3: [\d.]+ GB/s\*\* .*?x \([\d. to]+\) (plain reads of memory),"),
            of_kept_run(r"\*\*(Does L3 help\?): .*?\*\*"),
            of_kept_run(r"Does L3 help\?: .*?: a layer that (stays in L3) decodes"),
            of_kept_run(r"decodes [\d.]+x \([\d. to]+\) as fast as (from memory, same rounds)"),
        ),
        (
            "plain reads of memory",
            "Does L3 help?",
            "stays in L3",
            "from memory, same rounds",
        ),
    ),
    "the roofline": (placed, True),
    "the two drawings": (
        lambda: {"roofline", "l3"} <= {path.stem for path in FIGURES.glob("*.svg")},
        True,
    ),
}
FIGURES = QUICK / "report" / "figures"


# ---- commands that measure or compare: each is run by tests/repo/test_readme.py ------------------

RUN = {
    "a sweep with a report": "kvbench sweep --report",
    "resumption": "kvbench sweep --out runs/small --resume",
    "engines beside ours": "kvbench peers --model llama-3-8b --dtype f16 --launches 6 --report",
    "the gate": "kvbench gate --base origin/main --head . --export junit=gate.xml",
    "history": "kvbench history",
    "two runs compared": "kvbench compare runs/base runs/head",
    "a baseline blessed": "kvbench compare results/mymachine/quick runs/new --bless",
    "the score": "kvbench score --out runs/score",
    "a kernel of one's own": "kvbench verify --plugin my.so",
    "a model explained": "kvbench explain gemma-3-4b --machine results/zen4-kvm-2/quick",
}

PROMISES = LIBRARY | CACHE | SIZES | ANSWERS


@pytest.mark.parametrize("what", PROMISES)
def test_promise(what):
    call, answer = PROMISES[what]
    assert call() == answer


@pytest.mark.parametrize("what", RUN)
def test_a_page_shows_it_and_a_test_runs_it(what):
    assert RUN[what] in COMMANDS

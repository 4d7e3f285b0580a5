"""The library's ops as tasks that can be timed: decode and its twin, fills, stores, moves,
probes.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kvbench.model import PLAIN
from kvbench.model.masks import CHAIN
from kvbench.native.arena import Arena, Part
from kvbench.native.declared import Address
from kvbench.native.library import Library
from kvbench.native.plugin import Asked
from kvbench.native.queries import queries_of
from kvbench.native.scores import reshaped
from kvbench.native.team import Task, Team

if TYPE_CHECKING:
    from kvbench.native.cache import Cache

AHEAD = 2048  # bytes: how far ahead the prefetching form of a probe asks for lines


def forms(op: str, library: Library) -> dict[str, dict[str, Any]]:
    """All ways to do an op, as arguments of probe_task. Reads by every schedule are included: a
    ceiling is the best of all ways.
    """
    ahead = {"ahead": {"distance": AHEAD}} if op in ("read", "copy", "copy_nt") else {}
    by = (
        {word: {"schedule": word} for word in library.words("schedule")[1:]} if op == "read" else {}
    )
    return {PLAIN: {}} | ahead | by


def decode_task(
    op: str,
    cache: "Cache",
    q: np.ndarray,
    out: np.ndarray,
    threads: int,
    *,
    isa: str,
    variant: str = "flash",
    schedule: str = "off",
    seed: int = 0,
    mask: str = CHAIN,
    tree: np.ndarray | None = None,
    ends: np.ndarray | None = None,
    sinks: Any = None,
    softcap: Any = 0.0,
    slopes: Any = None,
    kept: int = 0,
    **fields: int,
) -> Task:
    """Make a decode task. `op` is decode, twin (the reads only) or fill (data for the cache). q and
    out: float32 [batch, q_heads, head_dim] or [batch, q_len, q_heads, head_dim].

    mask, tree (uint32 [batch, q_len]), ends (int64 [batch, q_len]), sinks, softcap and slopes
    ([q_heads]): as in kvb_decode. kept: for a cache that was made without it.
    `fields`: other fields of kvb_decode, such as wrap, deterministic or stages.
    """
    library = cache.library
    args = library.ffi.new("kvb_decode *")
    args.cache = cache.struct
    args.q, args.out = pointer(library, q), pointer(library, out)
    args.q_heads, args.window = q.shape[-2], cache.window or 0
    for kind, word in {"isa": isa, "schedule": library.schedule(schedule)}.items():
        setattr(args, kind, library.number(kind, word))
    own: dict[str, Any] = {"kept": kept or cache.kept} if kept or cache.kept else {}
    own |= _queries(library, queries_of(q), mask, tree, ends)
    own |= reshaped(library, args.q_heads, sinks, softcap, slopes)
    asked = Asked(
        queries_of(q),
        mask,
        args.window,
        ragged=ends is not None,
        softcap="softcap" in own,
        slopes="slope" in own,
        channel=cache.channel is not None,
    )
    way = library.way(variant, cache.layout, cache.dtype, isa, asked)
    for field, value in (fields | way | own).items():
        setattr(args, field, value)
    make = getattr(library.lib, f"kvb_task_{op}")
    more = (seed,) if op == "fill" else ()
    return Task(library, make, args, threads, *more, keep=(cache, q, out, *own.values()))


def _queries(
    library: Library,
    q_len: int,
    mask: str,
    tree: np.ndarray | None,
    ends: np.ndarray | None,
) -> dict[str, Any]:
    """Fields of kvb_decode that say what several queries attend to. Fields equal to those of one
    query are left out.
    """
    own: dict[str, Any] = {"q_len": q_len} if q_len > 1 else {}
    if mask != CHAIN:
        own["mask"] = getattr(library.lib, f"KVB_MASK_{mask.upper()}")
    if tree is not None:
        own["tree"] = library.ffi.from_buffer("uint32_t[]", tree)
    if ends is not None:
        own["ends"] = library.ffi.from_buffer("int64_t[]", ends)
    return own


def store_task(
    op: str,
    cache: "Cache",
    k: np.ndarray,
    v: np.ndarray,
    threads: int,
    *,
    isa: str,
    head_major: bool = False,
    nt: bool = False,
    advance: bool = False,
) -> Task:
    """Make a store task. `op` is append (k and v [batch, kv_heads, head_dim]) or bulk ([batch,
    tokens, kv_heads, head_dim], or with head_major [batch, kv_heads, tokens, head_dim]). advance:
    each pass adds to the lengths; otherwise all passes store at the same position.
    """
    library = cache.library
    args = library.ffi.new("kvb_store *")
    args.cache = cache.struct
    args.k, args.v = pointer(library, k), pointer(library, v)
    args.tokens = 1 if op == "append" else k.shape[2 if head_major else 1]
    args.isa = library.number("isa", isa)
    args.head_major = head_major
    args.nt = nt
    args.advance = advance
    return Task(library, getattr(library.lib, f"kvb_task_{op}"), args, threads, keep=(cache, k, v))


def unpack_task(
    cache: "Cache", first: int, k: np.ndarray, v: np.ndarray, threads: int, *, isa: str
) -> Task:
    """Copy tokens of every sequence, from `first` on (counted from the oldest held), as float32 to
    k and v [batch, tokens, kv_heads, head_dim].
    """
    library = cache.library
    to = pointer(library, k), pointer(library, v)
    args = cache.struct, first, k.shape[1], *to, library.number("isa", isa)
    return Task(library, library.lib.kvb_task_unpack, *args, threads, keep=(cache, k, v))


def repack_task(before: "Cache", after: "Cache", threads: int, *, isa: str) -> Task:
    """Grow `before` in place to `after`, which lies over the same memory; one thread does it."""
    library = before.library
    args = before.struct, after.struct, library.number("isa", isa)
    return Task(library, library.lib.kvb_task_repack, *args, threads, keep=(before, after))


def transpose_task(
    library: Library, source: np.ndarray, to: np.ndarray, threads: int, *, isa: str
) -> Task:
    """Transpose matrices of float32: [matrices, a, b, dim] -> [matrices, b, a, dim]."""
    matrices, rows, heads, dim = source.shape
    args = pointer(library, source), pointer(library, to), matrices, rows, heads, dim, True
    how = library.number("isa", isa), threads
    return Task(library, library.lib.kvb_task_transpose, *args, *how, keep=(source, to))


def logits_task(
    library: Library,
    source: np.ndarray,
    to: np.ndarray,
    position: np.ndarray,
    threads: int,
    *,
    isa: str,
) -> Task:
    """Copy float32 [matrices, width] to row position[0] of each of [matrices, rows, width]. Each
    pass goes on to the next row.
    """
    place = library.ffi.from_buffer("int64_t[]", position)
    args = pointer(library, source), pointer(library, to), *to.shape, place
    how = library.number("isa", isa), threads
    return Task(library, library.lib.kvb_task_logits, *args, *how, keep=(source, to, position))


def rewrite(team: Team, cache: "Cache", token: int, k: np.ndarray, v: np.ndarray) -> None:
    """Rewrite one token's rows of every sequence in place: k and v [batch, kv_heads, head_dim]."""
    lengths = cache.lengths.copy()
    cache.lengths[:] = token
    with store_task("append", cache, k, v, team.threads, isa=cache.library.isas()[0]) as task:
        team.run(task)
    cache.lengths[:] = lengths


def probe_task(
    library: Library,
    op: str,
    threads: int,
    *,
    isa: str,
    to: Arena | Part | None = None,
    source: Arena | Part | None = None,
    second: Arena | Part | None = None,
    size: int = 0,
    distance: int = 0,
    schedule: str = "",
    steps: int = 0,
    piece: int = 0,
) -> Task:
    """Make a probe over the first `size` bytes of its arenas. `to`: what op read reads, and what
    every other op writes. `second`: the other source of triad. schedule: the preset by which read
    prefetches, instead of `distance`. piece: bytes that one pass reads, going on where the last
    pass stopped; 0: all bytes.
    """
    args = library.ffi.new("kvb_probe *")
    args.op, args.isa = library.number("op", op), library.number("isa", isa)
    for field, arena in {"a": to, "b": source, "c": second}.items():
        setattr(args, field, arena.base if arena else library.ffi.NULL)
    args.bytes, args.distance, args.steps = size, distance, steps
    if schedule:  # older libraries have no such field
        args.schedule = library.number("schedule", schedule)
    if piece:
        library.refuse_no_pieces()
        args.piece = piece
    return Task(library, library.lib.kvb_task_probe, args, threads, keep=(to, source, second))


def chain(library: Library, memory: Arena | Part, size: int, seed: int) -> None:
    """Link the cache lines of the first `size` bytes into one random cycle, for latency."""
    library.check(library.lib.kvb_chain(memory.base, size, seed))


def pointer(library: Library, array: np.ndarray) -> Address:
    """A pointer to float32 data that the caller keeps alive."""
    return library.ffi.cast("float *", array.ctypes.data)

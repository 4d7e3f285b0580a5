"""A KV cache of one layer, and the library's kernels on it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kvbench.closing import Closing
from kvbench.errors import BadArgument, OutOfMemory, unknown_word
from kvbench.model.masks import CHAIN
from kvbench.model.planes import PLANES, apart, together
from kvbench.native.arena import Arena
from kvbench.native.arguments import floats, instance, place, whole
from kvbench.native.blocks import NONE, Blocks
from kvbench.native.channels import channel_kept
from kvbench.native.declared import Struct
from kvbench.native.library import Library
from kvbench.native.ops import decode_task, store_task, unpack_task
from kvbench.native.planned import library_or_default, planned
from kvbench.native.queries import asked_of, attended
from kvbench.native.team import Task, Teams
from kvbench.units import size

_LONGEST = (1 << 31) - 1  # most tokens in a ring: the library's bound


class Cache(Closing):
    """K and V of `batch` sequences, at most `capacity` tokens each, and the kernels on them.

    dtype: of K and V; a pair such as q8_0+q4_0 is K + V. v_dim: elements of a row of V (default:
        head_dim). scale: dtype of the scales, for dtypes that have them. tensor: for 8-bit floats,
        two divisors, applied to all of K and all of V as they are stored.
    channel: float32 [kv_heads, head_dim], for dtypes with scales: one scale for each element of a
        head's rows of K, also of later rows, instead of scales per row. See channel_of().
    window: decode attends to the last `window` tokens and, with `kept`, to that many first tokens.
    ring: take tokens without end and keep the last `capacity`. By default a cache is a ring if its
        window fits its capacity and it has no `kept`. A ring with `kept` can be decoded until its
        first token is overwritten.
    block_tokens, inner, shuffle: of a paged cache: tokens in a block, order in it, seed that
        scatters blocks. blocks: a number of them, for a `table` that the caller fills, or a Blocks
        pool, from which the cache takes blocks itself. Kernels read `table` and `lengths` live.
    pages, guard: see Arena. pad: bytes behind each head's plane (None: the library's choice).
        arena, offset: use this arena's bytes from there on, as they are; own memory starts as 0.

    Methods raise BadArgument (a ValueError) for a wrong argument or a closed cache, Unsupported if
    this CPU or library cannot do it, OutOfMemory if memory is short. The tokens then stay.
    """

    def __init__(
        self,
        kv_heads: int,
        head_dim: int,
        capacity: int,
        batch: int = 1,
        layout: str = "head",
        dtype: str = "f32",
        window: int | None = None,
        block_tokens: int = 16,
        *,
        inner: str = "head",
        kept: int = 0,
        v_dim: int | None = None,
        scale: str = "f32",
        ring: bool | None = None,
        pad: int | None = None,
        shuffle: int | None = None,
        blocks: int | Blocks | None = None,
        tensor: Any = None,
        channel: Any = None,
        pages: str = "thp",
        guard: int = 0,
        arena: Arena | None = None,
        offset: int = 0,
        library: Library | None = None,
    ) -> None:
        self.library = library_or_default(library)
        self.layout = layout
        self.dtype = together(*self.library.halves(dtype))
        self.window, self.kept = window, kept
        self.pool = blocks if isinstance(blocks, Blocks) else None
        cache = self._struct = self.planned(
            kv_heads,
            head_dim,
            capacity,
            batch=batch,
            layout=layout,
            dtype=dtype,
            window=window,
            kept=kept,
            block_tokens=block_tokens,
            inner=inner,
            v_dim=v_dim,
            scale=scale,
            ring=ring,
            pad=pad,
            blocks=blocks.count if isinstance(blocks, Blocks) else blocks,
            tensor=tensor,
            channel=channel,
            library=self.library,
        )
        self.lengths = np.zeros(cache.batch, dtype=np.int64)
        cache.lengths = self.library.ffi.from_buffer("int64_t[]", self.lengths)
        self.table = self._tabled(shuffle, blocks is not None)
        if self.table is not None:
            cache.table = self.library.ffi.from_buffer("int32_t[]", self.table)
        self._own = arena is None
        own = Arena(cache.bytes, pages, guard, self.library) if arena is None else arena
        self._arena: Arena | None = instance("arena", own, Arena)
        end = (offset := whole("offset", offset)) + cache.bytes
        if offset < 0 or end > own.size:
            raise BadArgument(
                f"offset {offset}: the cache ends at byte {end}", f"the arena has {own.size}"
            )
        self.library.check(self.library.lib.kvb_cache_bind(cache, own.base + offset))
        self._teams = Teams(self.library)

    def _tabled(self, shuffle: int | None, given: bool) -> np.ndarray | None:
        """Make the table of a paged cache. `given`: `blocks` was passed, so the table starts
        empty.
        """
        shape = (self._struct.batch, self._struct.table_stride)
        if not shape[1]:
            for name, asked in {"shuffle": shuffle is not None, "blocks": given}.items():
                if asked:
                    raise BadArgument(f"{name}: a {self.layout} cache is not paged", "leave it out")
            return None
        if given and shuffle is None:
            return np.full(shape, NONE, dtype=np.int32)
        if given:
            raise BadArgument("shuffle: blocks says that the table is filled later", "leave it out")
        order = np.arange(self._struct.blocks, dtype=np.int32)
        if shuffle is not None:
            order = np.random.default_rng(place("shuffle", shuffle)).permutation(order)
        return order.reshape(shape)

    @classmethod
    def size_of(cls, kv_heads: int, head_dim: int, capacity: int, **facts: Any) -> int:
        """Compute the bytes of a cache with these arguments, without allocating it."""
        return cls.planned(kv_heads, head_dim, capacity, **facts).bytes

    @classmethod
    def is_paged(cls, layout: str, library: Library | None = None) -> bool:
        """Whether caches of this layout find their rows through a table of blocks."""
        # every layout has i8
        return cls.planned(1, 1, 1, layout=layout, dtype="i8", library=library).table_stride > 0

    planned = staticmethod(planned)

    def __repr__(self) -> str:
        c = self._struct
        dims = together(*map(str, self.dims))
        shape = f"{c.batch} x {c.kv_heads} x {dims}, {self.length} of {c.capacity} tokens"
        return f"<Cache {self.layout} {self.dtype}, {shape}, {size(c.bytes)}>"

    def close(self) -> None:
        """Give the memory back once no thread works on it. The cache cannot be used afterwards."""
        with self._teams.lock:
            self._teams.close()
            if self._arena is not None:
                if self.pool is not None and self.table is not None:
                    self.pool.give_back(self.table[self.table != NONE])
                if self._own:
                    self._arena.close()
                self._arena = None

    def _refuse_closed(self) -> None:
        if self._arena is None:
            raise BadArgument("the cache is closed", "make another one")
        self._arena.pointer  # noqa: B018  # refuses when the arena itself is closed

    @property
    def struct(self) -> Struct:
        """The `kvb_cache *`."""
        self._refuse_closed()
        return self._struct

    @property
    def arena(self) -> Arena:
        """The memory of all planes, one after another: K, V, then their scales."""
        self._refuse_closed()
        assert self._arena is not None  # _refuse_closed has checked it
        return self._arena

    @property
    def length(self) -> int:
        """The tokens of the longest sequence."""
        return int(self.lengths.max())

    @property
    def dims(self) -> tuple[int, int]:
        """Elements of a row of K, and of a row of V."""
        return self._struct.head_dim, self._struct.v_dim or self._struct.head_dim

    @property
    def channel(self) -> np.ndarray | None:
        """The scales of K by channel, float32 [kv_heads, head_dim], or None."""
        return channel_kept(self._struct)

    def half(self, plane: str) -> tuple[str, int]:
        """The dtype of a plane ("k" or "v"), and the elements of its rows."""
        place = PLANES.index(plane)
        return apart(self.dtype)[place], self.dims[place]

    def place(self, token: int, head: int, sequence: int = 0, plane: str = "k") -> tuple[int, int]:
        """Where a token's row begins: bytes into the plane, and bytes into its scales. Rows of K
        may be transposed: plane_bytes() lists all bytes of a row.
        """
        if plane not in PLANES:
            raise unknown_word("plane", plane, PLANES)
        c, own = self.struct, getattr(self.struct, plane)
        head, of = place("head", head, c.kv_heads), place("sequence", sequence, c.batch)
        slot = place("token", token, _LONGEST if c.ring else c.capacity) % c.capacity
        if self.table is not None:
            of, slot = int(self.table[of, slot // c.block_tokens]), slot % c.block_tokens
        return (
            of * own.seq_stride + head * own.head_stride + slot * own.token_stride,
            of * own.scale_seq_stride
            + head * own.scale_head_stride
            + slot * own.scale_token_stride,
        )

    def look_up_in(self, other: "Cache") -> None:
        """Use the table of `other` from now on; the array lives as long as it is used."""
        self.table = other.table
        if self.table is not None:
            self.struct.table = self.library.ffi.from_buffer("int32_t[]", self.table)

    # ---- stores ----------------------------------------------------------------------------------

    def append(self, k: Any, v: Any, isa: str | None = None, threads: int = 1) -> None:
        """Append one token to every sequence: k [batch, kv_heads, head_dim], v [batch, kv_heads,
        v_dim], taken as float32. Raises BadArgument if the cache is full.
        """
        c = self.struct
        self._store("append", k, v, (c.batch, c.kv_heads), 1, isa, threads)

    def bulk(
        self,
        k: Any,
        v: Any,
        head_major: bool = False,
        nt: bool = False,
        isa: str | None = None,
        threads: int = 1,
    ) -> None:
        """Append T prompt tokens to every sequence: k [batch, T, kv_heads, head_dim], or with
        head_major [batch, kv_heads, T, head_dim]; v has v_dim in place of head_dim. Both are taken
        as float32. nt: use non-temporal stores. Raises BadArgument if the tokens do not fit.
        """
        c, head_major = self.struct, bool(head_major)
        shape: tuple[int | str, ...] = (
            (c.batch, c.kv_heads, "T") if head_major else (c.batch, "T", c.kv_heads)
        )
        tokens = floats("k", k, (*shape, c.head_dim)).shape[2 if head_major else 1]
        shape = tuple(tokens if size == "T" else size for size in shape)
        self._store("bulk", k, v, shape, tokens, isa, threads, head_major=head_major, nt=bool(nt))

    def _store(
        self,
        op: str,
        k: Any,
        v: Any,
        shape: tuple[int | str, ...],
        tokens: int,
        isa: str | None,
        threads: int,
        **facts: bool,
    ) -> None:
        """Store k and v. `shape`: theirs, without the last axis."""
        k, v = (
            floats(name, rows, (*shape, dim))
            for name, rows, dim in zip(PLANES, (k, v), self.dims, strict=True)
        )
        threads = whole("threads", threads, 32)
        isa = self.library.isa(isa)
        with self._teams.lock:
            team = self._teams.of(threads)
            self._make_room(tokens)
            with store_task(op, self, k, v, threads, isa=isa, advance=True, **facts) as task:
                team.run(task)

    # ---- life ------------------------------------------------------------------------------------

    def would_overflow(self, tokens: int = 1) -> bool:
        """Whether there is no room for `tokens` more of every sequence."""
        if self._too_long(self.length, tokens):
            return True
        return self.pool is not None and self.pool.missing(self, tokens).sum() > self.pool.free

    def _too_long(self, length: int, tokens: int) -> bool:
        most = _LONGEST if self.struct.ring else self.struct.capacity
        return length + place("tokens", tokens) > most

    def _make_room(self, tokens: int, sequence: int | None = None) -> None:
        """Refuse tokens that do not fit, and take blocks for tokens that do."""
        length = self.length if sequence is None else int(self.lengths[sequence])
        if self._too_long(length, tokens):
            raise BadArgument(
                f"tokens: {length} + {tokens} tokens are more than the capacity of"
                f" {self._struct.capacity}",
                "roll back, reset, or make a larger cache or a ring",
            )
        if self.pool is not None:
            self.pool.fill(self, tokens, sequence)

    def advance(self, tokens: int = 1, *, sequence: int | None = None) -> None:
        """Count `tokens` more of every sequence, or of one. The caller has written their bytes, or
        writes them before they are read. The opposite of rollback. Raises BadArgument if they do
        not fit.
        """
        which = slice(None) if sequence is None else place("sequence", sequence, len(self.lengths))
        with self._teams.lock:
            self._make_room(tokens, sequence)
            self.lengths[which] += tokens

    def rollback(
        self, tokens: int | None = None, *, to: int | None = None, sequence: int | None = None
    ) -> None:
        """Forget the last `tokens` of every sequence, or of one; or all but the first `to`. Their
        bytes stay.

        A ring that has overwritten tokens can only forget all. Raises BadArgument for a longer
        length.
        """
        if (tokens is None) == (to is None):
            raise BadArgument(
                "rollback takes either a number of tokens or a length",
                "rollback(3), or rollback(to=100)",
            )
        self._refuse_closed()
        lengths, capacity = self.lengths.copy(), self._struct.capacity
        which = slice(None) if sequence is None else place("sequence", sequence, len(lengths))
        lengths[which] = lengths[which] - place("tokens", tokens) if to is None else place("to", to)
        lost = (lengths > 0) & (lengths < self.lengths) & (self.lengths > capacity)
        for at in np.flatnonzero((lengths < 0) | (lengths > self.lengths) | lost):
            hint = (
                f"the ring keeps {capacity}: reset it"
                if lost[at]
                else "roll back to a length between 0 and that"
            )
            raise BadArgument(
                f"sequence {at} has {self.lengths[at]} tokens; it cannot be rolled back to"
                f" {lengths[at]}",
                hint,
            )
        self.lengths[:] = lengths
        if self.pool is not None:
            self.pool.empty(self)

    def reset(self) -> None:
        """Forget all tokens of every sequence; their bytes stay."""
        self.library.check(self.library.lib.kvb_reset(self.struct))
        if self.pool is not None:
            self.pool.empty(self)

    def clear(self, isa: str | None = None, threads: int = 1) -> None:
        """Zero every byte; the lengths stay."""
        self._make(threads, self.library.lib.kvb_task_clear, self.struct, self._isa(isa))

    # ---- reads -----------------------------------------------------------------------------------

    def decode(
        self,
        q: Any,
        variant: str = "flash",
        isa: str | None = None,
        threads: int = 1,
        deterministic: bool = False,
        mask: str = CHAIN,
        tree: Any = None,
        queries: Any = None,
        sinks: Any = None,
        softcap: Any = 0.0,
        slopes: Any = None,
    ) -> np.ndarray:
        """Attention of the newest token of each sequence: q [batch, q_heads, head_dim] to float32
        [batch, q_heads, v_dim]. Several queries: [batch, q, q_heads, ..] for both.

        deterministic: the same bits for any number of threads.
        mask: which of its newest q tokens a query attends to, besides all before. chain: those up
            to its own; block: all. Or `tree`: booleans [q, q] or [batch, q, q], a row per query.
        queries: integers [batch], how many queries each sequence has; other output rows are 0.
        sinks, slopes ([q_heads]) and softcap change the scores, see kvbench/model/scores.py.

        Raises BadArgument if the cache is empty, or if the variant has no kernel for this cache.
        """
        c = self.struct
        q = asked_of(q, c.batch, c.head_dim)
        if not self.length:
            raise BadArgument("the cache is empty", "append a token first")
        facts = attended(q, self.lengths, mask, tree, queries)
        out = np.empty((*q.shape[:-1], self.dims[1]), dtype=np.float32)
        threads = whole("threads", threads, 32)
        facts |= {"isa": self.library.isa(isa), "deterministic": bool(deterministic)}
        facts |= {"sinks": sinks, "softcap": softcap, "slopes": slopes}
        task = decode_task("decode", self, q, out, threads, variant=variant, **facts)
        self._run(threads, task)
        return out

    def numpy(self, isa: str | None = None, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The tokens still held, oldest first, decoded to float32: K [batch, tokens, kv_heads,
        head_dim] and V [batch, tokens, kv_heads, v_dim]. Shorter sequences end in zeros.
        """
        self._refuse_closed()
        return self.rows(0, min(self.length, self._struct.capacity), isa, threads)

    def rows(
        self, first: int, count: int, isa: str | None = None, threads: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """`count` tokens from `first` on, counted from the oldest held, as numpy() returns them.
        Raises OutOfMemory if the arrays do not fit.
        """
        c = self.struct
        shape = (c.batch, place("count", count, c.capacity + 1), c.kv_heads)
        try:
            k, v = (np.empty((*shape, dim), dtype=np.float32) for dim in self.dims)
        except MemoryError:
            raise OutOfMemory(
                f"count is {count}: too little memory for so many rows", "ask for fewer"
            ) from None
        if count:
            threads, first = whole("threads", threads, 32), whole("first", first)
            isa = self.library.isa(isa)
            self._run(threads, unpack_task(self, first, k, v, threads, isa=isa))
        return k, v

    # ---- calls -----------------------------------------------------------------------------------

    def _isa(self, isa: str | None) -> int:
        return self.library.number("isa", self.library.isa(isa))

    def _make(self, threads: int, make: Any, *args: Any, keep: tuple[Any, ...] = ()) -> None:
        threads = whole("threads", threads, 32)
        self._run(threads, Task(self.library, make, *args, threads, keep=keep))

    def _run(self, threads: int, task: Task) -> None:
        with self._teams.lock, task:
            self._refuse_closed()  # a thread may have closed the cache since the task was made
            self._teams.of(threads).run(task)


def described(cache: Cache) -> Iterator[memoryview]:
    """All that a kernel is told about a cache, except its planes' bytes."""
    yield memoryview(cache.library.ffi.buffer(cache.struct))
    yield cache.lengths.data
    if cache.table is not None:
        yield np.ascontiguousarray(cache.table).data

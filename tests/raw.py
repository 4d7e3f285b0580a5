"""The library through cffi alone, for tests: any build by its path, guarded arenas, plain calls."""

import os
import subprocess
import weakref
from contextlib import contextmanager
from pathlib import Path

import cffi
import numpy as np

from tests.oracle import Planes, Shape
from tests.queries import Queries
from tests.scores import Scores

ROOT = Path(__file__).resolve().parent.parent
_parsed = cffi.FFI()
_parsed.cdef((ROOT / "kernels" / "abi.h").read_text())
_alive: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # arrays that a struct points to


def compiled(path: Path, source: Path, names: tuple[str, ...], declared: str, *definitions: str):
    """A C file of a test, compiled with some of the library's, as a library opened by cffi; and
    that cffi.
    """
    sources = [source, *(ROOT / "kernels" / f"{name}.c" for name in names)]
    flags = [
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Werror",
        f"-I{ROOT / 'kernels'}",
        *(f"-D{name}" for name in definitions),
    ]
    subprocess.run(["cc", *flags, "-o", path, *sources], check=True)
    ffi = cffi.FFI()
    ffi.cdef(declared)
    return ffi, ffi.dlopen(str(path))


class Refused(Exception):
    """A call returned a code; args are (code, message)."""


def library_path() -> str:
    """The build under test: KVB_LIBRARY, or the one that the package uses."""
    chosen = os.environ.get("KVB_LIBRARY")
    if chosen:
        return chosen
    from kvbench import native

    return str(native.library_path())


class Raw:
    """One opened library."""

    def __init__(self, path: str | Path | None = None):
        self.ffi = _parsed
        self.path = str(path or library_path())
        self.lib = self.ffi.dlopen(self.path)
        self._words: dict[str, list[str]] = {}

    def words(self, name: str) -> list[str]:
        if name not in self._words:
            words = self._words[name] = []
            while (word := self.lib.kvb_word(name.encode(), len(words))) != self.ffi.NULL:
                words.append(self.ffi.string(word).decode())
        return self._words[name]

    def word(self, name: str, word: str) -> int:
        return self.words(name).index(word)

    def tiers(self) -> list[str]:
        return [isa for index, isa in enumerate(self.words("isa")) if self.lib.kvb_isa_runs(index)]

    def kernels(self) -> list[dict]:
        rows = []
        while (kernel := self.lib.kvb_kernels(len(rows))) != self.ffi.NULL:
            names = ("op", "variant", "layout", "dtype", "isa")
            rows.append({name: self.ffi.string(getattr(kernel, name)).decode() for name in names})
            rows[-1]["runnable"] = bool(kernel.runnable)
        return rows

    def message(self) -> str:
        return self.ffi.string(self.lib.kvb_message()).decode()

    def check(self, code: int) -> None:
        if code:
            raise Refused(code, self.message())

    @contextmanager
    def task(self, maker: str, *args):
        """A task that is freed at the end of the block. `maker` is "decode" for kvb_task_decode,
        ...
        """
        task = self.ffi.new("kvb_task **")
        self.check(getattr(self.lib, f"kvb_task_{maker}")(*args, task))
        try:
            yield task[0]
        finally:
            self.lib.kvb_task_free(task[0])

    def traffic(self, maker: str, *args):
        """The kvb_traffic of one pass of such a task."""
        found = self.ffi.new("kvb_traffic *")
        with self.task(maker, *args) as task:
            self.check(self.lib.kvb_task_traffic(task, found))
        return found

    def floats(self, array: np.ndarray):
        return self.ffi.cast("float *", array.ctypes.data)

    def bytes_at(self, pointer, size: int) -> np.ndarray:
        return (
            np.frombuffer(self.ffi.buffer(pointer, size), dtype=np.uint8)
            if size
            else np.zeros(0, np.uint8)
        )


class Closed:
    """A base of classes that a with statement closes."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Arena(Closed):
    """Memory of the library. guard 1: the end touches an unreadable page; 2: the start does."""

    def __init__(self, raw: Raw, size: int, guard: int = 0):
        self.raw, self.size = raw, size
        self.arena = raw.ffi.new("kvb_arena *")
        raw.check(raw.lib.kvb_arena_open(max(size, 1), 0, guard, self.arena))
        self.base = self.arena.base

    def floats(self, count: int, at_end: bool) -> np.ndarray:
        """A float32 view of the first `count` floats, or of the last ones."""
        offset = self.size - 4 * count if at_end else 0
        return np.frombuffer(self.raw.ffi.buffer(self.base + offset, 4 * count), dtype=np.float32)

    def close(self) -> None:
        if self.arena is not None:
            self.raw.lib.kvb_arena_close(self.arena)
            self.arena = None


class Bound(Closed):
    """A kvb_cache over an arena, with its planes as NumPy views that share its memory."""

    def __init__(
        self, raw: Raw, shape: Shape, lengths, table: np.ndarray | None = None, guard: int = 0
    ):
        self.raw, self.shape = raw, shape
        self.cache = cache = raw.ffi.new("kvb_cache *")
        for list_name in ("layout", "inner"):
            setattr(cache, list_name, raw.word(list_name, getattr(shape, list_name)))
        for plane, side in zip((cache.k, cache.v), shape.sides, strict=True):
            plane.dtype, plane.scale = raw.word("dtype", side.dtype), raw.word("scale", side.scale)
            plane.tensor = side.tensor
        self.channel = None if shape.channel is None else np.array(shape.channel, np.float32)
        if self.channel is not None:
            cache.k.channel = raw.floats(self.channel)
        sizes = ("batch", "kv_heads", "head_dim", "v_dim", "capacity", "block_tokens", "blocks")
        for name in (*sizes, "pad"):
            setattr(cache, name, getattr(shape, name))
        cache.ring = int(shape.ring)
        raw.check(raw.lib.kvb_cache_plan(cache))
        self.lengths = np.array(lengths, dtype=np.int64)
        cache.lengths = raw.ffi.cast("int64_t *", self.lengths.ctypes.data)
        self.table = None if table is None else np.array(table, dtype=np.int32)
        if self.table is not None:
            cache.table = raw.ffi.cast("int32_t *", self.table.ctypes.data)
        self.arena = Arena(raw, cache.bytes, guard)
        raw.check(raw.lib.kvb_cache_bind(cache, self.arena.base))
        planes = [(plane.rows, plane.bytes) for plane in (cache.k, cache.v)]
        planes += [(plane.scales, plane.scale_bytes) for plane in (cache.k, cache.v)]
        self.planes = Planes(*(raw.bytes_at(*plane) for plane in planes))

    def put(self, planes: Planes) -> None:
        for mine, given in zip(self.planes.all(), planes.all(), strict=True):
            mine[:] = given

    def close(self) -> None:
        self.planes = None
        self.arena.close()


class Team(Closed):
    def __init__(self, raw: Raw, threads: int):
        self.raw, self.threads = raw, threads
        self.team = raw.ffi.new("kvb_team **")
        raw.check(raw.lib.kvb_team_open(raw.ffi.NULL, threads, self.team))

    def run(self, task, passes: int = 1):
        """Run a task made by `make`; returns the kvb_run_times."""
        times = self.raw.ffi.new("kvb_run_times *")
        tasks = self.raw.ffi.new("kvb_task *[1]", [task])
        null = self.raw.ffi.NULL
        self.raw.check(self.raw.lib.kvb_run(self.team[0], tasks, 1, passes, null, times))
        return times

    def do(self, maker: str, *args) -> None:
        """Plan a task, run it once, free it."""
        with self.raw.task(maker, *args, self.threads) as task:
            self.run(task)

    def sum(self, maker: str, args, passes: int = 1) -> int:
        """The sum of what `passes` passes of such a task have loaded."""
        found = self.raw.ffi.new("uint32_t *")
        with self.raw.task(maker, args, self.threads) as task:
            self.run(task, passes)
            self.raw.check(self.raw.lib.kvb_task_sum(task, found))
        return found[0]

    def close(self) -> None:
        self.raw.lib.kvb_team_close(self.team[0])


def decode_args(
    raw: Raw,
    bound: Bound,
    q: np.ndarray,
    out: np.ndarray,
    isa: str,
    variant: str = "flash",
    schedule: str = "off",
    **rest,
):
    """A kvb_decode over q [B * queries, Hq, D] and out [B * queries, Hq, Dv]; `rest` sets other
    fields.
    """
    args = raw.ffi.new("kvb_decode *")
    _alive[args] = (bound, q, out, rest)
    args.cache, args.q, args.out = bound.cache, raw.floats(q), raw.floats(out)
    args.q_heads = q.shape[1]
    args.isa, args.variant = raw.word("isa", isa), raw.word("variant", variant)
    args.schedule = raw.word("schedule", schedule)
    for name, value in rest.items():
        setattr(args, name, value)
    return args


def mask_of(raw: Raw, queries: Queries) -> int:
    return getattr(raw.lib, f"KVB_MASK_{queries.mask.upper()}")


def queries_args(raw: Raw, queries: Queries) -> dict:
    """Fields of a kvb_decode about queries."""
    fields = {"q_len": queries.q_len, "mask": mask_of(raw, queries), "kept": queries.kept}
    if queries.ends is not None:
        fields["ends"] = raw.ffi.new("int64_t[]", queries.ends.ravel().tolist())
    if queries.tree is not None:
        fields["tree"] = raw.ffi.new("uint32_t[]", queries.tree.ravel().tolist())
    return fields


def scores_args(raw: Raw, asked: Scores) -> dict:
    """Fields of a kvb_decode about scores."""
    fields = {"softcap": asked.softcap}
    for name, values in {"slope": asked.slopes, "sink": asked.sinks}.items():
        if values is not None:
            fields[name] = raw.ffi.new("float[]", values.tolist())
    return fields


def store_args(raw: Raw, bound: Bound, k: np.ndarray, v: np.ndarray, tokens: int, isa: str, **rest):
    """A kvb_store of source arrays k and v; `rest` sets other fields."""
    args = raw.ffi.new("kvb_store *")
    _alive[args] = (bound, k, v)
    args.cache, args.k, args.v, args.tokens = bound.cache, raw.floats(k), raw.floats(v), tokens
    args.isa = raw.word("isa", isa)
    for name, value in rest.items():
        setattr(args, name, value)
    return args

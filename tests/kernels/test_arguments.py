"""Wrong arguments: a status code, a message that names the argument, and untouched outputs.

Every field has its rule in the C check program (tests/check/arguments.c), which
test_check_program.py runs. This file tests lengths and tables, sizes that would wrap, values that
are not numbers, changed plans, and tiers.
"""

import math

import numpy as np
import pytest

from tests.oracle import Planes, Shape
from tests.raw import Arena, Bound, Refused, decode_args, store_args

INT32_MAX, INT64_MAX = (1 << 31) - 1, (1 << 63) - 1
SHAPE = Shape(
    layout="paged",
    dtype="f16",
    batch=2,
    kv_heads=2,
    head_dim=24,
    capacity=40,
    block_tokens=8,
    blocks=10,
)
SENTINEL = np.float32(-5.5)


@pytest.fixture
def bound(raw):
    with Bound(raw, SHAPE, [3, 12], np.arange(10).reshape(2, 5), guard=1) as bound:
        bound.put(Planes.filled(SHAPE, 0x3C))
        yield bound


def task_of(raw, maker, *args, threads=1):
    with raw.task(maker, *args, threads):
        pass


def refused(raw, name, call, code="KVB_BAD_ARGUMENT"):
    with pytest.raises(Refused) as caught:
        call()
    assert caught.value.args[0] == getattr(raw.lib, code)
    assert name in caught.value.args[1], caught.value.args[1]


def test_a_layout_refuses_what_it_has_not(raw):
    transposed = {"batch": 1, "kv_heads": 2, "head_dim": 24, "capacity": 40}
    message = "dtype e4m3 is not in the layout blockt, which has: f32, f16, bf16, i8"
    refused(raw, message, lambda: Bound(raw, Shape("blockt", "e4m3", **transposed), [3]))
    message = "dtype f16 is not in the layout block16, which has: i8, e4m3, e5m2, q8_0, q4_0"
    pair = Shape("block16", "i8", v_dtype="f16", **transposed)
    refused(raw, message, lambda: Bound(raw, pair, [3]))
    with Bound(raw, Shape("blockt", "f16", **transposed), [3]) as bound:
        q = np.ones((1, 4, 24), np.float32)
        args = decode_args(raw, bound, q, q.copy(), "scalar", variant="perhead")
        message = "variant perhead has no kernel for the dtype f16 in the layout blockt"
        refused(raw, message, lambda: task_of(raw, "decode", args))


@pytest.mark.parametrize("layout", ["head", "position"])
@pytest.mark.parametrize(
    "sizes", [(1 << 20, 1 << 16, 1024), (1 << 20, 1 << 10, 1024), (1, 1 << 16, 1024)]
)
def test_capacity_near_2_to_31(raw, layout, sizes):
    """The size is exact, or the refusal names the capacity: it never wraps."""
    batch, heads, dim = sizes
    facts = {
        "layout": raw.word("layout", layout),
        "batch": batch,
        "kv_heads": heads,
        "head_dim": dim,
    }
    cache = raw.ffi.new(
        "kvb_cache *", facts | {"capacity": INT32_MAX, "block_tokens": 1, "blocks": 1}
    )
    exact = 2 * batch * heads * INT32_MAX * dim * 4
    if exact > INT64_MAX // 16:
        refused(raw, "capacity", lambda: raw.check(raw.lib.kvb_cache_plan(cache)))
    else:
        raw.check(raw.lib.kvb_cache_plan(cache))
        assert cache.bytes == exact


@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_scales_that_are_no_number(raw, bound, scale):
    q = np.ones((2, 4, 24), np.float32)
    for maker in ("decode", "twin"):
        refused(
            raw,
            "scale",
            lambda maker=maker: task_of(
                raw, maker, decode_args(raw, bound, q, q, "scalar", scale=scale)
            ),
        )


@pytest.mark.parametrize(
    ("owner", "value", "makers"),
    [
        *(("lengths", value, ("decode", "append")) for value in (41, -1, INT64_MAX)),
        *(("table", value, ("decode", "append")) for value in (10, INT32_MAX)),
        *(("table", value, ("decode",)) for value in (-1, -INT32_MAX - 1)),  # a store skips these
        ("tokens", 40, ("append",)),
    ],
)
def test_lengths_and_tables(raw, bound, owner, value, makers):
    """The caller owns them and may write wrong values: beyond the capacity, a block that does not
    exist, a full cache.
    """
    q = np.ones((2, 4, 24), np.float32)
    out = np.full_like(q, SENTINEL)
    (bound.table if owner == "table" else bound.lengths).flat[6 if owner == "table" else 1] = value
    calls = {
        "decode": decode_args(raw, bound, q, out, "scalar"),
        "append": store_args(raw, bound, q, q, 1, "scalar"),
    }
    for maker in makers:
        refused(raw, owner, lambda maker=maker: task_of(raw, maker, calls[maker]))
    assert (out == SENTINEL).all() and all((plane == 0x3C).all() for plane in bound.planes.all())


def test_table_entry_out_of_range_in_a_turned_ring(raw):
    """Every entry is checked in a ring whose capacity is not a multiple of a block."""
    shape = Shape(
        layout="paged",
        dtype="f16",
        batch=1,
        kv_heads=1,
        head_dim=8,
        capacity=10,
        block_tokens=4,
        blocks=3,
        ring=True,
    )
    q = np.ones((1, 1, 8), np.float32)
    for bad in range(3):
        for length in range(10, 25):
            with Bound(raw, shape, [length], np.arange(3)[None]) as bound:
                bound.table[0, bad] = 3
                args = decode_args(raw, bound, q, q.copy(), "scalar", window=10)
                refused(raw, "table", lambda args=args: task_of(raw, "decode", args))


def test_a_shape_changed_behind_the_plan(raw, bound):
    q = np.ones((2, 4, 64), np.float32)
    for field, value in (
        ("head_dim", 64),
        ("kv_heads", 1),
        ("capacity", 48),
        ("block_tokens", 4),
        ("blocks", 20),
        ("k.bytes", 64),
        ("v.bytes", 64),
        ("v.scale_bytes", 64),
        ("v.token_stride", 128),
        ("v.dim", 16),
        ("k.cell", 2),
        ("v_dim", 16),
    ):
        plane, _, name = field.rpartition(".")
        owner = getattr(bound.cache, plane) if plane else bound.cache
        kept = getattr(owner, name)
        setattr(owner, name, value)
        refused(
            raw, "cache", lambda: task_of(raw, "decode", decode_args(raw, bound, q, q, "scalar"))
        )
        setattr(owner, name, kept)
    bound.cache.k.dtype = bound.cache.v.dtype = raw.word("dtype", "f32")
    refused(raw, "cache", lambda: task_of(raw, "decode", decode_args(raw, bound, q, q, "scalar")))


@pytest.mark.parametrize("maker", ["decode", "twin", "fill", "append", "bulk", "clear", "unpack"])
def test_a_tier_that_does_not_run(raw, bound, maker):
    missing = [isa for isa in raw.words("isa") if isa not in raw.tiers()]
    q = np.ones((2, 4, 24), np.float32)
    out = np.full_like(q, SENTINEL)
    for isa in missing:
        calls = {
            "decode": lambda isa=isa: task_of(raw, "decode", decode_args(raw, bound, q, out, isa)),
            "twin": lambda isa=isa: task_of(raw, "twin", decode_args(raw, bound, q, out, isa)),
            "fill": lambda isa=isa: raw.check(
                raw.lib.kvb_task_fill(
                    decode_args(raw, bound, q, out, isa), 1, 7, raw.ffi.new("kvb_task **")
                )
            ),
            "append": lambda isa=isa: task_of(raw, "append", store_args(raw, bound, q, q, 1, isa)),
            "bulk": lambda isa=isa: task_of(raw, "bulk", store_args(raw, bound, q, q, 1, isa)),
            "clear": lambda isa=isa: task_of(raw, "clear", bound.cache, raw.word("isa", isa)),
            "unpack": lambda isa=isa: task_of(
                raw,
                "unpack",
                bound.cache,
                0,
                1,
                raw.floats(out),
                raw.floats(out),
                raw.word("isa", isa),
            ),
        }
        refused(raw, isa, calls[maker], code="KVB_UNSUPPORTED")
    assert missing and (out == SENTINEL).all() and (bound.planes.k == 0x3C).all()


@pytest.mark.parametrize("line", [0, 1, 31, 63])
def test_a_chain_whose_lines_do_not_all_lead_to_lines(raw, line):
    """No task is planned if any line leads out of the chain, or into the middle of a line."""
    with Arena(raw, 64 * 64) as arena:
        facts = {"op": raw.word("op", "latency"), "bytes": 64 * 64, "steps": 64, "a": arena.base}
        args = raw.ffi.new("kvb_probe *", facts)
        links = np.frombuffer(raw.ffi.buffer(arena.base, 64 * 64), dtype=np.uint64)[::8]
        for wrong in (0, 64 * 64, 8):
            raw.check(raw.lib.kvb_chain(arena.base, 64 * 64, 1))
            task_of(raw, "probe", args)
            links[line] = int(raw.ffi.cast("uintptr_t", arena.base)) + wrong if wrong else 0
            refused(
                raw,
                f"a is not a chain: line {line} leads out of it",
                lambda: task_of(raw, "probe", args),
            )

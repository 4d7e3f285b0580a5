"""Bytes and FLOPs, counted a second time from the shape."""

import numpy as np
import pytest

from tests import oracle
from tests.oracle import Shape, attended
from tests.raw import Bound, decode_args, store_args

LENGTHS, Q_HEADS = [700, 33, 0], 8


def shape_of(layout, dtype, **more):
    return Shape(layout=layout, dtype=dtype, batch=3, kv_heads=2, head_dim=72, capacity=800, block_tokens=24,
                 blocks=120, **more)  # fmt: skip


def table_of(shape):
    return np.arange(3 * shape.table_width, dtype=np.int32).reshape(3, -1) if shape.layout == "paged" else None


def traffic(raw, maker, args):
    task, found = raw.ffi.new("kvb_task **"), raw.ffi.new("kvb_traffic *")
    raw.check(getattr(raw.lib, f"kvb_task_{maker}")(args, 1, task))
    raw.check(raw.lib.kvb_task_traffic(task[0], found))
    raw.lib.kvb_task_free(task[0])
    return found


@pytest.mark.parametrize("layout", ["head", "position", "paged", "blockt"])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("window", [0, 100])
@pytest.mark.parametrize("variant", ["flash", "twopass", "perhead"])
def test_decode(raw, layout, dtype, window, variant):
    if dtype not in oracle.dtypes_of(layout) or (layout, variant) == ("blockt", "perhead"):
        return
    shape = shape_of(layout, dtype, scale="f16")
    with Bound(raw, shape, LENGTHS, table_of(shape)) as bound:
        q = np.zeros((3, Q_HEADS, 72), np.float32)
        found = traffic(raw, "decode", decode_args(raw, bound, q, q.copy(), "scalar", variant, window=window))
    spans = [attended(length, window) for length in LENGTHS]
    tokens = sum(count for _, count in spans)
    blocks = sum(len({slot // 24 for slot in range(first, first + count)}) for first, count in spans)
    kv = 2 * tokens * 2 * shape.payload
    scales = 2 * tokens * 2 * shape.scale_bytes
    table = 4 * blocks if layout == "paged" else 0
    assert found.flops == 4 * Q_HEADS * 72 * tokens
    assert (found.kv, found.scales, found.table) == (kv, scales, table)
    assert found.compulsory == kv + scales + table + 2 * q.nbytes
    assert found.ai == found.flops / found.compulsory
    assert found.issued >= found.compulsory
    assert found.line >= 2 * tokens * 2 * (shape.payload if layout == "blockt" else shape.row)
    assert found.line % 64 == 0


@pytest.mark.parametrize("variant", ["flash", "twopass"])
def test_compulsory_bytes_know_no_group(raw, variant):
    shape = shape_of("head", "f16")
    with Bound(raw, shape, LENGTHS) as bound:
        for heads in (2, 4, 16):
            q = np.zeros((3, heads, 72), np.float32)
            found = traffic(raw, "decode", decode_args(raw, bound, q, q.copy(), "scalar", variant))
            assert found.compulsory - 2 * q.nbytes == 2 * 733 * 2 * 144


@pytest.mark.parametrize(("ring", "window", "lengths"), [(0, 0, [700, 33, 0]), (0, 100, [700, 33, 1]),
                                                         (1, 90, [150, 33, 900]), (1, 100, [250, 100, 101])])  # fmt: skip
def test_lines_of_blocks(raw, ring, window, lengths):
    """Of K that is transposed, lines are those of whole blocks, each once; of V they are those of rows."""
    shape = Shape("blockt", "f16", 3, 2, 72, 100 if ring else 800, ring=bool(ring))
    with Bound(raw, shape, lengths) as bound:
        q = np.zeros((3, Q_HEADS, 72), np.float32)
        args = decode_args(raw, bound, q, q.copy(), "scalar", window=window)
        decode, twin = traffic(raw, "decode", args), traffic(raw, "twin", args)
        k = np.zeros((3, 40, 2, 72), np.float32)
        bound.lengths[:] = [5, 33, 48]
        stored = traffic(raw, "bulk", store_args(raw, bound, k, k, 40, "scalar"))
    slots = [oracle.slots_of(shape, *attended(length, window)) for length in lengths]
    blocks = sum(len({slot // 16 for slot in own}) for own in slots)
    rows = sum(map(len, slots))
    assert twin.line == 2 * (blocks * 16 * 144 + rows * 192)  # 36 lines of a block hold 72 cells of two bytes
    assert decode.line == twin.line + 2 * q.nbytes
    assert twin.issued == decode.issued - 2 * q.nbytes
    assert decode.issued == 2 * (blocks * 16 + rows) * 144 + 2 * q.nbytes
    written = sum(len({slot // 16 for slot in oracle.slots_of(shape, first, 40)}) for first in (5, 33, 48))
    assert stored.line == 2 * (written * 16 * 192 + 120 * 192) + 2 * k.nbytes


def test_perhead_issues_every_row_once_per_query_head(raw):
    shape = shape_of("head", "f16")
    with Bound(raw, shape, LENGTHS) as bound:
        q = np.zeros((3, Q_HEADS, 72), np.float32)
        found = traffic(raw, "decode", decode_args(raw, bound, q, q.copy(), "scalar", "perhead"))
    assert found.issued >= 4 * found.kv


def test_twin_reads_what_decode_reads(raw):
    shape = shape_of("paged", "i8")
    with Bound(raw, shape, LENGTHS, table_of(shape)) as bound:
        q = np.zeros((3, Q_HEADS, 72), np.float32)
        args = decode_args(raw, bound, q, q.copy(), "scalar")
        decode, twin = traffic(raw, "decode", args), traffic(raw, "twin", args)
    assert twin.flops == 0
    assert (twin.kv, twin.scales, twin.table) == (decode.kv, decode.scales, decode.table)
    assert twin.compulsory == decode.compulsory - 2 * q.nbytes


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_stores_count_payload_and_source(raw, dtype):
    shape, tokens = shape_of("head", dtype), 50
    k = np.zeros((3, tokens, 2, 72), np.float32)
    with Bound(raw, shape, [0, 5, 9]) as bound:
        found = traffic(raw, "bulk", store_args(raw, bound, k, k, tokens, "scalar"))
    rows = 2 * 3 * tokens * 2
    assert found.kv == rows * shape.payload and found.scales == rows * shape.scale_bytes
    assert found.compulsory == rows * (shape.payload + shape.scale_bytes) + 2 * k.nbytes
    assert found.flops == 0

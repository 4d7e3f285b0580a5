"""What probes count for all their threads together."""

import pytest

from tests.raw import Refused

SCALAR_ROUND = 2 * 16  # FLOPs: a product and a sum in each of 16 chains
PRODUCTS = {"dot16": 2, "dot8": 4}  # in each lane, for one of float32


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("steps", [1, 1000])
def test_threads_compute_as_much_each(raw, threads, steps):
    """The scalar tier is counted by hand; a vector tier does VL times as much."""
    for isa in raw.tiers():
        one, all_of_them = flops(raw, isa, steps, 1), flops(raw, isa, steps, threads)
        assert all_of_them == threads * one > 0
        assert one % (SCALAR_ROUND * steps) == 0
    assert flops(raw, "scalar", steps, threads) == threads * steps * SCALAR_ROUND


@pytest.mark.parametrize("op", PRODUCTS)
def test_narrow_products_are_so_many_in_each_lane(raw, isa, op):
    """There are as many sums as of float32. In plain C a lane has two bf16, or one byte."""
    runs = {kernel["isa"] for kernel in raw.kernels() if kernel["op"] == op and kernel["runnable"]}
    if isa not in runs:
        with pytest.raises(Refused, match=op):
            traffic(raw, op, isa, 2, 1000)
        return
    times = 1 if (isa, op) == ("scalar", "dot8") else PRODUCTS[op]
    assert traffic(raw, op, isa, 2, 1000).flops == times * flops(raw, isa, 1000, 2)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("op", ["read", "write", "copy", "triad"])
def test_threads_share_the_bytes_of_a_buffer(raw, op, threads):
    streams = {"read": 1, "write": 1, "copy": 2, "triad": 3}[op]
    assert traffic(raw, op, "scalar", threads, steps=5).compulsory == 5 * streams * 4096


def flops(raw, isa, steps, threads):
    return traffic(raw, "flops", isa, threads, steps).flops


def traffic(raw, op, isa, threads, steps):
    buffers = raw.ffi.new("uint8_t[]", 3 * 4096 + 64)
    start = -int(raw.ffi.cast("uintptr_t", buffers)) % 64
    places = {name: buffers + start + place * 4096 for place, name in enumerate("abc")}
    facts = {"op": raw.word("op", op), "isa": raw.word("isa", isa), "bytes": 4096, "steps": steps}
    return raw.traffic("probe", raw.ffi.new("kvb_probe *", facts | places), threads)

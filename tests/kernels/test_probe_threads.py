"""What probes count for all of their threads together."""

import pytest

SCALAR_ROUND = 2 * 16  # FLOPs: a product and a sum in each of 16 chains


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("steps", [1, 1000])
def test_threads_compute_as_much_each(raw, threads, steps):
    """Of the scalar tier by hand; a tier in vectors does so many times as much."""
    for isa in raw.tiers():
        one, all_of_them = flops(raw, isa, steps, 1), flops(raw, isa, steps, threads)
        assert all_of_them == threads * one > 0
        assert one % (SCALAR_ROUND * steps) == 0
    assert flops(raw, "scalar", steps, threads) == threads * steps * SCALAR_ROUND


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

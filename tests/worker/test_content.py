"""The content of layers: the first layer's values with other signs, and no two equal pages. Also
the places of tokens that are stored one at a time.
"""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import BadArgument, WrongAnswer
from kvbench.model import Shape
from kvbench.native import default_library
from kvbench.oracle import attention
from kvbench.worker.ground import Ground
from kvbench.worker.loop import rounds
from tests import made_run
from tests.made_job import CPU, bench, room

PAGE = 4096
SHAPE = Shape(
    layers=4, batch=1, q_heads=4, kv_heads=2, head_dim=96, context=40, capacity=48, window=0
)
FACTS = {
    "shape": SHAPE,
    "pages": "base",
    "cpus": (CPU,),
    "isa": default_library().isa(),
}
DECODE = replace(made_run.DECODE, **FACTS)
PLACED = sorted(
    {(each.layout, each.dtype) for each in default_library().kernels() if each.op == "decode"}
)


@pytest.fixture(scope="module")
def ground():
    with Ground(default_library()) as found:
        yield found


PAIRS = [("head", "q8_0+q4_0"), ("paged", "i8+f16"), ("position", "f32+i8"), ("blockt", "i8+q4_0"),
         ("block16", "q4_0+i8")]  # fmt: skip


def of(layout, dtype, **facts):
    paged = {"inner": "token", "order": 5} if layout == "paged" else {}
    k, _, v = dtype.partition("+")
    return replace(DECODE, layout=layout, dtype=k, v_dtype=v, **paged, **facts)


def slots(cache):
    """K and V, [batch][slots][kv_heads][head_dim], in the order of places."""
    lengths = cache.lengths.copy()
    cache.lengths[:] = cache.struct.capacity
    found = np.stack(cache.numpy())
    cache.lengths[:] = lengths
    return found


@pytest.mark.parametrize(("layout", "dtype"), [*PLACED, *PAIRS])
@pytest.mark.parametrize(
    "facts", [{}, {"pad": 0, "block_tokens": 32, "scale": "f16"}], ids=["usual", "others"]
)
def test_layers_are_the_first_one_but_for_signs(ground, layout, dtype, facts):
    """Within half of a float32 scale's rounding; in a room beside it too."""
    first = []
    for place in (0, 3):
        with room(of(layout, dtype, **facts), ground, place=place) as own:
            decoded = [np.stack(cache.numpy()) for cache in own.caches]
            signs = own.signs[:, :, None, None, None]
            first.append(decoded[0] * signs[0])
            assert (
                set(np.unique(signs)) <= {-1, 1} and len(np.unique(own.signs, axis=0)) == own.slices
            )
            assert (own.signs[0] == 1).all() == (place == 0)
            for own, layer in zip(signs, decoded, strict=True):
                assert np.allclose(layer * own, first[0], rtol=2e-7, atol=0)
    assert first[0].std() > 0.5


BY_CHANNEL = [("head", "i8"), ("paged", "i8+f16"), ("blockt", "i8+q4_0"), ("block16", "i8")]


@pytest.mark.parametrize(("layout", "dtype"), BY_CHANNEL)
def test_keys_by_channel(ground, layout, dtype):
    """Each layer has other bytes, and no value is cut off. All variants' answers are right, and
    wrong with other scales.
    """
    point = of(layout, dtype, k_scale="channel")
    with room(point, ground) as own:
        decoded = [np.stack(cache.numpy()) for cache in own.caches]
        for signs, layer in zip(own.signs, decoded, strict=True):
            assert np.allclose(layer * signs[:, None, None, None], decoded[0], rtol=2e-7, atol=0)
        assert np.ptp(decoded[0][0]) > 3.4 and len(np.unique(own.signs[:, 0], axis=0)) == own.slices
        codes = np.abs(decoded[0][0] / own.caches[0].channel)
        assert (codes.round(4) % 1 == 0).all() and 15 < codes.max() < 30
    for variant, limit in (("flash", 1e-5), ("dot", 3e-2))[: 2 if dtype == "i8" else 1]:
        with bench(replace(point, variant=variant), ground) as found:
            assert 0 < found.verify() < limit and found.verify_changed() < limit
            scales = found.room.caches[1].channel
            scales.setflags(write=True)
            scales[1, 40:] *= 1.5
            with pytest.raises(WrongAnswer, match="is off by"):
                found.verify()


@pytest.mark.parametrize("op", ["append", "bulk", "repack"])
def test_stores_of_keys_by_channel(ground, op):
    point = of("head", "i8", k_scale="channel", op=op, variant="-")
    point = replace(point, shape=replace(SHAPE, capacity=90))
    with bench(point, ground) as found:
        assert 0.02 < found.verify() < 0.05  # half a step
        scales = found.room.caches[0].channel
        scales.setflags(write=True)
        scales[1, 40:] /= 40
        with pytest.raises((WrongAnswer, BadArgument), match="off by|channels, .* must be"):
            found.verify()  # most of it is cut; nor does such a cache grow to one of other scales


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "q4_0"])
@pytest.mark.parametrize("layout", ["head", "position", "paged", "blockt", "block16"])
def test_no_two_pages_are_equal(ground, layout, dtype):
    """Nor of rooms side by side, nor of what a pass over memory reads."""
    if (layout, dtype) not in PLACED:
        pytest.skip("there is no such cache")
    pages, point = [], of(layout, dtype, shape=replace(SHAPE, context=1024, capacity=1024))
    for place in (0, 1):
        with room(point, ground, place=place) as own:
            view = own.arena.view()[: own.slices * own.slice_bytes]
            pages += [bytes(view[at : at + PAGE]) for at in range(0, view.size - PAGE + 1, PAGE)]
            far = ground.far(own.team(point.cpus), point.cpus, "base", 3 << 20).view()
    pages += [bytes(far[at : at + PAGE]) for at in range(0, far.size, PAGE)]
    assert len(set(pages)) == len(pages) > 800


@pytest.mark.parametrize("layout", ["head", "position", "paged", "blockt"])
def test_tokens_are_stored_in_one_layer_after_the_other_and_along_the_cache(ground, layout):
    """After the existing tokens, and at the first place again when the cache is full."""
    point = replace(of(layout, "f16"), op="append", variant="-")
    capacity, done = SHAPE.capacity, 0
    with bench(point, ground) as found:
        caches, layers = found.room.caches, found.room.slices
        for passes in (3, layers * 10, 2, layers * capacity):
            found.room.arena.view()[: found.room.whole.size] = 0xFF
            tasks = [found.own.tasks[(done + turn) % layers] for turn in range(min(passes, layers))]
            found.team.run(*tasks, passes=passes)
            for layer, cache in enumerate(caches):
                before, after = (-(-(count - layer) // layers) for count in (done, done + passes))
                places = [(SHAPE.context - 1 + token) % capacity for token in range(before, after)]
                k, v = slots(cache)
                assert np.flatnonzero(~np.isnan(k).any(axis=(0, 2, 3))).tolist() == sorted(places)
                for got, source in zip((k, v), found.room.source(layer), strict=True):
                    assert np.allclose(got[:, places], source, rtol=2**-11, atol=1e-6)
            done += passes


def test_samples_of_a_rotation_store_in_every_place(ground):
    """Samples of the timed loop, beside copies along the same memory, each of as many bytes."""
    with bench(replace(of("head", "f32"), op="append", variant="-"), ground) as found:
        taken = list(
            rounds(found.programs, 1, 1e-4, passes={each.name: 7 for each in found.programs})
        )
        assert {sample.program for sample in taken} >= {"point", "copy", "copy_nt"}
        stored = [int(cache.lengths[0]) - (SHAPE.context - 1) for cache in found.room.caches]
        assert stored == [2, 2, 2, 2], "seven, and the one before that warms"
        for program in found.witnesses:
            moved = sum(task.traffic().bytes_compulsory for task in program.tasks)
            assert abs(moved - found.room.whole.size) < 128
        assert found.verify() < 1e-6


@pytest.mark.parametrize(
    ("layout", "dtype"), [("paged", "f32"), ("blockt", "i8"), ("paged", "q4_0"), *PAIRS]
)
def test_queries_of_each_layer_get_the_right_answer(ground, layout, dtype):
    """float64's answer on what the layer holds."""
    with bench(of(layout, dtype), ground) as found:
        assert len(np.unique(found.queries.q, axis=0)) == found.room.slices
        found.team.run(*found.own.tasks, passes=found.room.slices)
        for cache, q, out in zip(
            found.room.caches, found.queries.q, found.queries.out, strict=True
        ):
            k, v = cache.numpy()
            right = attention(
                q, lambda at, n, k=k, v=v: (k[:, at : at + n], v[:, at : at + n]), cache.lengths
            )
            assert np.abs(out - right).max() < 1e-5
        assert found.verify() < 1e-5 and found.verify_changed() < 1e-5

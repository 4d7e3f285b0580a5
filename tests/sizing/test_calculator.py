"""A thousand drawn decoders beside a calculator that is written apart: every byte is the same."""

import random
import re

import pytest

from kvbench.native import Arena, Cache, default_library
from kvbench.sizing.known import here
from tests.formats import STRETCHES, TRANSPOSED
from tests.sizing.calculator import ELEMENT, PACKED, SCALED, Case, rounded
from tests.sizing.made import sized

COUNT = 1000


def drawn(seed):
    draw = random.Random(seed)
    kv_heads, layers, context = (
        draw.choice((1, 2, 3, 4, 8, 11, 32)),
        draw.randint(1, 130),
        draw.randint(1, 200_000),
    )
    window = draw.choice((0, 0, draw.randint(1, 8192)))
    everything = not window or window >= context
    more = draw.choice(
        (
            None,
            None,
            context + draw.randint(0, 999),
            None if everything else draw.randint(window, context),
        )
    )
    every = draw.choice((0, 1, 2, 6, 200)) if window and (more is None or more >= context) else 0
    dtype = k = draw.choice((*ELEMENT, *PACKED))
    pair = draw.random() < 0.2
    if pair:
        dtype = f"{k}+{draw.choice([word for word in (*ELEMENT, *PACKED) if word != k])}"
    plain = not pair
    return Case(
        layers=layers,
        q_heads=kv_heads * draw.choice((1, 2, 7, 8)),
        kv_heads=kv_heads,
        head_dim=draw.choice((1, 16, 64, 80, 128, 256, draw.randint(1, 256))),
        context=context,
        batch=draw.choice((1, 1, 2, 5, 64)),
        dtype=dtype,
        scale=draw.choice(("f32", "f16")),
        layout=draw.choice(
            (
                "head",
                "position",
                "paged",
                *(word for word in TRANSPOSED if plain and dtype in TRANSPOSED[word]),
            )
        ),
        inner=draw.choice(("head", "token")),
        block_tokens=draw.choice((1, 7, 16, 64, 256)),
        window=window,
        window_every=every,
        ephemeral=draw.choice((0, 0, 0, draw.randint(0, layers))),
        capacity=more,
        pad=draw.choice((None, None, 0, 64, 4096)),
        v_dim=draw.choice((0, 0, 0, 64, draw.randint(1, 256))),
        k_scale=draw.choice(("token", "channel")) if k in SCALED else "token",
    )


CASES = [drawn(seed) for seed in range(COUNT)]


@pytest.fixture(scope="module")
def found():
    return [(case, sized(case)) for case in CASES]


def test_every_kind_is_drawn():
    words = {
        kind: set(default_library().words(kind)) for kind in ("dtype", "layout", "inner", "scale")
    }
    plain = [case for case in CASES if "+" not in case.dtype]
    assert {kind: {getattr(case, kind) for case in plain} for kind in words} == words
    assert 100 < len(plain) < COUNT - 100
    assert {case.k_scale for case in plain if case.dtype == "i8"} == {"token", "channel"}
    sliding = [case for case in CASES if 0 < case.window < case.context]
    assert (
        len(sliding) > 100
        and any(case.window_every for case in sliding)
        and any(case.ephemeral for case in sliding)
    )
    assert sum(case.capacity is not None for case in CASES) > 100


def test_held_and_streamed(found):
    for case, size in found:
        assert (size.bytes, size.streamed) == (case.bytes(), case.streamed()), case
        assert size.ai == pytest.approx(case.intensity())


def test_allocated(found):
    """The parts of it add up to what the library takes for its caches."""
    for case, size in found:
        assert size.allocated.total == case.allocated(), case
        facts = {
            name: getattr(case, name)
            for name in ("batch", "layout", "dtype", "block_tokens", "inner", "scale", "pad")
        }
        rooms = {room: case.room().count(room) for room in set(case.room())}
        facts |= {"v_dim": case.v_dim or None, "channel": case.k_scale == "channel" or None}
        taken = (
            n * Cache.size_of(case.kv_heads, case.head_dim, room, **facts)
            for room, n in rooms.items()
        )
        assert size.allocated.total == sum(taken)
        parts = (
            "rows",
            "scales",
            "unused",
            "block_rounding",
            "row_padding",
            "head_padding",
            "line_rounding",
        )
        assert sum(getattr(size.allocated, name) for name in parts) == size.allocated.total
        assert size.allocated.rows + size.allocated.scales == size.bytes
        assert all(getattr(size.allocated, name) >= 0 for name in parts)
        assert (
            size.allocated.mapped
            == rounded(size.allocated.total, 2 << 20)
            == size.allocated.total + size.allocated.page_rounding
        )


def test_each_part_is_what_its_name_says(found):
    for case, size in found:
        places, heads = [rounded(room, case.block) for room in case.room()], case.kv_heads
        slots = [case.batch * heads * place for place in places]
        more = sum(place - room for place, room in zip(places, case.room(), strict=True))
        assert size.allocated.block_rounding == case.batch * heads * more * case.row_bytes
        behind = sum(case.padded) - sum(row for row, _ in case.rows)
        assert size.allocated.row_padding == sum(slots) * behind
        if case.layout == "paged":
            assert (
                size.blocks.per_layer == case.batch * max(places) // case.block_tokens
                if places
                else not size.blocks
            )
        pads = (
            len(slots) * 2 * case.batch * case.kv_heads * (5 * 64 if case.pad is None else case.pad)
        )
        assert size.allocated.head_padding == (pads if case.layout in STRETCHES else 0)
        empty = sum(max(0, room - case.context) for room in case.room())
        assert size.allocated.unused == case.batch * heads * empty * case.row_bytes


def test_a_token_more(found):
    """What is said of the next token is by how much the calculator's cache grows, where there is
    room for it.
    """
    full = Case(5, 8, 2, 64, 100, window=100)
    for case, size in [*found, (full, sized(full))]:
        alone, longer = {**vars(case), "batch": 1}, {"context": case.context + 1}
        if case.capacity in (None, case.context):
            alone["capacity"] = None
        assert (
            size.bytes_per_next_token == Case(**alone | longer).bytes() - Case(**alone).bytes()
        ), case
        assert size.bytes_per_token == Case(**alone | {"context": 1, "capacity": None}).bytes()


def test_layers(found):
    for case, size in found:
        tokens = list(case.attended())
        assert sum(layers.count for layers in size.layers) == len(tokens)
        assert sorted((tokens.count(read), read) for read in set(tokens)) == sorted(
            (x.count, x.read) for x in size.layers
        )
        assert size.bytes_per_layer == max((layers.bytes for layers in size.layers), default=0)
        k, v = (case.batch * case.kv_heads * sum(row) for row in case.rows)
        most = size.bytes_per_layer // (k + v)
        assert size.bytes_per_layer == most * (k + v) and size.bytes_per_layer_side == most * k
        held = sum(min(case.context, room) for room in case.room())
        assert [side.bytes for side in size.sides] == [held * k, held * v]
        passing = case.batch * case.kv_heads * case.context * case.row_bytes
        assert size.ephemeral.passing == (passing if case.ephemeral else 0)


def test_the_formula_is_a_product_of_these_bytes(found):
    for _, size in found:
        words = size.formula.replace("(K, V)", "").replace(",", "")
        product = re.sub(r"[a-zA-Z]+", lambda word: "*" if word[0] == "x" else "", words)
        assert eval(product) == size.bytes, size.formula


@pytest.mark.parametrize("count", [1, 4096, 5 << 20])
def test_pages_are_those_that_an_arena_takes(count):
    with Arena(count) as arena:
        page = arena.inspect()["page_bytes"]
        assert arena.inspect()["mapped"] == rounded(count, page)
    assert sized(Case(1, 1, 1, 64, 10), here()).allocated.page_bytes == page

"""The sum of the 16-bit words that the twin and the read probe load, against a sum of the raw bytes
in NumPy.

Every byte of a cache is random, also padding and tokens that no query attends to. So the sum shows
a row that is left out, read twice or read without need, except once in 65,536 times.
"""

import numpy as np
import pytest

from tests import formats
from tests.cases import Words, draw_table
from tests.kernels.test_decode import shape_of
from tests.oracle import LINE, Shape
from tests.queries import ONE
from tests.raw import Arena, Bound, Raw, Refused, Team, decode_args
from tests.twin import rows_words, words_of

SEED = 11
CELLS = sorted(
    {(kernel["layout"], kernel["dtype"]) for kernel in Raw().kernels() if kernel["op"] == "twin"}
)
CELLS += [
    ("head", "q8_0+q4_0"),
    ("position", "f16+i8"),
    ("paged", "i8+f32"),
    ("blockt", "f16+q4_0"),
    ("block16", "q4_0+i8"),
]
# head dims; lengths; window; ring: what a row, a tile and a walk begin and end with
SITUATIONS = [
    {"head_dim": 64, "lengths": [300, 0, 17]},
    {"head_dim": 33, "lengths": [47, 201]},
    {"head_dim": 80, "lengths": [700], "window": 123},
    {"head_dim": 20, "lengths": [530], "ring": 200, "window": 150},
    {"head_dim": 128, "lengths": [1500]},
]


def randomised(bound: Bound, rng) -> None:
    """Fill a cache with random bytes, but scales are numbers: they count as float32."""
    bound.raw.bytes_at(bound.arena.base, bound.cache.bytes)[:] = rng.integers(
        0, 256, bound.cache.bytes, np.uint8
    )
    for side, (_, plane) in zip(bound.shape.sides, bound.planes.sides(), strict=True):
        kind = np.dtype(formats.STORED[side.scale])
        numbers = rng.uniform(0.01, 2.0, plane.size // kind.itemsize)
        plane[:] = numbers.astype(kind).view(np.uint8)


def words_in(bound: Bound, window: int) -> int:
    return rows_words(
        bound.shape,
        bound.planes,
        bound.table,
        [[span] for span in ONE.spans(bound.lengths, window)],
    )


def situation(layout: str, dtype: str, index: int) -> tuple[Shape, list[int], int]:
    """Make a shape. `dtype`: one for K and V, or a pair; then V has its own width and scales."""
    facts = dict(SITUATIONS[index])
    dtype, _, v_dtype = dtype.partition("+")
    if v_dtype:
        facts |= {"v_dtype": v_dtype, "v_dim": (48, 100, 16, 65, 200)[index]}
        facts |= {"v_scale": ("f16", "f32")[index % 2]}
    lengths, window, ring = facts.pop("lengths"), facts.pop("window", 0), facts.pop("ring", 0)
    capacity = ring or max(lengths)
    facts |= {
        "batch": len(lengths),
        "kv_heads": 1 + index % 3,
        "capacity": capacity,
        "ring": bool(ring),
    }
    facts |= {
        "inner": ("head", "token")[index % 2],
        "scale": ("f32", "f16")[index % 2],
        "pad": 64 * index,
    }
    facts["block_tokens"] = (16, 7, 33, 16, 100)[index]
    facts["blocks"] = len(lengths) * -(-capacity // facts["block_tokens"]) + 2
    return shape_of(layout, dtype, **facts), lengths, window


@pytest.fixture(scope="module")
def teams(raw):
    with Team(raw, 1) as one, Team(raw, 2) as two:
        yield one, two


@pytest.mark.parametrize("index", range(len(SITUATIONS)))
@pytest.mark.parametrize(("layout", "dtype"), CELLS)
def test_the_twin_reads_the_rows_and_nothing_else(raw, teams, layout, dtype, index):
    rng = np.random.default_rng([SEED, index])
    shape, lengths, window = situation(layout, dtype, index)
    table = draw_table(rng, shape) if layout == "paged" else None
    variants = {"flash", "perhead"} & set(Words.of(raw).variants(shape))
    with Bound(raw, shape, lengths, table) as bound:
        randomised(bound, rng)
        right, found = words_in(bound, window), {}
        for variant in variants:
            for group in (1, 4):
                q = np.zeros((shape.batch, shape.kv_heads * group, shape.head_dim), np.float32)
                walks = group if variant == "perhead" else 1
                for isa in raw.tiers():
                    for schedule in raw.words("schedule"):
                        args = decode_args(
                            raw, bound, q, q.copy(), isa, variant, schedule, window=window
                        )
                        for team in teams:
                            key = (variant, group, isa, schedule, team.threads)
                            found[key] = (team.sum("twin", args) - walks * right) % 65536
    assert not {key: off for key, off in found.items() if off}


@pytest.mark.parametrize(
    ("layout", "dtype"), [("blockt", "f16"), ("blockt", "i8"), ("block16", "q8_0")]
)
def test_a_block_that_a_ring_ends_in_is_read_from_both_sides(raw, teams, isa, layout, dtype):
    """With capacity 20 and blocks of 16, the first block has the oldest and the newest tokens."""
    shape = shape_of(layout, dtype, batch=1, kv_heads=1, head_dim=40, capacity=20, ring=True)
    with Bound(raw, shape, [33]) as bound:
        randomised(bound, np.random.default_rng(SEED))
        q = np.zeros((1, 1, 40), np.float32)
        args = decode_args(raw, bound, q, q.copy(), isa, window=20)
        assert (teams[0].sum("twin", args) - words_in(bound, 20)) % 65536 == 0


@pytest.mark.parametrize("lines", [1, 7, 8, 63, 1000])
@pytest.mark.parametrize(
    "how", [{}, {"distance": 2048}, {"schedule": 1}, {"schedule": 2}, {"schedule": 3}]
)
def test_a_read_reads_every_line_as_often_as_it_says(raw, teams, isa, lines, how):
    with Arena(raw, lines * LINE) as arena:
        data = raw.bytes_at(arena.base, lines * LINE)
        data[:] = np.random.default_rng(SEED).integers(0, 256, data.size, np.uint8)
        for steps in (1, 3):
            for team in teams:
                args = raw.ffi.new(
                    "kvb_probe *", {"op": raw.word("op", "read"), "isa": raw.word("isa", isa)} | how
                )
                args.a, args.bytes, args.steps = arena.base, data.size, steps
                assert team.sum("probe", args, passes=2) == 2 * steps * words_of(data) % 65536


@pytest.mark.parametrize("lines", [1, 7, 64, 1000])
@pytest.mark.parametrize("piece", [1, 3, 63, 400, 2001])
def test_pieces_go_on_where_the_last_one_stopped(raw, isa, lines, piece):
    """Pieces also cross the end of the buffer, in a thread's share or several times."""
    with Arena(raw, lines * LINE) as arena:
        data = raw.bytes_at(arena.base, lines * LINE)
        data[:] = np.random.default_rng(SEED).integers(0, 256, data.size, np.uint8)
        words = data.view(np.uint16).reshape(lines, -1).astype(np.uint64).sum(axis=1)
        for passes in (1, 2, 9):
            right = int(words[np.arange(passes * piece) % lines].sum()) % 65536
            for threads in (1, 2, 3):
                facts = {"op": raw.word("op", "read"), "isa": raw.word("isa", isa)}
                facts |= {"a": arena.base, "bytes": data.size, "piece": piece * LINE}
                with Team(raw, threads) as team:
                    args = raw.ffi.new("kvb_probe *", facts)
                    assert team.sum("probe", args, passes) == right
                    assert raw.traffic("probe", args, threads).compulsory == piece * LINE


def test_other_tasks_have_no_sum(raw):
    found = raw.ffi.new("uint32_t *", 7)
    args = raw.ffi.new("kvb_probe *", {"op": raw.word("op", "clock"), "steps": 1})
    with raw.task("probe", args, 1) as task, pytest.raises(Refused, match="sum"):
        raw.check(raw.lib.kvb_task_sum(task, found))
    assert found[0] == 7

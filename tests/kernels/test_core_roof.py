"""The core roof: every unit walks a window from its start on, in blocks of its own sizes."""

from itertools import product

import numpy as np
import pytest

from tests.kernels.test_decode import shape_of, table_of
from tests.kernels.test_extremes import EVERY, NAN, decoded, stored
from tests.raw import Bound, Team, decode_args

TOKENS, HEADS, GROUP, DIM = 700, 2, 3, 256
PLACES = (("head", "head"), ("position", "head"), ("blockt", "head"), ("block16", "head"),
          ("paged", "head"), ("paged", "token"))  # fmt: skip
DTYPES = {"flash": "f32", "twopass": "f32", "perhead": "f32", "dot": "i8"}


def counting(layout, inner, wrap):
    """Make rows that count. All scores are equal, and row n of the window has a 1 only at n: so an
    output tells how often each row was walked, relative to all. Rows outside the window are NaN.
    """
    k, v = np.full((2, 1, TOKENS, HEADS, DIM), NAN)
    inside = layout == "position" or inner == "token"  # a token's heads, all of which are walked
    k[0, :wrap, : HEADS if inside else 1] = 0.5
    v[0, :wrap, : HEADS if inside else 1] = np.eye(wrap, DIM)[:, None]
    return k, v


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("wrap", [1, 37, 160])
@pytest.mark.parametrize(("layout", "inner"), PLACES)
def test_every_unit_walks_the_window_alone(raw, isa, layout, inner, wrap, threads):
    """Each unit walks whole blocks of the window in turn, from its start on: at least half of the
    window. Each thread may begin again, so counts differ by at most the number of threads.
    """
    q = np.ones((1, HEADS * GROUP, DIM), np.float32)
    own = [each for each in DTYPES.items() if (each[0], layout, each[1], isa) in EVERY]
    for dtype in sorted({dtype for _, dtype in own}):
        shape = shape_of(layout, dtype, head_dim=DIM, capacity=TOKENS, inner=inner)
        with Team(raw, threads) as team, Bound(raw, shape, [TOKENS], table_of(shape)) as bound:
            stored(raw, team, bound, *counting(layout, inner, wrap))
            variants = [variant for variant, of in own if of == dtype]
            for variant, schedule in product(variants, raw.words("schedule")):
                out = decoded(raw, team, bound, q, isa, variant, wrap=wrap, schedule=schedule)
                counts = np.rint(out * TOKENS)
                assert out * TOKENS == pytest.approx(counts, abs=0.02)
                assert (counts.sum(axis=-1) == TOKENS).all()
                walked = int(counts.all(axis=(0, 1)).sum())
                assert walked > wrap // 2 and not counts[..., walked:].any()
                assert (np.diff(counts[..., :walked]) <= 0).all()
                assert np.ptp(counts[..., :walked], axis=-1).max() <= threads


@pytest.mark.parametrize("wrap", [1024, 1500])
@pytest.mark.parametrize(("layout", "inner"), PLACES)
def test_its_blocks_are_those_of_the_walk(raw, isa, layout, inner, wrap):
    """The loads depend on the blocks: scales are loaded once or for each query row, and transposed
    blocks are loaded whole. So the loads must equal those of the walk that the window replaces,
    also if that begins inside a transposed block.
    """
    tokens, q = 2500, np.ones((1, HEADS * GROUP, 128), np.float32)
    shape = shape_of(layout, "i8", head_dim=128, capacity=tokens, inner=inner)
    with Bound(raw, shape, [tokens], table_of(shape)) as bound:
        for schedule, threads, attended in product(raw.words("schedule"), (1, 3), (0, 2490)):
            how = {"schedule": schedule, "window": attended}
            walks = (decode_args(raw, bound, q, q, isa, wrap=each, **how) for each in (0, wrap))
            own, wrapped = (raw.traffic("decode", walk, threads).issued for walk in walks)
            assert own == wrapped > 0

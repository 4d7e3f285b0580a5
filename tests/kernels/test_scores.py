"""What is done to scores, first tokens that are kept, and K by channel, on every tier: named
situations, in each variant and layout.
"""

import numpy as np
import pytest

from tests.cases import draw_channel
from tests.kernels.test_decode import EVERY, KERNELS, case_of, of, passes, shape_of, table_of
from tests.queries import BLOCK, TREE, Queries
from tests.scores import Scores

Q_HEADS = 6
SINKS = np.array([5.0, 7.0, -3.0, 6.0, 30.0, 0.0], np.float32)
SLOPES = np.array([0.5, 0.25, 0.03125, 1.0, 0.0, 0.001], np.float32)
SHARE = Scores(sinks=SINKS)
ALL = Scores(softcap=1.5, slopes=SLOPES, sinks=SINKS)
WORDS = np.array([[1, 3, 5, 0b1010, 0b10110]] * 2, np.uint32)
CODES = sorted({(k["variant"], k["layout"]) for k in KERNELS if k["dtype"] == "i8"})
every = pytest.mark.parametrize(("variant", "layout"), sorted(EVERY))


def asked(bench, variant, layout, lengths=(700, 1, 0), **more):
    shape = of(variant, layout, batch=len(lengths), capacity=700)
    case = case_of(bench, shape, lengths, table_of(shape), variant=variant, **more)
    passes(bench, case)


@every
def test_a_sink_counts_once(bench, variant, layout):
    """A sink counts once, however many units and threads a row has."""
    for threads, deterministic in ((1, 0), (3, 0), (2, 1)):
        how = {"threads": threads, "deterministic": deterministic, "index": 4}
        asked(bench, variant, layout, scores=SHARE, **how)


@every
def test_capped_scores_with_slopes(bench, variant, layout):
    """Some tiles have masked tokens, some do not. The cap comes before the mask, and slopes count
    from each query's own token.
    """
    for queries in (
        Queries(3),
        Queries(5, BLOCK),
        Queries(5, TREE, tree=WORDS[:1].repeat(3, axis=0)),
    ):
        asked(bench, variant, layout, scores=ALL, queries=queries, window=300)


@every
@pytest.mark.parametrize("kept", [1, 33, 5000])
def test_kept_tokens(bench, variant, layout, kept):
    """Kept tokens are before a window, next to it, inside it, or are all tokens. Tokens between
    them and the window are not read.
    """
    for window in (1, 367, 690):
        how = {"window": window, "queries": Queries(kept=kept), "evicted": True, "index": 3}
        asked(bench, variant, layout, (700, 40), **how)
    queries = Queries(5, TREE, tree=WORDS, kept=kept)
    asked(bench, variant, layout, (700, 3), window=4, queries=queries, evicted=True)


@pytest.mark.parametrize("cap", [1e-3, 1.0, 50.0, 100.0, 1e4])
def test_scores_far_beyond_the_cap(bench, cap):
    """Scores far above and below the cap stay within the bound of float32."""
    for kind in ("plain", "steep"):
        case = case_of(bench, shape_of(), [700], kind=kind, scores=Scores(softcap=cap))
        passes(bench, case)


@pytest.mark.parametrize(("variant", "layout"), CODES)
def test_k_by_channel(bench, variant, layout):
    """V has the same dtype, or another one."""
    channel = draw_channel(np.random.default_rng(5), 2, 96)
    for v_dtype in ("i8", *bench.words.v_dtypes(layout)[-2:]):
        more = {"batch": 2, "capacity": 300, "v_dtype": v_dtype, "channel": channel}
        shape = shape_of(layout, "i8", **more)
        if variant in bench.words.variants(shape):
            passes(bench, case_of(bench, shape, [300, 17], table_of(shape), variant=variant))

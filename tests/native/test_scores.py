"""Changed scores, and first tokens kept beside a window: answers equal the float64 reference.
Nonsense is refused.
"""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument, KvbenchError
from kvbench.native.ops import decode_task
from kvbench.oracle import Scores, attention, whole
from tests.native.test_queries import BATCH, DIM, GROUP, HEADS, LENGTHS, data, filled, near

__all__ = ["data"]

Q_HEADS = HEADS * GROUP
SINKS = (0.5, -np.inf, 3.0, 80.0)
SLOPES = (0.5, 0.25, 0.01, 0.0)
ASKED = {
    "sinks": Scores(sinks=SINKS),
    "softcap": Scores(softcap=1.5),
    "slopes": Scores(slopes=SLOPES),
    "all": Scores(softcap=1.5, slopes=SLOPES, sinks=SINKS, kept=3),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("mask", ["chain", "block"])
def test_scores(data, asked, mask):
    k, v, q = data
    window = 9 if asked.kept else None
    facts = {"sinks": asked.sinks, "softcap": asked.softcap, "slopes": asked.slopes, "mask": mask}
    want = attention(q, whole(k, v), LENGTHS, window, mask, scores=asked)
    with filled(data, window=window, kept=asked.kept) as cache:
        for variant in ("flash", "perhead"):
            for threads in (1, 3):
                assert near(cache.decode(q, variant, threads=threads, **facts), want)


@pytest.mark.parametrize("layout", ["head", "paged", "blockt"])
def test_kept_tokens_are_read_beside_the_window(data, layout):
    """And no others are read: the bytes are those of that many tokens."""
    k, v, q = data
    with filled(data, layout=layout, window=8, kept=3) as cache:
        want = attention(q, whole(k, v), LENGTHS, 8, scores=Scores(kept=3))
        assert near(cache.decode(q), want)
        out = np.empty_like(q[:, 0])
        with decode_task("twin", cache, q[:, 0].copy(), out, 1, isa="scalar") as task:
            tokens = sum(min(length, 3 + 8) for length in LENGTHS)
            assert task.traffic().bytes_kv == tokens * HEADS * DIM * 2 * 4


def test_a_ring_keeps_them_until_it_is_full(data):
    k, v, q = data
    with kvbench.Cache(HEADS, DIM, 16, BATCH, window=4, kept=2, ring=True) as cache:
        cache.bulk(k[:, :16], v[:, :16])
        want = attention(q, whole(k, v), (16, 16), 4, scores=Scores(kept=2))
        assert near(cache.decode(q), want)
        cache.append(k[:, 16], v[:, 16])
        with pytest.raises(KvbenchError, match="17 tokens .* the ring keeps capacity 16"):
            cache.decode(q)


def test_a_cache_that_keeps_them_is_not_a_ring():
    assert kvbench.Cache.planned(1, 8, 16, window=4).ring == 1
    assert kvbench.Cache.planned(1, 8, 16, window=4, kept=2).ring == 0


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"sinks": SINKS[1:]}, r"sinks has the shape \[3\]"),
        ({"slopes": np.ones((2, 4))}, r"slopes has the shape \[2, 4\]"),
        ({"sinks": "x"}, "sinks is not an array of real numbers"),
        ({"sinks": (0, 1, np.nan, 2)}, r"sink\[2\] is nan"),
        ({"slopes": (0, 1, 2, np.inf)}, r"slope\[3\] is inf"),
        ({"softcap": -1}, "softcap is -1"),
        ({"softcap": 1e300}, "softcap is inf"),
        ({"softcap": np.nan}, "softcap is nan"),
        ({"softcap": [1.0]}, r"softcap has the shape \[1\]"),
    ],
)
def test_what_is_refused(data, facts, words):
    with filled(data) as cache, pytest.raises(KvbenchError, match=words):
        cache.decode(data[2], **facts)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"kept": 2}, "kept is 2, but no window"),
        ({"kept": -1, "window": 4}, "kept is -1"),
        ({"kept": 1.5, "window": 4}, "kept is 1.5"),
    ],
)
def test_caches_that_are_refused(facts, words):
    with pytest.raises(BadArgument, match=words) as refused:
        kvbench.Cache(1, 8, 16, **facts)
    assert refused.value.hint

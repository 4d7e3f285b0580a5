"""Several queries of a sequence in a step: each answer is attention over the tokens that its query
attends to. Nonsense is refused.
"""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument, KvbenchError
from tests.oracle import attend

BATCH, QUERIES, HEADS, GROUP, DIM = 2, 5, 2, 2, 16
LENGTHS = (40, 3)  # the second has fewer tokens than a step has queries
CHAIN = np.tri(QUERIES, dtype=bool)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(30)
    k, v = random.standard_normal((2, BATCH, max(LENGTHS), HEADS, DIM), dtype=np.float32)
    return k, v, random.standard_normal((BATCH, QUERIES, HEADS * GROUP, DIM), dtype=np.float32)


@pytest.fixture(scope="module")
def cache(data):
    with filled(data) as found:
        yield found


def filled(data, **facts):
    made = kvbench.Cache(HEADS, DIM, max(LENGTHS), batch=BATCH, **facts)
    made.bulk(*data[:2])
    made.lengths[:] = LENGTHS
    return made


def wanted(data, rows, queries=(QUERIES, QUERIES), window=None, lengths=LENGTHS):
    """rows: [q][q], which of the newest tokens each query attends to."""
    k, v, q = data
    out = np.zeros(q.shape)
    for b, query in np.ndindex(BATCH, QUERIES):
        begin = lengths[b] - queries[b]
        newest = [begin + i for i in range(queries[b]) if rows[query][i] and begin + i >= 0]
        tokens = [*range(begin), *newest]
        tokens = tokens[-window:] if window else tokens
        if query < queries[b] and tokens:
            sides = (side[b, tokens].swapaxes(0, 1) for side in (k, v))
            grouped = q[b, query].reshape(HEADS, GROUP, DIM)
            out[b, query] = attend(grouped, *sides, DIM**-0.5)[0].reshape(-1, DIM)
    return out


def near(got, want):
    return got.shape == want.shape and np.abs(got - want).max() <= 1e-5


@pytest.mark.parametrize("variant", ["flash", "twopass", "perhead"])
def test_a_chain(data, cache, variant):
    assert near(cache.decode(data[2], variant), wanted(data, CHAIN))
    assert near(cache.decode(data[2], variant, queries=[2, 4]), wanted(data, CHAIN, (2, 4)))


def test_a_block_sees_all(data, cache):
    every = np.ones_like(CHAIN)
    assert near(cache.decode(data[2], mask="block"), wanted(data, every))
    counts = (3, 2)
    assert near(cache.decode(data[2], mask="block", queries=counts), wanted(data, every, counts))


@pytest.mark.parametrize("window", [None, 4])
def test_trees(data, window):
    """One tree for both sequences, or one each; fewer queries use its first rows and columns."""
    trees = np.random.default_rng(31).random((BATCH, QUERIES, QUERIES)) < 0.5
    with filled(data, window=window) as cache:
        for tree, mask in ((trees, "chain"), (trees[1], "tree")):
            for counts in ((QUERIES, QUERIES), (4, 2)):
                got = cache.decode(data[2], mask=mask, tree=tree, queries=counts)
                rows = np.broadcast_to(tree, trees.shape)
                for b in range(BATCH):
                    assert near(got[b], wanted(data, rows[b], counts, window)[b])


@pytest.mark.parametrize("capacity", [40, 16])
def test_a_window_moves_with_each_query(data, capacity):
    """In a ring too, while it holds what the first query attends to."""
    k, v, q = data
    with kvbench.Cache(HEADS, DIM, capacity, batch=BATCH, window=12) as cache:
        cache.bulk(k, v)
        want = wanted(data, CHAIN, window=12, lengths=(40, 40))
        assert near(cache.decode(q), want)
        if capacity == 16:
            with pytest.raises(KvbenchError, match="the ring keeps capacity 16"):
                cache.decode(np.concatenate([q, q], axis=1))


def test_one_query_is_one_without_that_axis(data, cache):
    q = data[2][:, :1]
    assert np.array_equal(cache.decode(q)[:, 0], cache.decode(q[:, 0]))
    assert not cache.decode(q, queries=[0, 1])[0].any()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"q": np.zeros((2, 33, 4, 16), np.float32)}, "q has 33 queries of a sequence"),
        ({"q": np.zeros((2, 1, 5, 4, 16), np.float32)}, r"q has the shape \[2, 1, 5, 4, 16\]"),
        ({"q": np.zeros((2, 0, 4, 16), np.float32)}, r"q has the shape \[2, 0, 4, 16\]"),
        ({"mask": "full"}, "mask: 'full' is not known"),
        ({"mask": "tree"}, "mask tree needs a tree"),
        ({"mask": "block", "tree": CHAIN}, "a tree is given, but mask is block"),
        ({"tree": CHAIN[1:]}, r"tree is of bool and the shape \[4, 5\]"),
        ({"tree": CHAIN.astype(int)}, "tree is of int64"),
        ({"queries": [6, 1]}, "queries: a sequence has 6; q has 5 of each"),
        ({"queries": [1, -1]}, "queries: a sequence has -1"),
        ({"queries": [1]}, r"queries is of int64 and the shape \[1\]"),
        ({"queries": [1.0, 2.0]}, "queries is of float64"),
    ],
)
def test_what_is_refused(data, cache, facts, words):
    with pytest.raises(BadArgument, match=words) as refused:
        cache.decode(**{"q": data[2]} | facts)
    assert refused.value.hint

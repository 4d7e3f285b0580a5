"""A pool of blocks: sequences share equal beginnings, and blocks move from one sequence to
another.
"""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from tests.native.test_cache import attention, close, rows

BLOCK, HEADS, DIM = 8, 2, 16


def cache_of(pool, arena=None, capacity=64, batch=1, **facts):
    facts = dict(layout="paged", block_tokens=BLOCK, blocks=pool, arena=arena) | facts
    return kvbench.Cache(HEADS, DIM, capacity, batch, **facts)


@pytest.fixture
def pool():
    return kvbench.Blocks(8)


@pytest.fixture
def pair(pool):
    """A sequence of 20 tokens, and an empty one."""
    with cache_of(pool) as one, cache_of(pool, one.arena) as two:
        one.bulk(*rows(1, 2, 1, 20, HEADS, DIM))
        yield one, two


@pytest.mark.parametrize("inner", ["head", "token"])
def test_two_sequences_share_a_prefix(inner, pool):
    k, v = rows(1, 2, 1, 20, HEADS, DIM)
    more = rows(2, 2, 2, 9, HEADS, DIM)  # K and V of what each goes on with
    q = rows(3, 1, 2 * HEADS, DIM)
    with cache_of(pool, inner=inner) as one, cache_of(pool, one.arena, inner=inner) as two:
        one.bulk(k, v)
        assert pool.free == 5
        pool.share(one, two, 16)
        assert pool.free == 5 and two.length == 16
        assert two.table[0, :2].tolist() == one.table[0, :2].tolist()
        wanted = []
        for cache, own, kept in ((one, more[:, :1], 20), (two, more[:, 1:], 16)):
            for token in range(9):
                cache.append(own[0, :, token], own[1, :, token])
            wanted.append([np.concatenate((k[:, :kept], own[0]), 1),
                           np.concatenate((v[:, :kept], own[1]), 1)])  # fmt: skip
        for cache, (keys, values) in zip((one, two), wanted, strict=True):
            assert np.array_equal(np.array(cache.numpy()), np.array([keys, values]))
            assert close(cache.decode(q), attention(q, keys, values), values)
        assert pool.free == 8 - 4 - 2  # 29 tokens, and 9 of the other's own


def test_a_sequence_of_a_batch_begins_as_another_cache(pool):
    """A batch takes over a prompt from a cache of its own."""
    k, v = rows(4, 2, 1, 16, HEADS, DIM)
    both, q = rows(5, 2, 2, HEADS, DIM), rows(6, 2, HEADS, DIM)
    with cache_of(pool, batch=2) as batch:
        with cache_of(pool, batch.arena) as prompt:
            prompt.bulk(k, v)
            pool.share(prompt, batch, 16, sequence=1)
        assert batch.lengths.tolist() == [0, 16] and pool.free == 6
        batch.append(*both)
        out = batch.decode(q)
        own = [np.concatenate((side[0], new[1:]))[None] for side, new in zip((k, v), both)]
        assert close(out[1:], attention(q[1:], *own), own[1])
        assert close(out[:1], both[1][:1], both[1])  # of one token, its value


def test_blocks_are_used_again(pool, pair):
    one, two = pair
    held = one.table[0, :3].tolist()
    one.rollback(to=9)
    assert pool.free == 6 and one.table[0].tolist() == [*held[:2], *[-1] * 6]
    two.append(*rows(7, 2, 1, HEADS, DIM))
    assert two.table[0, 0] == held[2]  # what was given back last
    one.reset()
    two.close()
    assert pool.free == 8 and sorted(pool.take(8)) == list(range(8))


def test_a_block_lives_until_its_last_sequence_ends(pool, pair):
    one, two = pair
    pool.share(one, two, 16)
    before = two.numpy()
    one.reset()
    assert pool.free == 6
    one.bulk(*rows(8, 2, 1, 48, HEADS, DIM))
    assert np.array_equal(np.array(two.numpy()), np.array(before)) and pool.free == 0
    two.reset()
    assert pool.free == 2


def test_a_pool_that_is_too_small(pool, pair):
    one, two = pair
    row = rows(9, 2, 1, HEADS, DIM)
    two.advance(40)  # all blocks that are left
    assert pool.free == 0 and two.would_overflow() and not one.would_overflow(4)
    one.bulk(*rows(10, 2, 1, 4, HEADS, DIM))
    before = one.arena.view().tobytes(), one.table.tolist(), one.lengths.tolist()
    for call in (lambda: one.append(*row), one.advance, lambda: one.bulk(*row[:, None])):
        with pytest.raises(BadArgument, match="1 block wanted, 0 of 8 are free"):
            call()
    assert before == (one.arena.view().tobytes(), one.table.tolist(), one.lengths.tolist())
    two.rollback(1)
    with pytest.raises(BadArgument, match="wanted"):
        one.advance()
    two.rollback(7)
    one.append(*row)


def test_a_shared_block_is_not_written(pool, pair):
    one, two = pair
    pool.share(one, two, 16)
    two.rollback(to=12)
    before = one.arena.view().tobytes()
    with pytest.raises(BadArgument, match="block 1 would be written, and another .* shares it"):
        two.append(*rows(11, 2, 1, HEADS, DIM))
    assert before == one.arena.view().tobytes() and two.length == 12
    one.close()
    assert pool.free == 6


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (lambda pool, one, two: pool.share(one, two, 12), "tokens is 12: both sequences"),
        (lambda pool, one, two: pool.share(one, two, 24), "tokens is 24"),
        (lambda pool, one, two: pool.share(one, one, 8), "sequence 0 already has tokens"),
        (lambda pool, one, two: pool.share(one, two, 8, of=1), "of is 1"),
        (lambda pool, one, two: pool.share(one, two, 8, sequence=1), "sequence is 1"),
        (lambda pool, one, two: pool.share(one, cache_of(pool), 8), "not have the same blocks"),
        (lambda pool, one, two: kvbench.Blocks(8).share(one, two, 8), "not have the same blocks"),
        (lambda pool, one, two: pool.give_back([7]), "block 7 is free"),
        (lambda pool, one, two: pool.give_back([8]), "block is 8"),
        (lambda pool, one, two: pool.take(-1), "count is -1"),
    ],
)  # fmt: skip
def test_misuse(pool, pair, share, said):
    one, two = pair
    with pytest.raises(BadArgument, match=said) as caught:
        share(pool, one, two)
    assert caught.value.hint and pool.free == 5 and not two.length


def test_rows_that_a_ring_overwrote_are_not_shared(pool):
    with cache_of(pool, capacity=16, window=16) as one:
        with cache_of(pool, one.arena, capacity=16, window=16) as two:
            one.bulk(*rows(12, 2, 1, 17, HEADS, DIM))
            with pytest.raises(BadArgument, match="tokens is 8"):
                pool.share(one, two, 8)
            assert pool.free == 6


def does_something(pool, caches, texts, draw):
    """One of three sequences shares another's beginning, is cut, or grows. texts: what each
    holds.
    """
    at, of = draw.choice(3, 2, replace=False)
    cache, tokens = caches[at], int(draw.integers(1, 12))
    new = draw.standard_normal((2, 1, tokens, HEADS, DIM), dtype=np.float32)
    whole = texts[of].shape[1] // BLOCK * BLOCK
    try:
        if not cache.length and whole:
            pool.share(caches[of], cache, whole)
            texts[at] = texts[of][:, :whole]
        elif draw.random() < 0.3:
            end = max(0, cache.length - 2 * tokens)
            cache.rollback(to=end)
            texts[at] = texts[at][:, :end]
        else:
            cache.bulk(*new)
            texts[at] = np.concatenate((texts[at], new[:, 0]), axis=1)
    except BadArgument as error:
        assert any(word in str(error) for word in ("capacity", "wanted", "shares"))


@pytest.mark.parametrize("seed", range(20))
def test_lives_of_three_sequences(seed, pool):
    """Each reads what it would read alone, and a block is held by the sequences whose tables name
    it.
    """
    draw = np.random.default_rng(seed)
    first = cache_of(pool, capacity=40)
    caches = [first, *(cache_of(pool, first.arena, capacity=40) for _ in range(2))]
    texts = [np.zeros((2, 0, HEADS, DIM), np.float32) for _ in caches]
    for _ in range(60):
        does_something(pool, caches, texts, draw)
        held = {block for each in caches for block in each.table.ravel().tolist()} - {-1}
        assert pool.free == pool.count - len(held)
        for own, text in zip(caches, texts, strict=True):
            assert np.array_equal(np.array(own.numpy())[:, 0], text)
    for cache in reversed(caches):
        cache.close()
    assert pool.free == pool.count

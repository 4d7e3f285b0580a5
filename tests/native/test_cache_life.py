"""The life of a cache against a plain model: sequences grow, are cut back and grow again; misuse
writes no byte.
"""

from threading import Event, Thread

import numpy as np
import pytest

import kvbench
from kvbench.errors import KvbenchError
from kvbench.native import Team, decode_task, default_library, store_task
from tests.formats import PACKED, STORED, from_blocks, quantise, to_blocks
from tests.oracle import attend, practical

WORDS = default_library().words
# caches, and how often each of them is reset and lives again: 5000 sequences of operations
TRIALS, LIVES = 500, 10


def kept(values, dtype):
    """float32 rows as a cache of this dtype returns them."""
    if dtype == "i8":
        codes, scale = quantise(values, "f32")
        return codes * scale[..., None]
    if dtype in PACKED:
        return from_blocks(dtype, to_blocks(dtype, values))[..., : values.shape[-1]].astype(
            np.float32
        )
    return values.astype(STORED[dtype]).astype(np.float32)


_SHARES = (0.2, 0.3, 0.1, 0.25, 0.02, 0.13)


class Model:
    """K and V of every sequence, [tokens][2, kv_heads, head_dim]."""

    def __init__(self, batch, capacity, ring):
        self.capacity, self.ring = capacity, ring
        self.rows = [[] for _ in range(batch)]

    def lengths(self):
        return [len(own) for own in self.rows]

    def store(self, values):
        """Store [2, batch, tokens, kv_heads, head_dim]."""
        for seq, own in enumerate(self.rows):
            own += [values[:, seq, token] for token in range(values.shape[2])]

    def held(self, seq):
        """The newest tokens, which are still held."""
        return range(max(0, len(self.rows[seq]) - self.capacity), len(self.rows[seq]))

    def may_cut(self, seq, length):
        """A ring that has overwritten a token can only forget all."""
        now = len(self.rows[seq])
        return 0 <= length <= now and (length in (0, now) or now <= self.capacity)

    def cut(self, seq, length):
        del self.rows[seq][length:]

    def overflows(self, tokens):
        return not self.ring and max(self.lengths()) + tokens > self.capacity


def state(cache):
    """What a failed call must not change."""
    table = None if cache.table is None else cache.table.tolist()
    return cache.arena.view().tobytes(), cache.lengths.tolist(), table


class Trial:
    """A cache beside its model."""

    def __init__(self, seed):
        self.draw = draw = np.random.default_rng(seed)
        self.layout = WORDS("layout")[draw.integers(len(WORDS("layout")))]
        dtypes = default_library().dtypes(self.layout)
        self.dtype = dtypes[draw.integers(len(dtypes))]
        self.heads, self.dim, self.block = (int(n) for n in draw.integers(1, (3, 20, 6)))
        self.batch, self.capacity = int(draw.choice((1, 1, 2, 3))), int(draw.integers(4, 13))
        self.window = (None, self.capacity, self.capacity - 2, self.capacity // 2)[draw.integers(4)]
        facts = dict(layout=self.layout, dtype=self.dtype, block_tokens=self.block)
        facts["inner"] = WORDS("inner")[draw.integers(len(WORDS("inner")))]
        if self.layout == "paged" and draw.integers(2):
            facts["blocks"] = kvbench.Blocks(self.batch * -(-self.capacity // self.block))
        self.cache = kvbench.Cache(
            self.heads, self.dim, self.capacity, self.batch, window=self.window, **facts
        )
        self.born()

    def born(self):
        self.model = Model(self.batch, self.capacity, self.window is not None)

    def values(self, tokens):
        return self.draw.standard_normal(
            (2, self.batch, tokens, self.heads, self.dim), dtype=np.float32
        )

    # ---- what may be done ------------------------------------------------------------------------

    def step(self, team):
        name = self.draw.choice(("append", "bulk", "task", "rollback", "reset", "wrong"), p=_SHARES)
        getattr(self, name)(self.cache, self.model, team)
        assert self.cache.lengths.tolist() == self.model.lengths()
        assert self.cache.length == max(self.model.lengths())

    def room(self, cache, model, tokens):
        """Whether `tokens` fit; if they do not, nothing may change."""
        fits = not model.overflows(tokens)
        assert cache.would_overflow(tokens) is not fits
        return fits

    def attempt(self, fits, call):
        if fits:
            call()
            return
        before = state(self.cache)
        with pytest.raises(KvbenchError) as caught:
            call()
        assert caught.value.hint
        assert before == state(self.cache), str(caught.value)

    def append(self, cache, model, team, tokens=1):
        values = self.values(tokens)
        fits = self.room(cache, model, tokens)
        k, v = values
        if tokens == 1 and self.draw.random() < 0.8:
            self.attempt(fits, lambda: cache.append(k[:, 0], v[:, 0]))
        else:
            turned = bool(self.draw.integers(2))
            k, v = (x.swapaxes(1, 2) if turned else x for x in (k, v))
            self.attempt(
                fits, lambda: cache.bulk(k, v, head_major=turned, nt=bool(self.draw.integers(2)))
            )
        if fits:
            model.store(kept(values, self.dtype))

    def bulk(self, cache, model, team):
        self.append(cache, model, team, int(self.draw.integers(1, self.capacity + 3)))

    def task(self, cache, model, team):
        """Tokens are counted before their rows exist; then a task stores twice in the same
        place.
        """
        tokens = int(self.draw.integers(1, 4))
        values = self.values(tokens)
        fits = self.room(cache, model, tokens)
        self.attempt(fits, lambda: cache.advance(tokens))
        if not fits:
            return
        cache.lengths -= tokens
        k, v = np.ascontiguousarray(values)
        with store_task("bulk", cache, k, v, 1, isa=cache.library.isa()) as made:
            team.run(made, passes=2)
        assert cache.lengths.tolist() == model.lengths()
        cache.lengths += tokens
        model.store(kept(values, self.dtype))

    def rollback(self, cache, model, team):
        seq = None if self.draw.random() < 0.5 else int(self.draw.integers(self.batch))
        which = range(self.batch) if seq is None else [seq]
        if self.draw.random() < 0.5:
            longest = max(model.lengths())
            to = int(self.draw.integers(max(longest - 5, -1), longest + 2))
            ends, call = dict.fromkeys(which, to), lambda: cache.rollback(to=to, sequence=seq)
        else:
            tokens = int(self.draw.integers(-1, 4))
            ends = {b: model.lengths()[b] - tokens for b in which}
            call = lambda: cache.rollback(tokens, sequence=seq)
        fits = all(model.may_cut(b, end) for b, end in ends.items())
        self.attempt(fits, call)
        if fits:
            for b, end in ends.items():
                model.cut(b, end)

    def reset(self, cache, model, team):
        cache.reset()
        for b in range(self.batch):
            model.cut(b, 0)

    def wrong(self, cache, model, team):
        k, v = self.values(1)[:, :, 0]
        longest = max(model.lengths())
        calls = (
            lambda: cache.append(k[:, :, :-1], v),
            lambda: cache.append(k, v[:, None]),
            lambda: cache.bulk(k[:, :0], v[:, :0]),
            lambda: cache.advance(-1),
            lambda: cache.advance(1, sequence=self.batch),
            lambda: cache.rollback(),
            lambda: cache.rollback(0, to=0),
            lambda: cache.rollback(longest + 1),
            lambda: cache.rollback(to=longest + 1),
            lambda: cache.rollback(0, sequence=self.batch),
            lambda: cache.rows(0, self.capacity + 1),
            lambda: cache.decode(k[:, :, : self.dim - 1]),
            lambda: cache.decode(np.zeros((self.batch + 1, self.heads, self.dim))),
        )
        self.attempt(False, calls[self.draw.integers(len(calls))])

    # ---- what must then be true ------------------------------------------------------------------

    def holds_what_it_needs(self, cache):
        """A pool gives a block for each stretch of tokens, and each block once."""
        if cache.pool is None:
            return
        held = cache.table[cache.table >= 0].tolist()
        ends = [min(length, self.capacity) for length in cache.lengths]
        assert len(held) == len(set(held)) == sum(-(-end // self.block) for end in ends)
        assert cache.pool.free == cache.pool.count - len(held)

    def agree_in_full(self, cache, model):
        want = np.zeros(
            (
                2,
                self.batch,
                max(len(model.held(b)) for b in range(self.batch)),
                self.heads,
                self.dim,
            )
        )
        for b in range(self.batch):
            for at, token in enumerate(model.held(b)):
                want[:, b, at] = model.rows[b][token]
        assert np.array_equal(np.array(cache.numpy()), want)
        if want.shape[2] > 1 and self.draw.random() < 0.15:
            first = int(self.draw.integers(want.shape[2]))
            assert np.array_equal(np.array(cache.rows(first, 1)), want[:, :, first : first + 1])
        if self.draw.random() < 0.15:
            self.agree_in_attention(cache, model)

    def agree_in_attention(self, cache, model):
        q = self.draw.standard_normal((self.batch, 2 * self.heads, self.dim), dtype=np.float32)
        if not cache.length:
            self.attempt(False, lambda: cache.decode(q))
            return
        out = cache.decode(q)
        for b, own in enumerate(model.rows):
            k, v = (
                np.array(own[-self.window if self.window else 0 :])
                .reshape(-1, 2, self.heads, self.dim)
                .transpose(1, 2, 0, 3)
            )
            answer, _ = attend(q[b].reshape(self.heads, 2, self.dim), k, v, 1 / np.sqrt(self.dim))
            assert np.abs(out[b] - answer.reshape(out[b].shape)).max() <= practical(v)


@pytest.fixture(scope="module")
def team():
    with Team(1) as made:
        yield made


@pytest.mark.parametrize("part", range(10))
def test_lives(part, team):
    for seed in range(part, TRIALS, 10):
        trial = Trial(seed)
        try:
            for _ in range(LIVES):
                for _ in range(trial.draw.integers(2, 7)):
                    trial.step(team)
                trial.agree_in_full(trial.cache, trial.model)
                trial.holds_what_it_needs(trial.cache)
                trial.cache.reset()
                trial.born()
        except BaseException as error:
            error.add_note(f"Trial({seed})")
            raise
        trial.cache.close()


# ---- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["decode", "append"])
def test_memory_in_use_by_a_thread_is_not_freed(op, monkeypatch):
    """close() waits for it; then the cache is closed."""
    with kvbench.Cache(1, 4, 8) as cache:
        row = np.ones((1, 1, 4), np.float32)
        cache.append(row, row)
        calls = {"decode": lambda: cache.decode(row), "append": lambda: cache.append(row, row)}
        run, working, go_on, ended = Team.run, Event(), Event(), []

        def held(*args):
            working.set()
            go_on.wait(60)
            return run(*args)

        def then(call, name):
            call()
            ended.append(name)

        monkeypatch.setattr(Team, "run", held)
        threads = [
            Thread(target=then, args=args)
            for args in ((calls[op], "worked"), (cache.close, "closed"))
        ]
        threads[0].start()
        assert working.wait(60)
        threads[1].start()
        threads[1].join(0.1)
        go_on.set()
        for thread in threads:
            thread.join(60)
        assert ended == ["worked", "closed"]
        with pytest.raises(KvbenchError, match="closed"):
            cache.decode(row)


def test_a_task_that_was_made_before_its_cache_was_closed_does_not_run(monkeypatch):
    with kvbench.Cache(1, 4, 8) as cache:
        row = np.ones((1, 1, 4), np.float32)
        cache.append(row, row)
        make = decode_task
        monkeypatch.setattr(
            "kvbench.native.cache.decode_task", lambda *a, **k: (make(*a, **k), cache.close())[0]
        )
        with pytest.raises(KvbenchError, match="closed"):
            cache.decode(row)

"""A decoder whose memory is one block, divided by the arena map."""

from contextlib import ExitStack

import numpy as np
import pytest

import kvbench
from kvbench.native import Arena
from kvbench.sizing.map import arena_map
from kvbench.suite import Model
from suites.experiments import Cached, greedy
from tests.decoder.conftest import PROMPT, STEPS, TOKENS

CANARY = np.frombuffer(bytes.fromhex("deadbeef"), np.uint8)
BY_HEAD = ("q_scratch", "k_scratch", "v_scratch", "attn_scratch")


@pytest.fixture
def plan(decoder, monkeypatch):
    s = decoder.sizes
    facts = {"hidden": s.hidden, "intermediate": s.intermediate, "vocabulary": s.vocabulary}
    own = Model(
        "drawn", s.layers, s.q_heads, s.kv_heads, s.head_dim, TOKENS, source="drawn", **facts
    )
    monkeypatch.setattr("kvbench.sizing.map.stated", lambda *_: own)
    return arena_map("drawn", TOKENS, "f32", canaries=True)


class Mapped:
    """Every buffer of the map as an array of its shape. All arrays that a step makes pass through
    them.
    """

    def __init__(self, arena, plan):
        self.bytes, self.plan, self.now = arena.view(), plan, 0
        self.views = {
            each.name: self.bytes[each.offset : each.end].view(np.float32).reshape(each.shape)
            for each in plan.buffers
            if each.name not in ("text_input", "token_ids", "kv_cache")
        }
        self.ids = self.own("token_ids").view(np.int32)
        for buffer in plan.buffers:
            self.behind(buffer)[:] = np.resize(CANARY, buffer.canary)

    def own(self, name):
        buffer = self.plan.buffer(name)
        return self.bytes[buffer.offset : buffer.end]

    def behind(self, buffer):
        return self.bytes[buffer.end : buffer.end + buffer.canary]

    def overrun(self):
        """Return the names of buffers whose canary was overwritten."""
        return [
            each.name
            for each in self.plan.buffers
            if not np.array_equal(self.behind(each), np.resize(CANARY, each.canary))
        ]

    def keep(self, name, rows):
        view, token = self.views[name], slice(self.now, self.now + 1)
        if name in BY_HEAD:
            view[:, token] = rows.swapaxes(0, 1)
            return view[:, token].swapaxes(0, 1)
        where = (slice(None), token) if name == "rope_cache" else token
        view[where] = rows
        return view[where]

    def step(self, cached):
        def step(token):
            self.now = cached.caches[0].length
            text = self.own("text_input")[16 * self.now :][:16]
            text[:] = np.frombuffer(f"{token:16}".encode(), np.uint8)
            self.ids[self.now] = int(bytes(text))
            return cached.step(self.ids[self.now])

        return step


@pytest.mark.parametrize(("shift", "overrun"), [(0, []), (64, ["kv_cache"])])
def test_a_loop_in_one_block(shift, overrun, decoder, naive, plan):
    """Each buffer is used to its last byte. A cache that begins one line too late is noticed."""
    place, s = plan.buffer("kv_cache"), decoder.sizes
    with Arena(plan.total) as arena, ExitStack() as owned:
        mapped = Mapped(arena, plan)
        offsets = range(place.offset + shift, place.end + shift, place.size // s.layers)
        facts = {"pad": 0, "arena": arena}
        caches = [
            kvbench.Cache(s.kv_heads, s.head_dim, TOKENS, offset=at, **facts) for at in offsets
        ]
        for cache in caches:
            owned.enter_context(cache)
        found = greedy(mapped.step(Cached(decoder, caches, mapped.keep)), PROMPT, STEPS)
        assert found.argmax(axis=1).tolist() == naive.argmax(axis=1).tolist()
        assert mapped.overrun() == overrun
        for name in (*mapped.views, "text_input", "token_ids"):
            used = mapped.own(name)[-4:].any()
            assert used or name in ("attn_q_gate_packed", "attn_gate"), name  # no gate
        assert mapped.ids[: len(PROMPT)].tolist() == PROMPT

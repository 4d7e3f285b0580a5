"""The executed map: bytes read back at offsets that are worked out here, and overruns that were planted."""

import os

import numpy as np
import pytest

from kvbench.errors import Refused, WrongAnswer
from kvbench.lab.experiment import Asked
from kvbench.lab.experiments import arena as lab
from kvbench.machine import describe
from kvbench.native import Arena, default_library
from kvbench.sizing.map import arena_map

MODEL, CONTEXT = "qwen3-0.6b", 4
LAYERS, HEADS, DIM = 28, 8, 128


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    library, cpu = default_library(), min(os.sched_getaffinity(0))
    return Asked(describe(), library, (cpu,), library.isa(), 1, tmp_path_factory.mktemp("lab"))


@pytest.fixture
def plan():
    return arena_map(MODEL, CONTEXT, "f32", canaries=True)


@pytest.fixture
def arena(plan):
    with Arena(plan.total) as arena:
        lab.fence(arena.view(), plan)
        yield arena


def test_a_healthy_decoder_keeps_within_its_buffers(asked):
    found = lab.experiment(asked, MODEL, CONTEXT)
    table = found.table.set_index("name")
    assert set(table["canary"]) == {"intact"}
    assert table["written"].to_dict() == dict.fromkeys(table.index, 0) | {
        "kv_cache": LAYERS * 2 * HEADS * CONTEXT * DIM * 4,
        "q_scratch": 16 * DIM * 4,
        "attn_scratch": 16 * DIM * 4,
        "k_scratch": HEADS * DIM * 4,
        "v_scratch": HEADS * DIM * 4,
    }
    assert f"{CONTEXT} tokens went through 28 layers: all 16 canaries are intact, and every byte" in found.sentence
    assert any("behind layer_output" in note and "found, and named" in note for note in found.notes)
    assert found.figure.table["size"].sum() < arena_map(MODEL, CONTEXT, "f32", canaries=True).total


def test_one_byte_too_many_is_named(plan, arena):
    memory = arena.view()
    assert lab.overrun(memory, plan) == []
    for buffer in plan.buffers:
        memory[buffer.offset] = memory[buffer.end - 1] = 1
    assert lab.overrun(memory, plan) == []
    for buffer in plan.buffers:
        for at in (buffer.end, buffer.end + 63):
            kept, memory[at] = memory[at], 0
            assert lab.overrun(memory, plan) == [buffer.name]
            memory[at] = kept
    assert memory[plan.buffers[0].end :][:4].tobytes().hex() == "deadbeef"


def test_keys_and_values_lie_where_the_map_has_them(plan, arena):
    """Byte addresses of [L, 2, Hkv, C, D] in the order that its name says."""
    steps = CONTEXT - 1
    stored = np.random.default_rng(2).standard_normal((steps, LAYERS, 2, HEADS, DIM), dtype=np.float32)
    memory = arena.view()
    first = plan.buffer("kv_cache").offset
    for step in range(steps):
        for layer in range(LAYERS):
            for side in range(2):
                for head in range(HEADS):
                    at = first + 4 * DIM * (((layer * 2 + side) * HEADS + head) * CONTEXT + step)
                    memory[at : at + 4 * DIM] = np.frombuffer(stored[step, layer, side, head].tobytes(), np.uint8)
    assert lab.exact(memory, plan, stored)
    memory[at] ^= 1
    assert not lab.exact(memory, plan, stored)
    memory[at] ^= 1
    memory[at + 4 * DIM + 3] = 7  # the next token's, of which nothing was stored
    assert not lab.exact(memory, plan, stored)


def test_an_overrun_in_the_loop_is_told_with_its_step(asked, plan, monkeypatch):
    calls = []

    def clumsy(op, cache, *args, **facts):
        calls.append(op)
        if len(calls) == 2 * LAYERS + 1:  # the first layer of the third step
            cache.arena.view()[plan.buffer("attn_scratch").end] = 0
        return decode_task(op, cache, *args, **facts)

    decode_task = lab.decode_task
    monkeypatch.setattr(lab, "decode_task", clumsy)
    found = lab.experiment(asked, MODEL, CONTEXT)
    assert "attn_scratch was overrun in step 3, and every byte" in found.sentence
    rows = found.table.set_index("name")["canary"]
    assert rows["attn_scratch"] == "broken in step 3" and (rows == "intact").sum() == 15
    assert any("found was attn_scratch, layer_output" in note for note in found.notes)


def test_wrong_bytes_are_told(asked, monkeypatch):
    monkeypatch.setattr(lab, "exact", lambda *_: False)
    assert lab.experiment(asked, MODEL, 1).sentence.endswith("and the cache is not as the map has it.")


def test_wrong_answers_are_no_outcome(asked, monkeypatch):
    monkeypatch.setattr(lab, "attention", lambda q, *_: np.zeros(q.shape))
    with pytest.raises(WrongAnswer, match="decode of layer 0 is off"):
        lab.experiment(asked, MODEL, 2)


def test_what_does_not_fit_is_refused(asked, monkeypatch):
    monkeypatch.setattr(lab, "available_memory", lambda: 1 << 20)
    with pytest.raises(Refused, match="1 MiB are free"):
        lab.experiment(asked, MODEL, CONTEXT)

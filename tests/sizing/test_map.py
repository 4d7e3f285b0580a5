"""The arena map against a plan that was published byte by byte, and against formulas written out
here.
"""

import json
import math

import numpy as np
import pytest

from kvbench.errors import BadArgument
from kvbench.native import Arena, Cache
from kvbench.report.sizes import map_text
from kvbench.sizing.map import arena_map
from kvbench.store import plain as plain_of

MODEL = "qwen3-0.6b"
PUBLISHED = """
text_input 16,384 · token_ids 4,096 · embedded_input 4,194,304 · layer_input 4,194,304 ·
residual 4,194,304 · kv_cache 234,881,024 · rope_cache 524,288 · q_scratch 8,388,608 · k_scratch
4,194,304 · v_scratch 4,194,304 · attn_q_gate_packed 16,777,216 · attn_gate 8,388,608 ·
attn_scratch 8,388,608 · mlp_scratch 41,943,040 · layer_output 4,194,304 · logits 622,329,856
"""

# name, hidden, intermediate, vocabulary, layers, q_heads, kv_heads, head_dim
LLAMA = ("llama-3-8b", 4096, 14336, 128256, 32, 32, 8, 128)


def published():
    words = [entry.split() for entry in PUBLISHED.replace("\n", " ").split("·")]
    return [(name, int(count.replace(",", ""))) for name, count in words]


def test_the_published_plan_to_the_byte():
    found = arena_map(MODEL, 1024, "f32")
    assert [(buffer.name, buffer.size) for buffer in found.buffers] == published()
    sizes = [count for _, count in published()]
    assert [buffer.offset for buffer in found.buffers] == [
        sum(sizes[:n]) for n in range(len(sizes))
    ]
    cache = found.buffer("kv_cache")
    assert (cache.offset, cache.end, cache.shape) == (0xC05000, 0xEC05000, (28, 2, 8, 1024, 128))
    assert found.buffer("logits").shape == (1024, 151936)
    assert found.total == 966_807_552 and f"{cache.size / found.total:.1%}" == "24.3%"
    assert not any(buffer.canary for buffer in found.buffers)


@pytest.mark.parametrize("context", [1, 7, 100, 8192])
def test_another_model_by_its_formulas(context):
    name, hidden, intermediate, vocabulary, layers, q_heads, kv_heads, dim = LLAMA
    row, queries = 4 * context * hidden, 4 * context * q_heads * dim
    expected = dict.fromkeys(("embedded_input", "layer_input", "residual", "layer_output"), row)
    expected |= dict.fromkeys(("q_scratch", "attn_gate", "attn_scratch"), queries)
    expected |= dict.fromkeys(("k_scratch", "v_scratch"), 4 * context * kv_heads * dim)
    expected |= {
        "text_input": 16 * context,
        "token_ids": 4 * context,
        "logits": 4 * context * vocabulary,
    }
    expected |= {
        "kv_cache": layers * 2 * kv_heads * context * dim * 2,
        "rope_cache": 4 * context * dim,
    }
    expected |= {
        "attn_q_gate_packed": 2 * queries,
        "mlp_scratch": row + 12 * context * intermediate,
    }
    found = arena_map(name, context, "f16")
    assert {buffer.name: buffer.size for buffer in found.buffers} == expected
    for buffer in found.buffers:  # but for the cache's, elements are of four bytes, or bytes
        each = {"text_input": 1, "kv_cache": 2}.get(buffer.name, 4)
        assert math.prod(buffer.shape) * each == buffer.size, buffer.name


def test_caches_at_their_mapped_offsets_write_their_buffer_alone():
    """Every byte of [L, 2, Hkv, C, D] is that of the token it stands for; no other byte of the
    block changes.
    """
    plan = arena_map(MODEL, 4, "f32", canaries=True)
    place = plan.buffer("kv_cache")
    layers, _, heads, context, dim = place.shape
    rows = np.random.default_rng(2).standard_normal(
        (layers, context, 2, 1, heads, dim), dtype=np.float32
    )
    with Arena(plan.total) as arena:
        arena.view()[:] = 0xA5
        wanted = arena.view().copy()
        wanted[place.offset : place.end] = (
            np.ascontiguousarray(rows[:, :, :, 0].transpose(0, 2, 3, 1, 4)).view(np.uint8).ravel()
        )
        for layer, own in enumerate(rows):
            offset = place.offset + layer * place.size // layers
            with Cache(
                heads, dim, context, dtype="f32", pad=0, arena=arena, offset=offset
            ) as cache:
                for k, v in own:
                    cache.append(k, v)
        assert np.array_equal(arena.view(), wanted)


@pytest.mark.parametrize("canaries", [False, True])
@pytest.mark.parametrize("align", [64, 4096])
@pytest.mark.parametrize("context", [1, 100, 1023])
def test_buffers_lie_apart_and_aligned(context, align, canaries):
    found = arena_map(MODEL, context, "f16", align=align, canaries=canaries)
    ends = [buffer.offset for buffer in found.buffers[1:]] + [found.total]
    for buffer, end in zip(found.buffers, ends, strict=True):
        assert buffer.offset % align == 0
        gap = end - buffer.end
        assert buffer.canary == (gap if canaries else 0)
        assert (64 if canaries else 0) <= gap < (
            64 if canaries else 0
        ) + align or end == found.total


def test_text_and_data_say_the_same():
    found = arena_map(MODEL, 1024, "f32")
    lines = map_text(found)
    (cache,) = (line for line in lines if " kv_cache " in line)
    assert cache.split()[:5] == ["0xC05000", "0xEC05000", "234,881,024", "kv_cache", "persistent"]
    assert cache.endswith("[28, 2, 8, 1024, 128]")
    assert any(
        line.startswith("966,807,552 B (922 MiB) in all, of which the cache is 24.3%")
        for line in lines
    )
    assert (
        "canary" not in lines[-1]
        and "canary" in map_text(arena_map(MODEL, 1024, "f32", canaries=True))[-1]
    )
    plain = json.loads(json.dumps(plain_of(found)))
    assert (
        plain["total"] == 966_807_552
        and sum(kind["bytes"] for kind in plain["kinds"].values()) == plain["total"]
    )
    assert [(buffer["name"], buffer["size"]) for buffer in plain["buffers"]] == published()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "gpt-2"}, "models.toml has no hidden, intermediate, vocabulary size of gpt-2"),
        ({"model": "gpt-9"}, "gpt-9"),
        ({"context": 0}, "context is 0"),
        ({"context": -1}, "context is -1"),
        ({"context": 1 << 60}, "context is"),
        ({"dtype": "f31"}, "f31"),
        ({"align": 96}, "align is 96"),
        ({"align": 8}, "align is 8"),
    ],
)
def test_what_cannot_be_mapped(asked, said):
    with pytest.raises(BadArgument, match=said) as caught:
        arena_map(**{"model": MODEL, "context": 16, "dtype": "f32"} | asked)
    assert "\n" not in str(caught.value) and caught.value.hint

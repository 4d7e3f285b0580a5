"""Sizes that are known from elsewhere, to the byte."""

import pytest

from kvbench.sizing.fleet import read_lengths
from tests.sizing.calculator import Case
from tests.sizing.made import GIB, MIB, of_model, sized

QWEN, LLAMA_70B = "qwen3-0.6b", "llama-3-70b"


@pytest.mark.parametrize(
    ("case", "known"),
    [
        (of_model(QWEN, context=1024, dtype="f32"), 224 * MIB),
        (of_model(QWEN, context=1024, dtype="f16"), 112 * MIB),
        (of_model(QWEN, context=1024, dtype="f32", kv_heads=16), 448 * MIB),
        (of_model("llama-3-8b", context=4096), 512 * MIB),
        (of_model("llama-3-8b", context=8192, dtype="f32"), 2 * GIB),
        (of_model(LLAMA_70B, context=8192), 5 * GIB // 2),
        (of_model(LLAMA_70B, context=8192, kv_heads=64), 20 * GIB),
        (of_model("llama-3-405b", context=131_072, dtype="f32"), 126 * GIB),
        (of_model("llama-2-7b", context=4096), 2 * GIB),
        # 2^20 rows: of q8_0 136 bytes, of q4_0 72, of i8 128 and 4 of scale
        (of_model("llama-3-8b", context=4096, dtype="q8_0+q4_0"), 208 * MIB),
        (of_model("llama-3-8b", context=4096, dtype="i8", k_scale="channel"), 260 * MIB),
        (of_model("llama-3-8b", context=4096, head_dim=192, v_dim=128), 640 * MIB),
        (of_model(LLAMA_70B, context=32_768, kv_heads=64, dtype="bf16"), 80 * GIB),
        (of_model(LLAMA_70B, context=32_768, kv_heads=1, dtype="bf16"), 5 * GIB // 4),
        # Two figures that circulate say 896 MiB and 16 KiB.
        (of_model("gemma-3-4b", context=4096, window=0), 544 * MIB),
        (Case(4, 4, 4, 16, 32, dtype="f32"), 64 << 10),
    ],
)
def test_bytes(case, known):
    assert sized(case).bytes == known


def test_memory_for_tokens():
    """40 GiB hold 16,384 tokens of a 70B model without groups."""
    case = of_model(LLAMA_70B, context=32_768, kv_heads=64, dtype="bf16")
    assert sized(case, budget=40 * GIB).admission.tokens == 16_384


def test_pages():
    """900 tokens are 57 pages of 16 in each layer, 64 KiB each: 285 MiB in 80 layers."""
    case = of_model(LLAMA_70B, context=900, dtype="bf16", layout="paged", block_tokens=16)
    found = sized(case, lengths=read_lengths("fixed:900"))
    assert (found.blocks.per_layer, found.blocks.bytes) == (57, 64 << 10)
    assert found.allocated.total == 285 * MIB == found.admission.reservation.paged.bytes


def test_scales():
    """Two bytes to 128: 1.5625 % more than the rows."""
    found = sized(of_model("llama-3-8b", context=4096, dtype="i8", scale="f16"))
    assert found.scale_share == 0.015625
    assert found.allocated.scales == 0.015625 * found.allocated.rows
    assert found.bytes == found.allocated.rows + found.allocated.scales == 256 * MIB + 4 * MIB


def test_ladder():
    found = {rung.name: rung for rung in sized(of_model(LLAMA_70B, context=8192)).ladder}
    assert {name: (rung.kv_heads, rung.bytes, rung.own) for name, rung in found.items()} == {
        "MHA": (64, 20 * GIB, False),
        "GQA": (8, 5 * GIB // 2, True),
        "MQA": (1, 320 * MIB, False),
    }
    own = {rung.name for rung in sized(of_model("llama-2-7b", context=4096)).ladder if rung.own}
    assert own == {"MHA"}
    assert [rung.name for rung in sized(of_model("falcon-7b", context=64)).ladder if rung.own] == [
        "MQA"
    ]
    assert [rung.name for rung in sized(Case(1, 1, 1, 64, 64)).ladder] == ["MQA"]


def test_encoders_leave_nothing():
    """12 of 24 layers stay; while one runs, its K and V are there."""
    whole, half = Case(12, 16, 16, 64, 448), Case(24, 16, 16, 64, 448, ephemeral=12)
    found = sized(half)
    assert (
        found.bytes == sized(whole).bytes and found.allocated.total == sized(whole).allocated.total
    )
    assert (found.ephemeral.layers, found.ephemeral.persistent) == (12, 0)
    assert found.ephemeral.passing == 2 * 16 * 448 * 64 * 2
    alone = sized(Case(24, 16, 16, 64, 448, ephemeral=24), budget=GIB)
    assert (alone.bytes, alone.streamed, alone.allocated.total, alone.bytes_per_layer) == (
        0,
        0,
        0,
        0,
    )
    assert alone.admission.tokens is None and alone.tokens_per_second.kv.reason == "nothing is read"

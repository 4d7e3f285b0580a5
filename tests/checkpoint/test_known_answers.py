"""Bytes of weights and caches, computed by hand from published geometries."""

from dataclasses import replace

import pytest

from kvbench.checkpoint import find
from kvbench.errors import BadArgument
from kvbench.sizing.decoder import cache_bytes, flops, streamed_bytes
from kvbench.sizing.explained import decoder_of
from tests.checkpoint.made import (
    DENSE,
    KINDS,
    MLP,
    NORMS,
    config,
    experts,
    folder,
    gguf_file,
    names,
    shape,
)

LLAMA = shape(32, 32, 8, 128, 4096, 14336, 128256)
QWEN = shape(48, 32, 4, 128, 2048, 6144, 151936) | {
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}
LITE = config(
    num_hidden_layers=27,
    num_attention_heads=16,
    num_key_value_heads=16,
    hidden_size=2048,
    intermediate_size=10944,
    moe_intermediate_size=1408,
    n_routed_experts=64,
    n_shared_experts=2,
    num_experts_per_tok=6,
    kv_lora_rank=512,
    q_lora_rank=None,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
    vocab_size=102400,
)


def read(path):
    name, model, why = find(str(path))
    return decoder_of(name, model, 1), model.weights, why


def cached(decoder, context, **facts):
    return streamed_bytes(replace(decoder, context=context, **facts))


def test_a_dense_model_with_groups(tmp_path):
    layer = 4096 * 4096 + 2 * 1024 * 4096 + 4096 * 4096 + 3 * 14336 * 4096 + 2 * 4096
    table = 128256 * 4096
    total = 2 * (32 * layer + 2 * table + 4096)
    assert total == 16_060_522_496  # as the published index states
    found = folder(tmp_path / "llama", config(**LLAMA), names(32, *DENSE, *MLP, *NORMS), total)
    decoder, weights, _ = read(found)
    assert (weights.stored, weights.read(1)) == (total, total - 2 * table + 2 * 4096)
    assert weights.read(8) == weights.read(1) + 7 * 2 * 4096
    assert cached(decoder, 8192) == 2 * 32 * 8 * 128 * 8192 * 2 == 1 << 30
    assert cached(decoder, 8192, batch=3, dtype="i8") == 3 * 2 * 32 * 8 * 8192 * (128 + 4)


def test_tied_embeddings_count_once(tmp_path):
    decoder, weights, _ = read(
        folder(tmp_path / "tied", config(**LLAMA), names(32, *DENSE, *MLP, *NORMS, head=False))
    )
    assert (
        weights.read(1) == weights.read(8) == weights.stored == 16_060_522_496 - 2 * 128256 * 4096
    )
    assert decoder.group == 4


def test_a_hybrid_of_windows(tmp_path):
    """Gemma 3 4B's config.json leaves its heads to transformers; every sixth of 34 layers attends
    to all.
    """
    text = {
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "hidden_size": 2560,
        "intermediate_size": 10240,
    }
    facts = config(model_type="gemma3", text_config=text | {"sliding_window": 1024})
    sides = [f"self_attn.{x}_norm.weight" for x in "qk"] + [
        f"{x}_feedforward_layernorm.weight" for x in ("pre", "post")
    ]
    parts = names(34, *DENSE, *MLP, *NORMS, *sides, head=False, pre="language_model.model.")
    layer = 2 * 2048 * 2560 + 2 * 1024 * 2560 + 3 * 10240 * 2560 + 4 * 2560 + 2 * 256
    whole = 2 * (34 * layer + 262208 * 2560 + 2560)
    decoder, weights, _ = read(
        folder(tmp_path / "gemma", facts, [*parts, "vision_tower.x.weight"], whole + 1000)
    )
    assert (weights.read(1), weights.stored, weights.senses) == (whole, whole + 1000, 1000)
    assert cached(decoder, 8192) == 2 * 4 * 256 * 2 * (5 * 8192 + 29 * 1024)
    assert find("gemma-3-4b")[1].weights.read(1) == whole


def test_one_latent_row(tmp_path):
    """DeepSeek-V2-Lite: 512 and 64 elements a token for any number of heads; two experts serve all
    tokens.
    """
    own = [
        f"self_attn.{x}.weight"
        for x in ("q_proj", "kv_a_proj_with_mqa", "kv_a_layernorm", "kv_b_proj", "o_proj")
    ]
    shared = [f"mlp.shared_experts.{x}_proj.weight" for x in ("gate", "up", "down")]
    sparse = [
        name for name in names(27, *own, *NORMS, *experts(64), *shared) if ".0.mlp." not in name
    ]
    ahead = ["model.layers.27.eh_proj.weight"]
    found = folder(
        tmp_path / "lite", LITE, [*sparse, *(f"model.layers.0.{part}" for part in MLP), *ahead]
    )
    decoder, weights, _ = read(found)
    heads = 16 * 192 * 2048 + 576 * 2048 + 512 + 16 * 256 * 512 + 16 * 128 * 2048 + 2 * 2048
    always = (
        27 * heads + 3 * 10944 * 2048 + 26 * (64 * 2048 + 3 * 2816 * 2048) + 102400 * 2048 + 2048
    )
    expert = 3 * 1408 * 2048
    assert weights.read(1) == 2 * (always + 2048 + 26 * 6 * expert)
    assert weights.read(1) == find("deepseek-v2-lite")[1].weights.read(1)
    assert weights.ahead == 2 * 2 * 2048 * 2048
    assert cached(decoder, 8192) == 27 * 576 * 2 * 8192 and decoder.sides == 1
    assert cached(decoder, 8192, dtype="i8") == 27 * (576 + 4) * 8192
    assert flops(decoder) == 131072 * 27 * 16 * 2 * (576 + 512)


@pytest.mark.parametrize(("batch", "distinct"), [(1, 8.0), (8, 128 * (1 - 0.9375**8))])
def test_a_mixture_of_experts(batch, distinct, tmp_path):
    sides = [f"self_attn.{x}_norm.weight" for x in "qk"]
    found = folder(
        tmp_path / "moe",
        config(**QWEN),
        names(48, *DENSE, *NORMS, *sides, *experts(128)),
        61_064_245_248,
    )
    _, weights, _ = read(found)
    layer = 2 * 4096 * 2048 + 2 * 512 * 2048 + 2 * 2048 + 2 * 128 + 128 * 2048
    always = 2 * (48 * layer + 151936 * 2048 + 2048)
    assert weights.distinct(batch) == pytest.approx(distinct)
    assert weights.read(batch) == round(
        always + batch * 2 * 2048 + 48 * distinct * 2 * 3 * 768 * 2048
    )
    assert find("qwen3-30b-a3b")[1].weights == weights
    assert weights.multiplied() == always // 2 + 48 * 8 * 3 * 768 * 2048, "whatever the batch"


STORES = [  # how it is quantized, what its index names, and how many elements each token meets
    (
        {"quantization_config": {"quant_method": "fp8"}},
        ["self_attn.q_proj.weight", "self_attn.q_proj.weight_scale_inv"],
        4096 * 4096,
    ),
    ({"torch_dtype": "float32"}, ["self_attn.q_proj.weight"], 4096 * 4096),
    (
        {"quantization_config": {"quant_method": "mxfp4"}, "num_local_experts": 4}
        | {"num_experts_per_tok": 1},
        ["mlp.experts.down_proj_blocks", "mlp.experts.down_proj_scales"],
        4096 * 14336,
    ),
]


@pytest.mark.parametrize(("facts", "parts", "elements"), STORES)
def test_parameters_are_counted_whatever_they_take(facts, parts, elements, tmp_path):
    found = folder(tmp_path / "model", config(**LLAMA | facts), names(2, *parts))
    _, weights, _ = read(found)
    assert weights.multiplied() == 2 * elements + 128256 * 4096 + 4096


def test_published_models_have_as_many_active_parameters_as_is_said_of_them():
    """In billions, rounded as the publishers do."""
    said = {"gpt-oss-20b": 3.6, "gpt-oss-120b": 5.1, "deepseek-v3": 37, "llama-3-8b": 7.5}
    for name, count in said.items():
        assert find(name)[1].weights.multiplied() / 1e9 == pytest.approx(count, rel=0.02)


@pytest.mark.parametrize(
    ("facts", "tensors", "total", "why"),
    [
        ({}, None, None, "its folder has no model.safetensors.index.json"),
        ({}, names(32, *DENSE), 17, "states 17 bytes"),
        ({}, names(32, *DENSE, "mlp.odd.weight"), None, "names of unknown size"),
        (
            {"quantization_config": {"quant_method": "awq"}},
            names(32, *DENSE),
            None,
            "how many bytes awq takes",
        ),
    ],
)
def test_weights_are_never_guessed(facts, tensors, total, why, tmp_path):
    _, weights, said = read(folder(tmp_path / "model", config(**LLAMA, **facts), tensors, total))
    assert weights is None and why in said


WINDOWS = [
    (
        {"layer_types": ["sliding_attention", "full_attention"] * 16, "sliding_window": 128},
        16 * 8192 + 16 * 128,
    ),
    ({"sliding_window": 4096}, 32 * 4096),
    ({"sliding_window": 4096, "use_sliding_window": False}, 32 * 8192),
    ({"attention_chunk_size": 2048, "no_rope_layers": [1, 1, 1, 0] * 8}, 8 * 8192 + 24 * 2048),
    ({"model_type": "llama4_text", "attention_chunk_size": 8192}, 32 * 8192),
]


@pytest.mark.parametrize(("facts", "tokens"), WINDOWS)
def test_windows(facts, tokens, tmp_path):
    decoder = read(folder(tmp_path / "model", config(**LLAMA, **facts)))[0]
    assert cached(decoder, 8192) == 2 * 8 * 128 * 2 * tokens


# ---- gguf ----------------------------------------------------------------------------------------

BASE = {
    "block_count": 2,
    "context_length": 4096,
    "embedding_length": 512,
    "attention.head_count": 8,
}


def test_a_gguf_file(tmp_path):
    """Its tensors have different types: Q4_K has 144 bytes for 256 elements, Q6_K 210."""
    layer = {
        "attn_q": ((512, 512), KINDS.Q4_K),
        "ffn_down": ((512, 1024), KINDS.Q6_K),
        "attn_norm": ((512,), KINDS.F32),
    }
    tensors = {f"blk.{n}.{name}.weight": facts for n in range(2) for name, facts in layer.items()}
    tensors |= {
        "token_embd.weight": ((1000, 512), KINDS.Q4_K),
        "output.weight": ((1000, 512), KINDS.Q6_K),
    }
    path = gguf_file(
        tmp_path / "small.gguf", "llama", BASE | {"attention.head_count_kv": 2}, tensors
    )
    decoder, weights, _ = read(path)
    each = 2 * (512 * 512 // 256 * 144 + 512 * 1024 // 256 * 210 + 512 * 4)
    assert weights.read(1) == each + 1000 * 2 * 210 + 2 * 144 and weights.row == 288
    assert weights.stored == each + 1000 * 2 * (144 + 210)
    assert weights.multiplied() == 2 * (512 * 512 + 512 * 1024 + 512) + 1000 * 512
    assert (decoder.kv_heads, decoder.head_dim, decoder.context) == (2, 64, 4096)
    assert cache_bytes(decoder) == 2 * 2 * 2 * 64 * 4096 * 2


def test_a_gguf_file_of_experts_and_latent_rows(tmp_path):
    more = {
        "expert_count": 4,
        "expert_used_count": 1,
        "attention.kv_lora_rank": 256,
        "rope.dimension_count": 64,
    }
    tensors = {f"blk.{n}.ffn_up_exps.weight": ((4, 512, 256), KINDS.F16) for n in range(2)}
    tensors |= {
        "token_embd.weight": ((1000, 512), KINDS.F16),
        "blk.1.nextn.eh_proj.weight": ((512, 512), KINDS.F16),
    }
    decoder, weights, _ = read(gguf_file(tmp_path / "mla.gguf", "deepseek2", BASE | more, tensors))
    assert (decoder.layers, decoder.head_dim, decoder.latent) == (1, 320, 256)
    assert weights.read(1) == 1000 * 512 * 2 + 512 * 256 * 2, "tied; of four experts one"
    assert weights.ahead == (4 * 512 * 256 + 512 * 512) * 2


@pytest.mark.parametrize(("arch", "tokens"), [("gpt-oss", 4096 + 128), ("llama", None)])
def test_windows_of_gguf_files(arch, tokens, tmp_path):
    path = gguf_file(tmp_path / "w.gguf", arch, BASE | {"attention.sliding_window": 128}, {})
    if tokens is None:
        with pytest.raises(BadArgument, match="the file does not say which"):
            find(str(path))
    else:
        assert streamed_bytes(read(path)[0]) == 2 * 8 * 64 * 2 * tokens


WIDE = {"num_hidden_layers": 1, "head_dim": 192, "v_head_dim": 128}
SCORES = [
    ({"attn_logit_softcapping": 50.0}, {"softcap": 50.0, "sinks": "none", "v_dim": 0}),
    ({"attn_logit_softcapping": None}, {"softcap": 0.0}),
    ({"model_type": "gpt_oss"}, {"sinks": "heads", "softcap": 0.0}),
    (WIDE, {"v_dim": 128, "head_dim": 192, "sinks": "none"}),
]


@pytest.mark.parametrize(("facts", "said"), SCORES)
def test_what_a_model_does_to_scores_and_how_wide_its_values_are(facts, said, tmp_path):
    decoder, _, _ = read(folder(tmp_path / "it", config(**LLAMA | facts)))
    assert said == {name: getattr(decoder, name) for name in said}


def test_rows_of_two_widths(tmp_path):
    """Rows of K have 192 elements, rows of V 128."""
    layer = 4096 * (32 * 192 + 8 * 192 + 8 * 128 + 32 * 128) + 3 * 14336 * 4096 + 2 * 4096
    total = 2 * (layer + 2 * 128256 * 4096 + 4096)
    found = folder(tmp_path / "w", config(**LLAMA | WIDE), names(1, *DENSE, *MLP, *NORMS), total)
    decoder, weights, why = read(found)
    assert (weights.stored, why) == (total, "")
    assert cached(decoder, 1000) == 8 * 1000 * (192 + 128) * 2


def test_a_gguf_file_of_capped_scores_and_narrow_values(tmp_path):
    more = {"attn_logit_softcapping": 30, "attention.key_length": 96, "attention.value_length": 64}
    decoder, _, _ = read(gguf_file(tmp_path / "c.gguf", "grok", BASE | more, {}))
    assert (decoder.softcap, decoder.head_dim, decoder.v_dim) == (30.0, 96, 64)
    assert cached(decoder, 100) == 2 * 8 * 100 * (96 + 64) * 2
    decoder, _, _ = read(gguf_file(tmp_path / "s.gguf", "gpt-oss", BASE, {}))
    assert decoder.sinks == "heads"

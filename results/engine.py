"""Measure an engine's own tokens per second, to compare with kvbench explain --engine.

    python results/engine.py write model.gguf
    python results/engine.py run model.gguf
    python results/engine.py run model.gguf base

`write` writes a Llama model with random weights. `run` lets llama.cpp, from the wheel of xllamacpp,
decode a few tokens behind prompts of several lengths. The last line of each format is the options
for kvbench explain. The cache is on huge pages, as in kvbench peers. With `base` it is on the pages
that malloc gives by itself.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

TOKENS = 32  # decoded behind a prompt: on average the cache holds half of them
ROUNDS = 5
DEPTHS = (0, 2000, 8000)
WORDS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
KINDS = [2, 3, 3] + [6] * 256  # unknown, control, bytes
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # large memory asks for huge pages
PROMPT = 5  # the token that prompts repeat: the time does not depend on it


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of Llama-3.2-1B, with 4 of its 16 layers."""

    layers: int = 4
    hidden: int = 2048
    intermediate: int = 8192
    q_heads: int = 32
    kv_heads: int = 8
    head_dim: int = 64
    context: int = 16384

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each tensor: rows, columns, as NumPy has them."""
        query, stored = self.q_heads * self.head_dim, self.kv_heads * self.head_dim
        layer = {
            "attn_norm": (self.hidden,),
            "attn_q": (query, self.hidden),
            "attn_k": (stored, self.hidden),
            "attn_v": (stored, self.hidden),
            "attn_output": (self.hidden, query),
            "ffn_norm": (self.hidden,),
            "ffn_gate": (self.intermediate, self.hidden),
            "ffn_up": (self.intermediate, self.hidden),
            "ffn_down": (self.hidden, self.intermediate),
        }
        ends = {
            "token_embd": (len(WORDS), self.hidden),
            "output_norm": (self.hidden,),
            "output": (len(WORDS), self.hidden),
        }
        blocks = (
            {f"blk.{n}.{name}": shape for name, shape in layer.items()} for n in range(self.layers)
        )
        return {f"{name}.weight": shape for part in (ends, *blocks) for name, shape in part.items()}


def head(made: Any, sizes: Sizes) -> None:
    """Write what a llama.cpp server needs. It crashes without a vocabulary."""
    made.add_context_length(sizes.context)
    made.add_embedding_length(sizes.hidden)
    made.add_block_count(sizes.layers)
    made.add_feed_forward_length(sizes.intermediate)
    made.add_head_count(sizes.q_heads)
    made.add_head_count_kv(sizes.kv_heads)
    made.add_rope_dimension_count(sizes.head_dim)
    made.add_layer_norm_rms_eps(1e-5)
    made.add_tokenizer_model("llama")
    made.add_token_list(WORDS)
    made.add_token_scores([0.0] * len(WORDS))
    made.add_token_types(KINDS)
    made.add_bos_token_id(1)
    made.add_eos_token_id(2)


def write(path: Path, sizes: Sizes = Sizes()) -> None:
    """Write the model: matrices in bf16, as models are published, and norms in f32."""
    from gguf import GGMLQuantizationType as Kind
    from gguf import GGUFWriter
    from gguf.quants import quantize

    made = GGUFWriter(path, "llama")
    head(made, sizes)
    dice = np.random.default_rng(1)
    for name, shape in sizes.tensors().items():
        if len(shape) == 1:
            made.add_tensor(name, np.ones(shape, np.float32))
        else:
            values = quantize(0.02 * dice.standard_normal(shape, np.float32), Kind.BF16)
            made.add_tensor(name, values, raw_dtype=Kind.BF16)
    made.write_header_to_file()
    made.write_kv_data_to_file()
    made.write_tensors_to_file()
    made.close()


def rates(
    path: Path, dtype: str, depths: tuple[int, ...] = DEPTHS, threads: int = 2, rounds: int = ROUNDS
) -> dict[int, list[float]]:
    """Return the tokens per second of every round behind each depth, with K and V in `dtype`. Each
    prompt continues the one before, so that llama.cpp computes each of its tokens once.
    """
    import xllamacpp

    how = xllamacpp.CommonParams()
    how.model.path, how.n_ctx, how.n_parallel = str(path), max(depths) + 4 * TOKENS, 1
    how.cpuparams.n_threads = how.cpuparams_batch.n_threads = threads
    how.cache_type_k = how.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{dtype.upper()}")
    how.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    how.fit_params, how.verbosity = False, -1
    server = xllamacpp.Server(how)
    found = {}
    for depth in sorted(depths):
        asked = {"prompt": [PROMPT] * max(1, depth), "n_predict": TOKENS, "ignore_eos": True}
        answers = [server.handle_completions(asked) for _ in range(1 + rounds)]
        found[depth] = [each["timings"]["predicted_per_second"] for each in answers[1:]]
    return found


def main(name: str, path: str, pages: str = "thp") -> None:
    if name == "write":
        write(Path(path))
        return
    for dtype in ("f16", "q8_0"):
        options = ""
        for depth, found in rates(Path(path), dtype).items():
            context, middle = depth + TOKENS // 2, median(found)
            print(
                f"{dtype} at {context} tokens, {pages} pages: {middle:.4g} tokens/s"
                f" ({min(found):.4g} to {max(found):.4g} in {len(found)} rounds)"
            )
            options += f" --measured {middle:.4g}@{context}"
        print(f"--dtype {dtype}{options}", flush=True)


if __name__ == "__main__":
    if "base" not in sys.argv and HUGE.items() - os.environ.items():  # malloc reads it at its start
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | HUGE)
    main(*sys.argv[1:])

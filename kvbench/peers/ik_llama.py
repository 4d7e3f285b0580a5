"""ik_llama.cpp's `flash_attn_ext`, as it calls that itself: rows are padded to a number, and a mask
says which are tokens. Its fast kernels need both; without them it takes a slow one.

bf16 is left out: only builds for AVX512-BF16 have it, and the wheel is not one.
"""

from kvbench.peers.ggml import Ggml
from kvbench.peers.interface import stated


class IkLlama(Ggml):
    formats = stated("f16 0.1, q8_0 0.1, q4_0 0.1")
    package = "ik-llama-cpp-python"
    install = "pip install 'kvbench[peers]', or name its libggml.so: --build ik_llama=PATH"
    engine = "libggml*.so"
    pad = 256  # llama_kv_cache::get_padding()
    asked = "GGML_PREC_DEFAULT, f16 mask, tokens padded to 256"

    def _begin(self):
        """Its threads are OpenMP's, as many as its backend is told."""

    def _refine(self, out):
        """It asks for no precision, as for most models."""

"""ik_llama.cpp's `flash_attn_ext`. Its fast kernels are for padded rows with a mask, which that
engine always has; without them it takes a slow one.

bf16 is left out: only builds for AVX512-BF16 have it, and the wheel is not one.
"""

from kvbench.peers.ggml import Ggml
from kvbench.peers.interface import stated


class IkLlama(Ggml):
    formats = stated("f16 0.02, q8_0 0.1, q4_0 0.1")
    package = "ik-llama-cpp-python"
    install = "pip install 'kvbench[peers]', or name its libggml.so: --build ik_llama=PATH"
    engine = "libggml*.so"
    asked = "GGML_PREC_DEFAULT, f16 mask"

    def _begin(self):
        """Its threads are OpenMP's, as many as its backend is told."""

    def _refine(self, out):
        """It asks for no precision, as for most models."""

"""ik_llama.cpp's `flash_attn_ext`. Its fast kernels are for padded rows with a mask, which that
engine always has; without them it takes a slow one.

bf16 is left out: only builds for AVX512-BF16 have it, and the wheel is not one.
"""

from kvbench.peers.ggml import PAD, Ggml
from kvbench.peers.interface import stated

_WIDTHS = (192, 128)  # the only ones of K and V that differ, of those that peers have
_STRONG = 20.0  # a cap below it leaves tokens weight that nobody attends to


class IkLlama(Ggml):
    formats = stated("f16 0.02, q8_0 0.1, q4_0 0.1")
    # its fast kernels fail where a window leaves whole blocks out, and its slow one with ALiBi
    takes = "q_len v_dim sinks softcap v_dtype"
    package = "ik-llama-cpp-python"
    install = "pip install 'kvbench[peers]', or name its libggml.so: --build ik_llama=PATH"
    engine = "libggml*.so"
    asked = "GGML_PREC_DEFAULT, f16 mask"

    @classmethod
    def refuses(cls, dtype, shape):
        if shape.v_dim and (shape.head_dim, shape.v_dim) != _WIDTHS:
            return "of two widths it takes K of 192 and V of 128"
        if shape.sinks and shape.q_len == shape.kv_heads == 1 < shape.group:
            return "with one KV head its parts of a cache count sinks more than once"
        padded = shape.context % PAD or shape.q_len > 1
        if 0 < shape.softcap < _STRONG and padded:
            return "it caps scores behind the mask, so that rows of padding have weight"
        return ""

    def _begin(self):
        """Its threads are OpenMP's, as many as its backend is told."""

    def _refine(self, out):
        """It asks for no precision, as for most models."""

"""ik_llama.cpp's `flash_attn_ext`. Its fast kernels need padded rows with a mask, which that engine
always has. Without them it uses a slow kernel.

bf16 is left out: only builds for AVX512-BF16 have it, and the wheel is not such a build.
"""

from kvbench.peers.ggml import PAD, Ggml
from kvbench.peers.interface import stated

_WIDTHS = (192, 128)  # the only two different widths of K and V, among those that peers use
_STRONG = 20.0  # below this cap, tokens that nobody attends to get weight


class IkLlama(Ggml):
    formats = stated("f16 0.02, q8_0 0.1, q4_0 0.1")
    # Its fast kernels fail if a window leaves out whole blocks; its slow kernel fails with ALiBi.
    takes = "q_len v_dim sinks softcap v_dtype"
    package = "ik-llama-cpp-python"
    install = "pip install 'kvbench[peers]', or name its libggml.so: --build ik_llama=PATH"
    engine = "libggml*.so"
    asked = "GGML_PREC_DEFAULT, f16 mask"

    @classmethod
    def refuses(cls, dtype, shape):
        if shape.v_dim and (shape.head_dim, shape.v_dim) != _WIDTHS:
            return "if K and V differ in width, it takes only K of 192 and V of 128"
        if shape.sinks and shape.q_len == shape.kv_heads == 1 < shape.group:
            return "with one KV head it counts sinks once for each part of a cache"
        padded = shape.context % PAD or shape.q_len > 1
        if 0 < shape.softcap < _STRONG and padded:
            return "it caps scores after the mask, so padding rows get weight"
        return ""

    def _begin(self):
        """Start its threads: OpenMP's, as many as its backend is told."""

    def _refine(self, out):
        """Ask for no higher precision, as the engine does for most models."""

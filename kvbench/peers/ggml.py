"""ggml's `flash_attn_ext`, called as llama.cpp does: from the library in the wheel of xllamacpp, or
from another build. The number of rows is padded; a mask says which rows are tokens.

Head-major: K and V are tensors of [head_dim, tokens, heads]. Position-major: [head_dim, heads,
tokens], seen permuted.
"""

import ctypes
import math
from contextlib import suppress
from typing import NamedTuple
from weakref import finalize

import numpy as np

from kvbench.peers.interface import Peer, stated

_TYPES = stated("f32 0, f16 1, bf16 30, q8_0 8, q4_0 2")  # enum ggml_type
_QUERY, _MASK = 0, 1  # types of query and mask: GGML_TYPE_F32, GGML_TYPE_F16
_NODES, _LAYER = 8, 1 << 16  # nodes of a graph; bytes of a layer's tensors and graph, not values
PAD = 256  # tokens: both engines round up to a multiple
_QUERIES = 16  # rows of a mask are rounded up to a multiple, for ik_llama.cpp: GGML_KQ_MASK_PAD
_PRECISION = 10  # GGML_PREC_F32, as llama.cpp asks for
_BLOCK, _MOST = 32, 7  # q4_0: elements that share a scale; the largest code
_CPU = (  # features that a build and this CPU may have: ggml_cpu_has_*
    "avx2 avx_vnni avx512 avx512_vbmi avx512_vnni avx512_bf16 amx_int8 fma f16c"
    " neon dotprod fp16_va matmul_int8 sve sme riscv_v vsx vxe"
)


class _Half(NamedTuple):
    """K or V: elements of a row, its type's number, bytes of a row."""

    dtype: str
    dim: int
    kind: int
    row: int


class _Params(ctypes.Structure):
    _fields_ = [
        ("mem_size", ctypes.c_size_t),
        ("mem_buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    ]


_POINTER, _INT, _LONG, _FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_float
_CALLS = {  # return type, argument types
    "ggml_backend_alloc_ctx_tensors": (_POINTER, _POINTER, _POINTER),
    "ggml_backend_buffer_clear": (None, _POINTER, ctypes.c_uint8),
    "ggml_backend_buffer_free": (None, _POINTER),
    "ggml_backend_cpu_init": (_POINTER,),
    "ggml_backend_cpu_set_n_threads": (None, _POINTER, _INT),
    "ggml_backend_graph_compute": (_INT, _POINTER, _POINTER),
    "ggml_blck_size": (_LONG, _INT),
    "ggml_build_forward_expand": (None, _POINTER, _POINTER),
    "ggml_flash_attn_ext": (_POINTER, *[_POINTER] * 5, *[_FLOAT] * 3),
    "ggml_free": (None, _POINTER),
    "ggml_get_data": (_POINTER, _POINTER),
    "ggml_init": (_POINTER, _Params),
    "ggml_new_graph_custom": (_POINTER, _POINTER, ctypes.c_size_t, ctypes.c_bool),
    "ggml_new_tensor_3d": (_POINTER, _POINTER, _INT, _LONG, _LONG, _LONG),
    "ggml_permute": (_POINTER, _POINTER, _POINTER, *[_INT] * 4),
    "ggml_quantize_chunk": (
        ctypes.c_size_t,
        _INT,
        _POINTER,
        _POINTER,
        _LONG,
        _LONG,
        _LONG,
        _POINTER,
    ),
    "ggml_row_size": (ctypes.c_size_t, _INT, _LONG),
}
_OWN = {  # functions that older builds lack or define differently
    "ggml_backend_cpu_set_threadpool": (None, _POINTER, _POINTER),
    "ggml_flash_attn_ext_set_prec": (None, _POINTER, _INT),
    "ggml_threadpool_new": (_POINTER, _POINTER),
    "ggml_threadpool_params_init": (None, _POINTER, _INT),
}
_SINKS = {"ggml_flash_attn_ext_add_sinks": (None, _POINTER, _POINTER)}  # older builds lack it


class Ggml(Peer):
    formats = stated("f32 1e-4, f16 0.1, bf16 0.04, q8_0 0.1, q4_0 0.1")
    layouts = "head position"
    kept = "position"
    takes = "q_len window kept v_dim sinks softcap alibi v_dtype"
    package, install = "xllamacpp", "pip install 'kvbench[peers]', or name its library: --ggml PATH"
    engine = "xllamacpp*.so"  # it contains all of ggml
    function = "ggml_flash_attn_ext"

    def __init__(self, *how):
        super().__init__(*how)
        self._lib = ctypes.CDLL(self.library(self.path))
        self._declare(_CALLS)
        self._backend = self._lib.ggml_backend_cpu_init()
        self._lib.ggml_backend_cpu_set_n_threads(self._backend, self.threads)
        self._begin()

    def _declare(self, calls):
        for name, (result, *taken) in calls.items():
            call = getattr(self._lib, name)
            call.restype, call.argtypes = result, taken

    def setup(self, shape, k, v):
        lib, self._shape = self._lib, shape
        self._halves = [
            self._half(self.dtype, shape.head_dim),
            self._half(shape.v_dtype or self.dtype, shape.width_of_v),
        ]
        self._rows = -(-shape.context // PAD) * PAD
        self._context = lib.ggml_init(_Params((len(k) + 1) * _LAYER, None, True))
        masked = -(-shape.q_len // _QUERIES) * _QUERIES
        mask = self._tensor(_MASK, self._rows, masked, 1)
        sinks = self._tensor(_QUERY, shape.q_heads, 1, 1) if shape.sinks else None
        layers = [self._layer(shape, mask, sinks) for _ in range(len(k))]
        buffer = lib.ggml_backend_alloc_ctx_tensors(self._context, self._backend)
        finalize(self, _free, lib, buffer, self._context)
        lib.ggml_backend_buffer_clear(buffer, 0)
        values = self._array(mask, (masked, self._rows), np.float16)
        values[:, shape.context :] = -np.inf
        # ggml multiplies the mask by its slopes
        far = shape.distances if shape.alibi else 0
        values[: shape.q_len, : shape.context] = shape.mask + np.float32(far)
        if sinks:
            self._array(sinks, shape.q_heads)[:] = shape.sinks
        self._graphs, q, stored, out = zip(*layers, strict=True)
        for half, side, tensors in zip(
            self._halves, (k, v), zip(*stored, strict=True), strict=True
        ):
            for layer, tensor in enumerate(tensors):
                self._fill(tensor, side[layer], half)
        dims = shape.q_heads, shape.q_len, shape.head_dim
        self._q = [self._array(one, dims) for one in q]
        self._out = [self._array(one, shape.answered) for one in out]

    def _half(self, dtype, dim):
        kind = int(_TYPES[dtype])
        if dim % (block := self._lib.ggml_blck_size(kind)):
            raise ValueError(f"{dtype} has blocks of {block}, and rows are of {dim} elements")
        return _Half(dtype, dim, kind, self._lib.ggml_row_size(kind, dim))

    def _layer(self, shape, mask, sinks):
        """Build a layer's graph and tensors: the query, K and V, the output."""
        lib, heads = self._lib, shape.kv_heads
        by_token = self.layout != "head"
        places = (heads, self._rows) if by_token else (self._rows, heads)
        q = self._tensor(_QUERY, shape.head_dim, shape.q_len, shape.q_heads)
        stored = [self._tensor(half.kind, half.dim, *places) for half in self._halves]
        seen = [
            lib.ggml_permute(self._context, each, 0, 2, 1, 3) if by_token else each
            for each in stored
        ]
        how = shape.head_dim**-0.5, shape.alibi, shape.softcap
        out = lib.ggml_flash_attn_ext(self._context, q, *seen, mask, *how)
        self._refine(out)
        if sinks:
            self._declare(_SINKS)
            lib.ggml_flash_attn_ext_add_sinks(out, sinks)
        graph = lib.ggml_new_graph_custom(self._context, _NODES, False)
        lib.ggml_build_forward_expand(graph, out)
        return graph, q, stored, out

    def _tensor(self, kind, *dims):
        return self._lib.ggml_new_tensor_3d(self._context, kind, *dims)

    def _array(self, tensor, dims, kind=np.float32):
        """A tensor's values as an array, in place."""
        space = ctypes.c_char * (math.prod(np.atleast_1d(dims)) * np.dtype(kind).itemsize)
        values = np.frombuffer(space.from_address(self._lib.ggml_get_data(tensor)), kind)
        return values.reshape(dims)

    def _fill(self, tensor, values, half):
        """Store values [kv_heads][tokens][elements] into a tensor."""
        by_token = self.layout != "head"
        values = np.ascontiguousarray(values.transpose(1, 0, 2) if by_token else values, np.float32)
        packs = self._packs(values, half)
        places = (self._rows, values.shape[1]) if by_token else (values.shape[0], self._rows)
        to = self._array(tensor, (*places, half.row), np.uint8)
        to[: packs.shape[0], : packs.shape[1]] = packs

    def _packs(self, values, half):
        """Pack each row as ggml stores it."""
        *places, dim = values.shape
        if half.dtype == "q4_0":
            return packed(values).reshape(*places, -1)
        found = np.empty((*places, half.row), np.uint8)
        facts = values.ctypes.data, found.ctypes.data, 0, math.prod(places), dim, None
        self._lib.ggml_quantize_chunk(half.kind, *facts)
        return found

    def ask(self, q):
        for to, one in zip(self._q, q, strict=True):
            to[:] = self._shape.by_head(one).reshape(to.shape)

    def step(self, layer):
        if self._lib.ggml_backend_graph_compute(self._backend, self._graphs[layer]):
            raise RuntimeError("ggml_backend_graph_compute failed")

    def output(self, layer):
        return self._out[layer]

    def bytes(self):
        return self._shape.kv_heads * self._shape.context * sum(half.row for half in self._halves)

    def flags(self):
        return f"{self.asked}; {' '.join(filter(self._has, _CPU.split()))}"

    def _has(self, word):
        with suppress(AttributeError):  # older builds, or builds for another CPU, lack it
            return getattr(self._lib, f"ggml_cpu_has_{word}")()

    # ---- what a relative of it does in its own way -----------------------------------------------

    asked = "GGML_PREC_F32, f16 mask"

    def _begin(self):
        self._declare(_OWN)
        params = ctypes.create_string_buffer(4096)
        self._lib.ggml_threadpool_params_init(params, self.threads)
        pool = self._lib.ggml_threadpool_new(params)
        self._lib.ggml_backend_cpu_set_threadpool(self._backend, pool)

    def _refine(self, out):
        self._lib.ggml_flash_attn_ext_set_prec(out, _PRECISION)


def _free(lib, buffer, context):
    """Free a layer's memory: ik_llama.cpp has room for only 64 contexts at a time."""
    lib.ggml_backend_buffer_free(buffer)
    lib.ggml_free(context)


def packed(values):
    """q4_0 as [blocks][bytes]: a scale, then two codes a byte. Uses our cache's codes, at most 7 in
    each block. ggml's own quantizer uses 8 and would round all values again.
    """
    blocks = values.reshape(-1, _BLOCK)
    scale = (np.abs(blocks).max(axis=1, keepdims=True) / _MOST).astype(np.float16)
    codes = np.rint(blocks / np.where(scale == 0, 1, scale)).astype(np.int8) + np.int8(8)
    low, high = np.split(codes.view(np.uint8), 2, axis=1)
    return np.hstack([scale.view(np.uint8), low | high << 4])

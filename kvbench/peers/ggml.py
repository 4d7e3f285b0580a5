"""ggml's `flash_attn_ext`, as llama.cpp calls it: from the library in the wheel of xllamacpp, or
another of its builds.

Head-major: K and V are tensors of [head_dim, tokens, heads]. Position-major: [head_dim, heads,
tokens], seen permuted.
"""

import ctypes
from importlib import metadata

import numpy as np

from kvbench.peers.interface import Peer, stated

_TYPES = stated("f32 0, f16 1, bf16 30, q8_0 8")  # enum ggml_type
_NODES, _PLAN = 8, 1 << 16  # of a graph; bytes beside the tensors' own, at most
_PRECISION = 10  # GGML_PREC_F32, which llama.cpp asks for


class _Params(ctypes.Structure):
    _fields_ = [
        ("mem_size", ctypes.c_size_t),
        ("mem_buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    ]


_POINTER, _INT, _LONG, _FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_float
_CALLS = {  # what they return, and what they take
    "ggml_backend_cpu_init": (_POINTER,),
    "ggml_backend_cpu_set_n_threads": (None, _POINTER, _INT),
    "ggml_backend_cpu_set_threadpool": (None, _POINTER, _POINTER),
    "ggml_backend_graph_compute": (_INT, _POINTER, _POINTER),
    "ggml_build_forward_expand": (None, _POINTER, _POINTER),
    "ggml_flash_attn_ext": (_POINTER, *[_POINTER] * 5, *[_FLOAT] * 3),
    "ggml_flash_attn_ext_set_prec": (None, _POINTER, _INT),
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
    "ggml_threadpool_new": (_POINTER, _POINTER),
    "ggml_threadpool_params_init": (None, _POINTER, _INT),
}


class Ggml(Peer):
    formats = stated("f32 1e-4, f16 0.1, bf16 0.02, q8_0 0.1")
    layouts = "head position"
    kept = "position"
    package, install = "xllamacpp", "pip install 'kvbench[peers]', or name its library: --ggml PATH"

    def __init__(self, *how):
        super().__init__(*how)
        self._lib = ctypes.CDLL(self.path or _wheel())
        for name, (result, *taken) in _CALLS.items():
            call = getattr(self._lib, name)
            call.restype, call.argtypes = result, taken
        self._backend = self._lib.ggml_backend_cpu_init()
        params = ctypes.create_string_buffer(4096)
        self._lib.ggml_threadpool_params_init(params, self.threads)
        self._lib.ggml_backend_cpu_set_n_threads(self._backend, self.threads)
        self._lib.ggml_backend_cpu_set_threadpool(
            self._backend, self._lib.ggml_threadpool_new(params)
        )

    def setup(self, shape, k, v):
        lib, self._type = self._lib, int(_TYPES[self.dtype])
        rows = shape.kv_heads * shape.context
        self._bytes = 2 * rows * lib.ggml_row_size(self._type, shape.head_dim)
        ends = 8 * shape.q_heads * shape.head_dim
        params = _Params(len(k) * (self._bytes + ends + _PLAN), None, False)
        self._context, self._dims = lib.ggml_init(params), (shape.q_heads, shape.head_dim)
        self._graphs, self._q, self._out = [], [], []
        for layer in range(len(k)):
            q = lib.ggml_new_tensor_3d(self._context, 0, shape.head_dim, 1, shape.q_heads)
            stored = [self._stored(shape, side[layer]) for side in (k, v)]
            facts = (None, shape.head_dim**-0.5, 0.0, 0.0)
            out = lib.ggml_flash_attn_ext(self._context, q, *stored, *facts)
            lib.ggml_flash_attn_ext_set_prec(out, _PRECISION)
            graph = lib.ggml_new_graph_custom(self._context, _NODES, False)
            lib.ggml_build_forward_expand(graph, out)
            self._graphs.append(graph)
            self._q.append(self._array(q))
            self._out.append(self._array(out))

    def _stored(self, shape, rows):
        lib, (heads, tokens, dim) = self._lib, rows.shape
        by_token = self.layout != "head"
        places = (dim, heads, tokens) if by_token else (dim, tokens, heads)
        found = lib.ggml_new_tensor_3d(self._context, self._type, *places)
        rows = np.ascontiguousarray(rows.transpose(1, 0, 2) if by_token else rows, dtype=np.float32)
        lib.ggml_quantize_chunk(
            self._type, rows.ctypes.data, lib.ggml_get_data(found), 0, heads * tokens, dim, None
        )
        return lib.ggml_permute(self._context, found, 0, 2, 1, 3) if by_token else found

    def _array(self, tensor):
        """Its float32 values where they lie."""
        count = self._dims[0] * self._dims[1]
        kind = ctypes.c_float * count
        return np.frombuffer(
            kind.from_address(self._lib.ggml_get_data(tensor)), np.float32
        ).reshape(self._dims)

    def ask(self, q):
        for to, one in zip(self._q, q, strict=True):
            to[:] = one

    def step(self, layer):
        if self._lib.ggml_backend_graph_compute(self._backend, self._graphs[layer]):
            raise RuntimeError("ggml_backend_graph_compute failed")

    def output(self, layer):
        return self._out[layer]

    def bytes(self):
        return self._bytes


def _wheel() -> str:
    """A library of Python's that has all of ggml in it."""
    files = metadata.files(Ggml.package) or ()
    return next(
        str(file.locate())
        for file in files
        if file.name.startswith("xllamacpp") and file.suffix == ".so"
    )

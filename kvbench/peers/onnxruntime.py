"""ONNX Runtime's GroupQueryAttention, past and present in one buffer: a step stores the last tokens
again in place, one for each query.
"""

import struct
from typing import Any

import numpy as np

from kvbench.peers.interface import Peer, stated

_WIDE = stated("f32 1, f16 10")  # TensorProto.DataType
_INT32 = 6


class OnnxRuntime(Peer):
    formats = stated("f32 1e-4, f16 0.05")
    package, install = "onnxruntime", "pip install 'kvbench[peers]'"
    sealed = True
    takes = "q_len window sinks softcap"
    function = "com.microsoft.GroupQueryAttention"

    def setup(self, shape, k, v):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.enable_cpu_mem_arena = False
        self._type = np.dtype(f"f{int(self.dtype[1:]) // 8}")
        model = _model(shape, int(_WIDE[self.dtype]))
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._value, self._shape = onnxruntime.OrtValue.ortvalue_from_numpy, shape
        self._q, self._out = [], []
        self._held: list[Any] = []
        ends = [np.array([tokens], np.int32) for tokens in (shape.context - 1, shape.context)]
        sinks = [np.array(shape.sinks, self._type)] if shape.sinks else []
        shared = [*map(self._value, ends), *map(self._value, sinks)]
        stored = ((side[layer] for side in (k, v)) for layer in range(len(k)))
        self._layers = [
            self._bound([rows[None].astype(self._type) for rows in past], shared) for past in stored
        ]
        self._bytes = sum(each.nbytes for each in self._held[0][0])

    def _bound(self, past, shared):
        """Bind a layer's inputs and outputs. shared: inputs of all layers."""
        queries, value = self._shape.q_len, self._value
        newest = [each[:, :, -queries:].transpose(0, 2, 1, 3) for each in past]
        last = [np.ascontiguousarray(each).reshape(1, queries, -1) for each in newest]
        dims = 1, queries, self._shape.q_heads * self._shape.head_dim
        ends = [np.zeros(dims, self._type) for _ in range(2)]
        stored, (q, out), new = [[value(each) for each in side] for side in (past, ends, last)]
        binding, given = self._session.io_binding(), [q, *new, *stored, *shared]
        for name, each in zip(filter(None, _inputs(self._shape)), given, strict=True):
            binding.bind_ortvalue_input(name, each)
        for name, each in zip(_OUTPUTS, [out, *stored], strict=True):
            binding.bind_ortvalue_output(name, each)
        self._q.append(ends[0])
        self._out.append(ends[1])
        self._held.append((past, last, stored, new, q, out, shared))
        return binding

    def ask(self, q):
        for to, one in zip(self._q, q, strict=True):
            to[:] = one.reshape(to.shape)

    def step(self, layer):
        self._session.run_with_iobinding(self._layers[layer])

    def output(self, layer):
        return self._out[layer].reshape(self._shape.asked)

    def bytes(self):
        return self._bytes

    def flags(self):
        own = self._session.get_session_options()
        threads = f"intra_op_num_threads={own.intra_op_num_threads}"
        return f"{' '.join(self._session.get_providers())}, {threads}, past and present shared"


# ---- a model of one node, as ONNX writes it: no other package is needed for that -----------------

_INPUTS = ("query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length")
_SINKS = ("", "", "", "", "head_sink")  # optional inputs between these and the sinks are left empty
_OUTPUTS = ("output", "present_key", "present_value")
_FLOAT, _WHOLE = 1, 2  # AttributeProto.AttributeType


def _inputs(shape):
    return (*_INPUTS, *(_SINKS if shape.sinks else ()))


def _model(shape, kind):
    own = [1, shape.q_len, shape.q_heads * shape.head_dim]
    new = [1, shape.q_len, shape.kv_heads * shape.head_dim]
    past = [1, shape.kv_heads, shape.context, shape.head_dim]
    dims = [
        (kind, own),
        (kind, new),
        (kind, new),
        (kind, past),
        (kind, past),
        (_INT32, [1]),
        (_INT32, [1]),
        *([(kind, [shape.q_heads])] if shape.sinks else []),
    ]
    facts = {"num_heads": shape.q_heads, "kv_num_heads": shape.kv_heads}
    facts |= {"local_window_size": shape.window} if shape.window else {}
    attributes = [_pack((1, name), (3, value), (20, _WHOLE)) for name, value in facts.items()]
    if shape.softcap:
        attributes.append(_pack((1, "softcap"), (2, float(shape.softcap)), (20, _FLOAT)))
    node = _pack(
        *((1, name) for name in _inputs(shape)),
        *((2, name) for name in _OUTPUTS),
        (4, "GroupQueryAttention"),
        *((5, each) for each in attributes),
        (7, "com.microsoft"),
    )
    named = zip(filter(None, _inputs(shape)), dims, strict=True)
    inputs = [(11, _tensor(name, *each)) for name, each in named]
    outputs = [
        (12, _tensor(name, kind, each))
        for name, each in zip(_OUTPUTS, [own, past, past], strict=True)
    ]
    graph = _pack((1, node), (2, "decode"), *inputs, *outputs)
    versions = [
        (8, _pack((1, domain), (2, number))) for domain, number in (("", 17), ("com.microsoft", 1))
    ]
    return _pack((1, 8), (7, graph), *versions)


def _tensor(name, kind, dims):
    shape = _pack(*((1, _pack((1, each))) for each in dims))
    return _pack((1, name), (2, _pack((1, _pack((1, kind), (2, shape))))))


def _pack(*fields):
    """A message of Protocol Buffers: numbers, texts and messages by field number."""
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += _varint(number << 3) + _varint(value)
        elif isinstance(value, float):
            found += _varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += _varint(number << 3 | 2) + _varint(len(data)) + data
    return found


def _varint(value):
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])

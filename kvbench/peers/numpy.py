"""Textbook attention in NumPy: two products and a softmax, in float32."""

import numpy as np

from kvbench.peers.interface import Peer, stated


class NumPy(Peer):
    formats = stated("f32 1e-4")
    package = "numpy"
    sealed = True
    takes = "q_len window kept v_dim sinks softcap alibi"
    function = "numpy.matmul"

    def setup(self, shape, k, v):
        self._shape = shape
        self._layers = [(np.array(k[layer]), np.array(v[layer])) for layer in range(len(k))]
        self._bias = shape.bias if shape.is_masked or shape.alibi else None
        rows = shape.kv_heads, shape.group * shape.q_len, 1
        sinks = np.repeat(np.array(shape.sinks, np.float32), shape.q_len)
        self._sinks = sinks.reshape(rows) if shape.sinks else None
        self._scale = np.float32(shape.head_dim**-0.5)

    def ask(self, q):
        self._q = [self._shape.by_head(one) * self._scale for one in q]

    def step(self, layer):
        (k, v), shape = self._layers[layer], self._shape
        weights = self._q[layer] @ k.transpose(0, 2, 1)
        if cap := shape.softcap:
            weights /= cap
            np.tanh(weights, out=weights)
            weights *= cap
        if self._bias is not None:
            own = weights.reshape(shape.q_heads, shape.q_len, -1)
            own += self._bias
        most = weights.max(axis=2, keepdims=True)
        if self._sinks is not None:
            most = np.maximum(most, self._sinks)
        weights -= most
        np.exp(weights, out=weights)
        total = weights.sum(axis=2, keepdims=True)
        if self._sinks is not None:
            total += np.exp(self._sinks - most)
        self._out = weights @ v / total

    def output(self, layer):
        return self._shape.by_query(self._out)

    def flags(self):
        found = np.show_config(mode="dicts")
        blas = found["Build Dependencies"]["blas"]
        simd = found["SIMD Extensions"].get("found", ())
        return f"{blas['name']} {blas['version']}; {' '.join(simd)}"

"""NumPy as the textbook has it: two products and a softmax, in float32."""

import numpy as np

from kvbench.peers.interface import Peer, stated


class NumPy(Peer):
    formats = stated("f32 1e-4")
    package = "numpy"
    sealed = several = True
    function = "numpy.matmul"

    def setup(self, shape, k, v):
        self._shape = shape
        self._layers = [(np.array(k[layer]), np.array(v[layer])) for layer in range(len(k))]
        self._mask = shape.mask
        self._scale = np.float32(shape.head_dim**-0.5)

    def ask(self, q):
        self._q = [self._shape.by_head(one) * self._scale for one in q]

    def step(self, layer):
        k, v = self._layers[layer]
        weights = self._q[layer] @ k.transpose(0, 2, 1)
        if (queries := self._shape.q_len) > 1:
            newest = weights.reshape(len(k), -1, queries, k.shape[1])[..., -queries:]
            newest += self._mask
        weights -= weights.max(axis=2, keepdims=True)
        np.exp(weights, out=weights)
        self._out = weights @ v / weights.sum(axis=2, keepdims=True)

    def output(self, layer):
        return self._shape.by_query(self._out)

    def flags(self):
        found = np.show_config(mode="dicts")
        blas = found["Build Dependencies"]["blas"]
        simd = found["SIMD Extensions"].get("found", ())
        return f"{blas['name']} {blas['version']}; {' '.join(simd)}"

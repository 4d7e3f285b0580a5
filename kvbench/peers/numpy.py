"""NumPy as the textbook has it: two products and a softmax, in float32."""

import numpy as np

from kvbench.peers.interface import Peer, stated


class NumPy(Peer):
    formats = stated("f32 1e-4")
    package = "numpy"
    sealed = True
    function = "numpy.matmul"

    def setup(self, shape, k, v):
        self._dims = (shape.kv_heads, shape.group, shape.head_dim)
        self._layers = [(np.array(k[layer]), np.array(v[layer])) for layer in range(len(k))]
        self._scale = np.float32(shape.head_dim**-0.5)

    def ask(self, q):
        self._q = [one.reshape(self._dims) * self._scale for one in q]

    def step(self, layer):
        k, v = self._layers[layer]
        weights = self._q[layer] @ k.transpose(0, 2, 1)
        weights -= weights.max(axis=2, keepdims=True)
        np.exp(weights, out=weights)
        self._out = weights @ v / weights.sum(axis=2, keepdims=True)

    def output(self, layer):
        return self._out.reshape(-1, self._dims[2])

    def flags(self):
        found = np.show_config(mode="dicts")
        blas = found["Build Dependencies"]["blas"]
        simd = found["SIMD Extensions"].get("found", ())
        return f"{blas['name']} {blas['version']}; {' '.join(simd)}"

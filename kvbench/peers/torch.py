"""PyTorch: its scaled dot product attention, and two batched products with a softmax between
them.
"""

import numpy as np

from kvbench.peers.interface import Peer, stated


class Sdpa(Peer):
    formats = stated("f32 1e-4, f16 0.05, bf16 0.1")
    engine = "libtorch_cpu.so"
    package, install = "torch", "pip install 'kvbench[torch]'"
    sealed = True
    function = "torch.nn.functional.scaled_dot_product_attention"

    def setup(self, shape, k, v):
        import torch

        torch.set_num_threads(self.threads)
        torch.set_grad_enabled(False)
        self._torch, self._shape = torch, shape
        self._kind = getattr(torch, self.dtype.replace("f", "float"))
        self._layers = [
            tuple(self._tensor(side[layer])[None] for side in (k, v)) for layer in range(len(k))
        ]

    def _tensor(self, values):
        return self._torch.from_numpy(np.ascontiguousarray(values)).to(self._kind)

    def ask(self, q):
        self._q = [self._tensor(one)[None, :, None] for one in q]

    def step(self, layer):
        attend = self._torch.nn.functional.scaled_dot_product_attention
        self._out = attend(self._q[layer], *self._layers[layer], enable_gqa=self._shape.group > 1)

    def output(self, layer):
        return self._out.float().numpy().reshape(self._shape.q_heads, self._shape.head_dim)

    def flags(self):
        torch = self._torch
        own = [name for name in ("mkl", "mkldnn") if getattr(torch.backends, name).is_available()]
        return f"{' '.join(own)}; {torch.backends.cpu.get_cpu_capability()}"


class Bmm(Sdpa):
    function = "torch.bmm"

    def ask(self, q):
        shape = self._shape
        self._q = [
            self._tensor(one.reshape(shape.kv_heads, shape.group, -1) * shape.head_dim**-0.5)
            for one in q
        ]

    def step(self, layer):
        torch, ((k,), (v,)) = self._torch, self._layers[layer]
        weights = torch.softmax(torch.bmm(self._q[layer], k.transpose(1, 2)), dim=2)
        self._out = torch.bmm(weights, v)

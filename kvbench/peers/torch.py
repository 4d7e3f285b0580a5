"""PyTorch: its scaled dot product attention, and two batched products with a softmax between
them.
"""

import numpy as np

from kvbench.peers.interface import Peer, stated


class Sdpa(Peer):
    formats = stated("f32 1e-4, f16 0.05, bf16 0.1")
    engine = "libtorch_cpu.so"
    package, install = "torch", "pip install 'kvbench[torch]'"
    sealed = several = True
    function = "torch.nn.functional.scaled_dot_product_attention"

    def setup(self, shape, k, v):
        import torch

        torch.set_num_threads(self.threads)
        torch.set_grad_enabled(False)
        self._torch, self._shape = torch, shape
        self._mask = None
        if shape.q_len > 1:  # of True and False: all tokens but some of the newest
            self._mask = torch.ones(shape.q_len, shape.context, dtype=torch.bool)
            self._mask.tril_(shape.context - shape.q_len)
        self._kind = getattr(torch, self.dtype.replace("f", "float"))
        self._layers = [
            tuple(self._tensor(side[layer])[None] for side in (k, v)) for layer in range(len(k))
        ]

    def _tensor(self, values):
        return self._torch.from_numpy(np.ascontiguousarray(values)).to(self._kind)

    def ask(self, q):
        shape = self._shape
        dims = shape.q_heads, shape.q_len, shape.head_dim
        self._q = [self._tensor(shape.by_head(one).reshape(dims))[None] for one in q]

    def step(self, layer):
        attend = self._torch.nn.functional.scaled_dot_product_attention
        how = {"attn_mask": self._mask, "enable_gqa": self._shape.group > 1}
        self._out = attend(self._q[layer], *self._layers[layer], **how)

    def output(self, layer):
        return self._shape.by_query(self._out.float().numpy())

    def flags(self):
        torch = self._torch
        own = [name for name in ("mkl", "mkldnn") if getattr(torch.backends, name).is_available()]
        return f"{' '.join(own)}; {torch.backends.cpu.get_cpu_capability()}"


class Bmm(Sdpa):
    function = "torch.bmm"

    def ask(self, q):
        shape = self._shape
        self._q = [self._tensor(shape.by_head(one) * shape.head_dim**-0.5) for one in q]
        self._newest = self._tensor(shape.mask)

    def step(self, layer):
        torch, ((k,), (v,)) = self._torch, self._layers[layer]
        scores, queries = torch.bmm(self._q[layer], k.transpose(1, 2)), self._shape.q_len
        if queries > 1:
            scores.view(len(k), -1, queries, k.shape[1])[..., -queries:] += self._newest
        self._out = torch.bmm(torch.softmax(scores, dim=2), v)

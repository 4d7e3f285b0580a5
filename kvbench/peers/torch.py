"""PyTorch: its scaled dot product attention, and two batched products with a softmax between
them.
"""

import numpy as np

from kvbench.peers.interface import Peer, stated


class Sdpa(Peer):
    """Scaled dot product attention. A sink is one more key with a value of zeros; the mask adds its
    score.
    """

    formats = stated("f32 1e-4, f16 0.05, bf16 0.1")
    engine = "libtorch_cpu.so"
    package, install = "torch", "pip install 'kvbench[torch]'"
    sealed = True
    takes = "q_len window kept v_dim sinks alibi"
    function = "torch.nn.functional.scaled_dot_product_attention"

    def setup(self, shape, k, v):
        import torch

        torch.set_num_threads(self.threads)
        torch.set_grad_enabled(False)
        self._torch, self._shape = torch, shape
        self._kind = getattr(torch, self.dtype.replace("f", "float"))
        self._layers = [
            tuple(self._stored(side[layer]) for side in (k, v)) for layer in range(len(k))
        ]
        self._prepare()

    def _stored(self, rows):
        more = int(bool(self._shape.sinks))
        return self._tensor(np.pad(rows, ((0, 0), (0, more), (0, 0))))[None]

    def _prepare(self):
        torch, shape = self._torch, self._shape
        self._mask = None
        if shape.sinks or shape.alibi:
            dims = shape.q_heads, shape.q_len
            sinks = np.array(shape.sinks, np.float32).reshape(-1, 1, 1)
            parts = [np.broadcast_to(shape.bias, (*dims, shape.context))]
            parts += [np.broadcast_to(sinks, (*dims, 1))] if shape.sinks else []
            self._mask = torch.from_numpy(np.concatenate(parts, axis=2))[None]
        elif shape.is_masked:  # a boolean mask
            self._mask = torch.from_numpy(shape.seen)

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

    def bytes(self):
        shape, size = self._shape, self._layers[0][0].element_size()
        return shape.kv_heads * shape.context * (shape.head_dim + shape.width_of_v) * size

    def flags(self):
        torch = self._torch
        own = [name for name in ("mkl", "mkldnn") if getattr(torch.backends, name).is_available()]
        return f"{' '.join(own)}; {torch.backends.cpu.get_cpu_capability()}"


class Bmm(Sdpa):
    """Two batched products. A sink is one more score, whose weight is dropped."""

    takes = f"{Sdpa.takes} softcap"
    function = "torch.bmm"

    def _stored(self, rows):
        return self._tensor(rows)

    def _prepare(self):
        shape = self._shape
        self._bias = self._tensor(shape.bias) if shape.is_masked or shape.alibi else None
        sinks = np.repeat(np.array(shape.sinks, np.float32), shape.q_len)
        self._sinks = self._tensor(sinks.reshape(shape.kv_heads, -1, 1)) if shape.sinks else None

    def ask(self, q):
        shape = self._shape
        self._q = [self._tensor(shape.by_head(one) * shape.head_dim**-0.5) for one in q]

    def step(self, layer):
        torch, (k, v), shape = self._torch, self._layers[layer], self._shape
        scores = torch.bmm(self._q[layer], k.transpose(1, 2))
        if cap := shape.softcap:
            scores.div_(cap).tanh_().mul_(cap)
        if self._bias is not None:
            scores.view(shape.q_heads, shape.q_len, shape.context).add_(self._bias)
        if self._sinks is not None:
            scores = torch.cat([scores, self._sinks], dim=2)
        weights = torch.softmax(scores, dim=2)
        self._out = torch.bmm(weights[..., : shape.context], v)

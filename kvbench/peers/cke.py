"""The C-Kernel-Engine's decode attention over a head-major cache: its flash kernel for f32, its
kernel for such a cache for f16. PATH: its library, or a folder that holds one.
"""

import ctypes
from pathlib import Path

import numpy as np

from kvbench.peers.interface import Peer, stated

_FLASH = "attention_forward_decode_head_major_gqa_flash"


class Cke(Peer):
    formats = stated("f32 2e-3, f16 0.02")
    install = "--cke PATH: its library, or a folder that holds one"
    function = _FLASH

    @classmethod
    def lacks(cls, path):
        if not path:
            return f"not named: {cls.install}"
        return "" if _library(path) else f"{path} has no library"

    @classmethod
    def library(cls, path):
        return str(_library(path) or "") if path else ""

    def setup(self, shape, k, v):
        kind = np.dtype(f"f{int(self.dtype[1:]) // 8}")
        self._name = _FLASH if kind.itemsize == 4 else f"{_FLASH}_f16cache"
        self._call = getattr(ctypes.CDLL(str(_library(self.path))), self._name)
        self._call.argtypes, self._call.restype = [ctypes.c_void_p] * 4 + [ctypes.c_int] * 6, None
        self._layers = [
            [np.ascontiguousarray(side[layer].astype(kind)) for side in (k, v)]
            for layer in range(len(k))
        ]
        self._sizes = (
            shape.q_heads,
            shape.kv_heads,
            shape.context,
            shape.context,
            shape.head_dim,
            shape.head_dim,
        )
        self._out = np.zeros((shape.q_heads, shape.head_dim), np.float32)

    def ask(self, q):
        self._q = np.ascontiguousarray(q)
        ends = [one.ctypes.data for one in self._q]
        places = [[each.ctypes.data for each in own] for own in self._layers]
        self._takes = [
            (q, *kv, self._out.ctypes.data, *self._sizes)
            for q, kv in zip(ends, places, strict=True)
        ]

    def step(self, layer):
        self._call(*self._takes[layer])

    def output(self, layer):
        return self._out

    def flags(self):
        return self._name


def _library(path):
    found = Path(path)
    return found if found.is_file() else next(iter(sorted(found.rglob("lib*.so"))), None)

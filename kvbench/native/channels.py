"""Scales of K by channel, which an element of all rows of a KV head shares: float32 [kv_heads,
head_dim]. They are given when a cache is made, and kept for rows that come later.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kvbench.native.arguments import floats
from kvbench.native.declared import Struct
from kvbench.native.library import Library

_MOST = np.float32(127)  # the largest code
_FAR = np.float32(8)  # standard deviations: no number of as many rows as fit memory is larger
# of structs, which do not keep what they point to
_kept: WeakKeyDictionary[Struct, np.ndarray] = WeakKeyDictionary()


def channel_of(k: Any, room: float = 1.0) -> np.ndarray:
    """From rows of K, [batch, tokens, kv_heads, head_dim]: `room` times the largest magnitude of a
    channel becomes the largest code. What later rows have beyond that is cut: 1.5 lets few of them
    be, for half as many steps more.
    """
    most = np.abs(floats("k", k, ("B", "T", "H", "D"))).max(axis=(0, 1)) * np.float32(room) / _MOST
    return np.where(most > 0, most, np.float32(1))


def usual_channel(kv_heads: int, head_dim: int) -> np.ndarray:
    """For rows of normal numbers, so that none is cut: neighbours differ."""
    steps = np.arange(kv_heads * head_dim, dtype=np.float32) % 17
    return (_FAR / _MOST * (1 + steps / 32)).reshape(kv_heads, head_dim)


def times_channel(q: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """Queries [.., q_heads, head_dim] of rows that are codes: each times the scales of its KV
    head.
    """
    return q * np.repeat(channel, q.shape[-2] // len(channel), axis=0)


def set_channel(library: Library, cache: Struct, asked: Any) -> None:
    """For a planned `kvb_cache *`. True: any scales, of a cache whose size alone is wanted."""
    shape = cache.kv_heads, cache.head_dim
    own = np.ones(shape, np.float32) if asked is True else floats("channel", asked, shape)
    _kept[cache] = own = own.copy()
    own.setflags(write=False)
    cache.k.channel = library.ffi.from_buffer("float[]", own)


def channel_kept(cache: Struct) -> np.ndarray | None:
    """The scales of a `kvb_cache *`; None where it has none."""
    return _kept.get(cache)

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
# of structs, which do not keep what they point to
_kept: WeakKeyDictionary[Struct, np.ndarray] = WeakKeyDictionary()


def channel_of(k: Any) -> np.ndarray:
    """From rows of K that are as large as others will be, [batch, tokens, kv_heads, head_dim]: the
    largest magnitude of a channel becomes the largest code.
    """
    most = np.abs(floats("k", k, ("B", "T", "H", "D"))).max(axis=(0, 1)) / _MOST
    return np.where(most > 0, most, np.float32(1))


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
    cache.k.channel = library.ffi.from_buffer("float[]", own)


def channel_kept(cache: Struct) -> np.ndarray | None:
    """The scales of a `kvb_cache *`; None where it has none."""
    return _kept.get(cache)

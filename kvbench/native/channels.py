"""Scales of K by channel, float32 [kv_heads, head_dim]: one scale for each element, shared by all
rows of a KV head. They are given when a cache is made, and hold for later rows too.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kvbench.native.arguments import floats
from kvbench.native.declared import Struct
from kvbench.native.library import Library

_MOST = np.float32(127)  # the largest i8 code
_FAR = np.float32(8)  # standard deviations: of as many normal numbers as fit memory, none is larger
# Arrays by struct: a struct does not keep alive what it points to.
_kept: WeakKeyDictionary[Struct, np.ndarray] = WeakKeyDictionary()


def channel_of(k: Any, room: float = 1.0) -> np.ndarray:
    """Compute scales from rows of K, [batch, tokens, kv_heads, head_dim]: `room` times the largest
    magnitude of a channel becomes the largest code. Larger values of later rows are cut off. room =
    1.5 cuts few, with steps half as large again.
    """
    most = np.abs(floats("k", k, ("B", "T", "H", "D"))).max(axis=(0, 1)) * np.float32(room) / _MOST
    return np.where(most > 0, most, np.float32(1))


def usual_channel(kv_heads: int, head_dim: int) -> np.ndarray:
    """Scales for rows of normal numbers, large enough that no value is cut off. Neighbouring scales
    differ.
    """
    steps = np.arange(kv_heads * head_dim, dtype=np.float32) % 17
    return (_FAR / _MOST * (1 + steps / 32)).reshape(kv_heads, head_dim)


def times_channel(q: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """Multiply queries [.., q_heads, head_dim] by the scales of their KV head, for rows of K that
    are codes.
    """
    return q * np.repeat(channel, q.shape[-2] // len(channel), axis=0)


def set_channel(library: Library, cache: Struct, asked: Any) -> None:
    """Give a planned `kvb_cache *` its scales. True: any scales, if only the cache's size
    matters.
    """
    shape = cache.kv_heads, cache.head_dim
    own = np.ones(shape, np.float32) if asked is True else floats("channel", asked, shape)
    _kept[cache] = own = own.copy()
    own.setflags(write=False)
    cache.k.channel = library.ffi.from_buffer("float[]", own)


def channel_kept(cache: Struct) -> np.ndarray | None:
    """The scales of a `kvb_cache *`, or None."""
    return _kept.get(cache)

"""Compute a cache's strides and sizes before it has memory."""

from typing import Any

from kvbench.errors import BadArgument
from kvbench.native.arguments import instance, place, positive, whole
from kvbench.native.channels import set_channel
from kvbench.native.declared import Struct
from kvbench.native.library import Library, default_library

_INT64_MAX = (1 << 63) - 1


def planned(
    kv_heads: int,
    head_dim: int,
    capacity: int,
    *,
    batch: int = 1,
    layout: str = "head",
    dtype: str = "f32",
    window: int | None = None,
    kept: int = 0,
    block_tokens: int = 16,
    inner: str = "head",
    v_dim: int | None = None,
    scale: str = "f32",
    ring: bool | None = None,
    pad: int | None = None,
    blocks: int | None = None,
    tensor: Any = None,
    channel: Any = None,
    library: Library | None = None,
) -> Struct:
    """The `kvb_cache *` of a Cache with these arguments, with strides and sizes but without memory.
    channel: the scales of K, or True for any.
    """
    library = library_or_default(library)
    cache = library.ffi.new("kvb_cache *")
    counts = dict(
        kv_heads=kv_heads,
        head_dim=head_dim,
        capacity=capacity,
        batch=batch,
        block_tokens=block_tokens,
        pad=library.lib.kvb_cache_pad() if pad is None else pad,
    )
    if v_dim is not None:
        counts["v_dim"] = v_dim
    for name, word in {"layout": layout, "inner": inner}.items():
        setattr(cache, name, library.number(name, word))
    for name, count in counts.items():
        setattr(cache, name, whole(name, count))
    for plane, own in zip((cache.k, cache.v), library.halves(dtype), strict=True):
        plane.dtype, plane.scale = library.number("dtype", own), library.number("scale", scale)
    if tensor is not None:
        cache.k.tensor, cache.v.tensor = positive("tensor", tensor, 2)
    _refuse_less_than_one(window=window, v_dim=v_dim)
    if place("kept", kept) and window is None:
        raise BadArgument(f"kept is {kept}, but no window is given", "give window too")
    fits = window is not None and window <= cache.capacity and not kept
    cache.ring = fits if ring is None else bool(ring)
    needed = cache.batch * -(-cache.capacity // max(cache.block_tokens, 1))
    cache.blocks = whole("blocks", max(0, min(needed, _INT64_MAX)) if blocks is None else blocks)
    library.check(library.lib.kvb_cache_plan(cache))
    if channel is not None:
        set_channel(library, cache, channel)
        library.check(library.lib.kvb_cache_plan(cache))
    return cache


def library_or_default(asked: Library | None) -> Library:
    return default_library() if asked is None else instance("library", asked, Library)


def _refuse_less_than_one(window: int | None, v_dim: int | None) -> None:
    """Refuse 0 and less for an argument whose 0 means "left out" in C."""
    for name, count, other in (("window", window, "all tokens"), ("v_dim", v_dim, "head_dim")):
        if count is not None and whole(name, count) < 1:
            raise BadArgument(f"{name} is {count}", f"at least 1, or None for {other}")

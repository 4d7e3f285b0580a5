"""What the library takes for a cache, byte for byte, and what each byte is there for."""

from collections import Counter
from dataclasses import replace
from typing import Any

from kvbench.model import Machine
from kvbench.model.size import Allocated, Blocks, Decoder, Layers
from kvbench.native import LANES, Cache, default_library
from kvbench.sizing.decoder import parts, row, token_bytes

_BASE = 4096  # where the machine does not say
_ENTRY = 8  # bytes of an entry of the processor's page tables; a table fills a base page, and maps a huge one
_SPARED = 32 << 20  # larger huge pages are not filled up for less than one
_NUMBER = 4  # bytes of a block's number in a page table
_PADDING = ("row_padding", "head_padding", "line_rounding")


def allocated(decoder: Decoder, machine: Machine) -> Allocated:
    """All layers in one block of memory, on transparent huge pages."""
    found: Counter[str] = Counter()
    for layers in parts(decoder):
        for name, count in _of_layer(decoder, layers).items():
            found[name] += layers.count * count
    total = found.total()
    page = _huge_page(machine)
    mapped = -(-total // page) * page
    names = ("rows", "scales", "unused", "block_rounding", *_PADDING)
    return Allocated(*(found[name] for name in names), total, mapped - total, mapped, page)


def layer_bytes(decoder: Decoder, layers: Layers) -> int:
    """As the library says."""
    return _plan(decoder, layers.capacity).bytes


def layer_padding(decoder: Decoder, layers: Layers) -> int:
    """Bytes of it in which no row can lie."""
    found = _of_layer(decoder, layers)
    return sum(found[name] for name in _PADDING)


def block_bytes(decoder: Decoder) -> tuple[int, int]:
    """Bytes of a block in one layer, even where the decoder has none; and how many of them are padding."""
    layouts = (decoder.layout, *default_library().words("layout"))
    pooled = replace(decoder, layout=next(layout for layout in layouts if Cache.is_paged(layout)), batch=1)
    cache = _plan(pooled, decoder.block_tokens)
    each = decoder.sides * (cache.k.seq_stride + cache.k.scale_seq_stride)
    return each, each - decoder.block_tokens * token_bytes(decoder)


def _plan(decoder: Decoder, capacity: int) -> Any:
    words = {name: getattr(decoder, name) for name in ("batch", "layout", "dtype", "inner", "scale")}
    more = {"block_tokens": decoder.block_tokens, "pad": decoder.pad}
    return Cache.planned(decoder.kv_heads, decoder.head_dim, capacity, **words, **more)


def _of_layer(decoder: Decoder, layers: Layers) -> dict[str, int]:
    """`places`: slots of a sequence, more than its capacity where whole blocks are taken."""
    cache, each = _plan(decoder, layers.capacity), row(decoder)
    arranged = cache.blocks if cache.table_stride else cache.batch
    places = cache.table_stride * cache.block_tokens if cache.table_stride else _room(decoder, cache.capacity)
    rows, scales = decoder.sides * arranged * cache.k.seq_stride, decoder.sides * arranged * cache.k.scale_seq_stride
    slot = decoder.sides * decoder.batch * decoder.kv_heads
    return {
        "rows": slot * layers.held * each.data,
        "scales": slot * layers.held * each.scale,
        "unused": slot * (layers.capacity - layers.held) * each.payload,
        "block_rounding": slot * (places - layers.capacity) * each.payload,
        "row_padding": slot * places * (each.padded - each.data),
        "head_padding": rows - slot * places * each.padded,
        "line_rounding": cache.bytes - rows - scales,
    }


def _room(decoder: Decoder, capacity: int) -> int:
    """Tokens that a sequence without a table has places for: whole blocks of them where K is transposed in such."""
    return -(-capacity // LANES) * LANES if default_library().cell(decoder.layout, decoder.dtype) else capacity


def _huge_page(machine: Machine) -> int:
    """Bytes to whose multiples the memory grows."""
    fact = machine.facts.get("page_bytes")
    base = fact.value if fact and isinstance(fact.value, int) and fact.value > 0 else _BASE
    huge = base * (base // _ENTRY)
    return huge if huge <= _SPARED else base


def blocks(decoder: Decoder) -> Blocks | None:
    """None where no table stands between tokens and rows."""
    if not Cache.is_paged(decoder.layout) or not (found := parts(decoder)):
        return None
    cache, (each, _) = _plan(decoder, found[0].capacity), block_bytes(decoder)
    return Blocks(decoder.block_tokens, each, cache.blocks, decoder.batch * cache.table_stride * _NUMBER)

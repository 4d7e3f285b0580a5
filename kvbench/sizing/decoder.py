"""A decoder's cache by the formula: which layers hold how many tokens, and what a row of one takes.
And what the library takes for it, byte for byte.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kvbench.errors import BadArgument
from kvbench.model import Machine
from kvbench.model.geometry import Geometry
from kvbench.model.planes import refuse_pair
from kvbench.model.size import Allocated, Blocks, Decoder, Layers
from kvbench.native import LANES, Cache, block_of, default_library
from kvbench.suite.axes import shown

LARGEST = 1 << 63  # bytes of anything: what a machine can count
_COUNT = 1 << 31
_FROM_ZERO = ("window", "window_every", "ephemeral", "pad")
_FROM_ONE = (
    "layers",
    "q_heads",
    "kv_heads",
    "head_dim",
    "context",
    "batch",
    "block_tokens",
    "capacity",
)
_BASE = 4096  # bytes of a page, where the machine does not say
# bytes of an entry of the processor's page tables; a table fills a base page, and maps a huge one
_ENTRY = 8
_SPARED = 32 << 20  # larger huge pages are not filled up for less than one
_NUMBER = 4  # bytes of a block's number in a page table
_PADDING = ("row_padding", "head_padding", "line_rounding")
_PARTS = ("rows", "scales", "unused", "block_rounding", *_PADDING)


@dataclass(frozen=True, slots=True)
class RowBytes:
    """Bytes of one side of one token in one KV head: its elements, its scale, and what the elements
    have to themselves.
    `each`: of an element, or of a block of a packed row.
    """

    noun: str
    each: int
    data: int
    scale: int
    padded: int

    @property
    def payload(self) -> int:
        return self.data + self.scale


def row(decoder: Decoder) -> RowBytes:
    """As the library lays it."""
    return _row(decoder.head_dim, decoder.dtype, decoder.scale)


@cache
def _row(head_dim: int, dtype: str, scale: str) -> RowBytes:
    own, (elements, size) = Cache.planned(1, head_dim, 1, dtype=dtype, scale=scale), block_of(dtype)
    noun, data = "element" if elements == 1 else "block", -(-head_dim // elements) * size
    return RowBytes(noun, size, data, own.k.scale_token_stride, own.k.row_bytes)


def refuse_nonsense(decoder: Decoder) -> None:
    refuse_pair("--dtype", decoder.dtype)
    for name in (*_FROM_ZERO, *_FROM_ONE):
        value, least = getattr(decoder, name), int(name in _FROM_ONE)
        if value is not None and not least <= value < _COUNT:
            option = "users" if name == "batch" else name.replace("_", "-")
            raise BadArgument(f"--{option} is {shown(value)}", f"{least} to {_COUNT - 1}")
    q_heads, kv_heads = decoder.q_heads, decoder.kv_heads
    if q_heads % kv_heads:
        raise BadArgument(
            f"{q_heads} query heads do not divide into {kv_heads} KV heads",
            "a divisor of --q-heads",
        )
    if decoder.ephemeral > decoder.layers:
        raise BadArgument(
            f"--ephemeral is {decoder.ephemeral}", f"at most all {decoder.layers} layers"
        )
    for layers in parts(decoder):
        if layers.capacity < layers.read:
            raise BadArgument(
                f"--capacity is {decoder.capacity}, less than the {layers.read} tokens that a layer"
                " attends to",
                "leave it out, or give more room",
            )


def kept(decoder: Decoder) -> int:
    """Its persistent layers."""
    return decoder.layers - decoder.ephemeral


def parts(decoder: Decoder) -> tuple[Layers, ...]:
    """Those that are alike, those that attend to most first; of no kind there are none."""
    sliding, found = sliding_layers(decoder, decoder.context), []
    for count, window in ((kept(decoder) - sliding, 0), (sliding, decoder.window)):
        read = min(window or decoder.context, decoder.context)
        capacity = decoder.capacity or read
        held = min(decoder.context, capacity)
        own = Layers(
            count, window, held, capacity, read, decoder.batch * held * token_bytes(decoder)
        )
        found += [own] if count else []
    return tuple(found)


def sliding_layers(decoder: Decoder, context: int) -> int:
    """How many leave some of so many tokens out."""
    heads = (decoder.q_heads, decoder.kv_heads, decoder.head_dim)
    shape = Geometry(
        decoder.model, kept(decoder), *heads, context, decoder.window, decoder.window_every
    )
    return shape.sliding(context)


def growing_layers(decoder: Decoder) -> int:
    """How many hold more after one more token."""
    roomy = decoder.capacity is not None and decoder.context < decoder.capacity
    return kept(decoder) - (0 if roomy else sliding_layers(decoder, decoder.context + 1))


def cache_bytes(decoder: Decoder) -> int:
    return sum(layers.count * layers.bytes for layers in parts(decoder))


def streamed_bytes(decoder: Decoder) -> int:
    """K, V and scales that one decode step reads."""
    return sum(
        layers.count * layers.bytes // layers.held * layers.read for layers in parts(decoder)
    )


def token_bytes(decoder: Decoder) -> int:
    """Bytes of one token of one sequence, in one layer."""
    return decoder.sides * decoder.kv_heads * row(decoder).payload


def intensity(decoder: Decoder) -> float:
    """FLOP for each byte that a decode reads of the cache: every query head of a group multiplies
    each element that it reads, and adds the product.
    """
    return _flops(decoder) / token_bytes(decoder)


def _flops(decoder: Decoder) -> int:
    """Of one token in one layer: for each query head a product and a sum with every element of K,
    and of V.
    """
    return 2 * decoder.q_heads * (decoder.head_dim + (decoder.latent or decoder.head_dim))


def flops(decoder: Decoder) -> int:
    """Of one sequence, all layers."""
    return sum(layers.count * layers.read for layers in parts(decoder)) * _flops(decoder)


def formula(decoder: Decoder) -> str:
    """With the numbers in it: "2 (K, V) x 28 layers x 8 KV heads x 1,024 tokens x 128 elements x 4
    bytes".
    """
    return " x ".join(_factors(decoder))


def _factors(decoder: Decoder) -> Iterator[str]:
    of_row = row(decoder)
    found = [(layers.count, layers.held) for layers in parts(decoder)] or [(0, decoder.context)]
    yield "2 (K, V)" if decoder.sides == 2 else "1 (K and V in one row)"
    if len(found) == 1:
        yield _many(found[0][0], "layer")
    yield _many(decoder.kv_heads, "KV head")
    if len(found) == 1:
        yield _many(found[0][1], "token")
    else:
        each = (f"{_many(count, 'layer')} x {held:,}" for count, held in found)
        yield f"({' + '.join(each)} tokens)"
    elements = f"{_many(of_row.data // of_row.each, of_row.noun)} x {_many(of_row.each, 'byte')}"
    yield f"({elements} + {of_row.scale} of scale)" if of_row.scale else elements
    if decoder.batch > 1:
        yield _many(decoder.batch, "sequence")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def allocated(decoder: Decoder, machine: Machine) -> Allocated:
    """All layers in one block of memory, on transparent huge pages."""
    found: Counter[str] = Counter()
    for layers in parts(decoder):
        for name, count in _of_layer(decoder, layers).items():
            found[name] += layers.count * count
    total, page = found.total(), _huge_page(machine)
    mapped = -(-total // page) * page
    return Allocated(
        **{name: found[name] for name in _PARTS},
        total=total,
        page_rounding=mapped - total,
        mapped=mapped,
        page_bytes=page,
    )


def layer_bytes(decoder: Decoder, layers: Layers) -> tuple[int, int]:
    """As the library says; and those of it in which no row can lie."""
    found = _of_layer(decoder, layers)
    return sum(found.values()), sum(found[name] for name in _PADDING)


def block_bytes(decoder: Decoder) -> tuple[int, int]:
    """Bytes of a block in one layer, even where the decoder has none; and how many of them are
    padding.
    """
    layouts = (decoder.layout, *default_library().words("layout"))
    pooled = replace(
        decoder, layout=next(layout for layout in layouts if Cache.is_paged(layout)), batch=1
    )
    cache = _plan(pooled, decoder.block_tokens)
    each = decoder.sides * (cache.k.seq_stride + cache.k.scale_seq_stride)
    return each, each - decoder.block_tokens * token_bytes(decoder)


def blocks(decoder: Decoder) -> Blocks | None:
    """None where no table stands between tokens and rows."""
    if not Cache.is_paged(decoder.layout) or not (found := parts(decoder)):
        return None
    cache, (each, _) = _plan(decoder, found[0].capacity), block_bytes(decoder)
    return Blocks(
        decoder.block_tokens, each, cache.blocks, decoder.batch * cache.table_stride * _NUMBER
    )


def _plan(decoder: Decoder, capacity: int) -> Any:
    words = ("batch", "layout", "dtype", "inner", "scale", "block_tokens", "pad")
    facts = {name: getattr(decoder, name) for name in words}
    return Cache.planned(decoder.kv_heads, decoder.head_dim, capacity, **facts)


def _of_layer(decoder: Decoder, layers: Layers) -> dict[str, int]:
    """`places`: slots of a sequence, more than its capacity where whole blocks are taken."""
    cache, each = _plan(decoder, layers.capacity), row(decoder)
    paged, lanes = cache.table_stride * cache.block_tokens, -(-cache.capacity // LANES) * LANES
    transposed = default_library().cell(decoder.layout, decoder.dtype, "k")
    places = paged or (lanes if transposed else cache.capacity)
    arranged = decoder.sides * (cache.blocks if paged else cache.batch)
    rows, scales = arranged * cache.k.seq_stride, arranged * cache.k.scale_seq_stride
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


def _huge_page(machine: Machine) -> int:
    """Bytes to whose multiples the memory grows."""
    fact = machine.facts.get("page_bytes")
    base = fact.value if fact and isinstance(fact.value, int) and fact.value > 0 else _BASE
    huge = base * (base // _ENTRY)
    return huge if huge <= _SPARED else base

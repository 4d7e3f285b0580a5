"""A decoder's cache: its bytes by the formula (tokens of each layer, bytes of a row), and the bytes
that the library allocates for it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kvbench.errors import BadArgument, unknown_word
from kvbench.model import Machine
from kvbench.model.geometry import Geometry
from kvbench.model.planes import apart
from kvbench.model.point import CHANNEL, K_SCALES, TOKEN
from kvbench.model.size import Allocated, Blocks, Decoder, Layers, Side
from kvbench.native import LANES, Cache, block_of, default_library
from kvbench.suite.axes import shown

LARGEST = 1 << 63  # bytes of anything: what a machine can count
_COUNT = 1 << 31
_FROM_ZERO = ("window", "window_every", "ephemeral", "pad", "v_dim")
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
_BASE = 4096  # bytes of a page, if the machine does not say
# bytes of an entry of the processor's page tables; one table fills a base page and maps a huge page
_ENTRY = 8
_SPARED = 32 << 20  # larger huge pages are not used for rounding
_NUMBER = 4  # bytes of a block's number in a page table
_PADDING = ("row_padding", "head_padding", "line_rounding")
_PARTS = ("rows", "scales", "unused", "block_rounding", *_PADDING)


@dataclass(frozen=True, slots=True)
class RowBytes:
    """Bytes of K or V of one token in one KV head. `data`: of its elements. `scale`: of its scale.
    `padded`: of its elements with padding. `each`: of one element, or of one block of a packed row;
    `noun`: which of them.
    """

    noun: str
    each: int
    data: int
    scale: int
    padded: int

    @property
    def payload(self) -> int:
        return self.data + self.scale


def rows(decoder: Decoder) -> tuple[RowBytes, ...]:
    """Bytes of a row of K and of V, as the library lays them out; of one row if it holds both."""
    by_channel = decoder.k_scale == CHANNEL
    found = _rows(decoder.head_dim, decoder.v_dim, decoder.dtype, decoder.scale, by_channel)
    return found[: decoder.sides]


@cache
def _rows(
    head_dim: int, v_dim: int, dtype: str, scale: str, by_channel: bool
) -> tuple[RowBytes, ...]:
    facts: dict[str, Any] = {"v_dim": v_dim or None, "channel": by_channel or None}
    own = Cache.planned(1, head_dim, 1, dtype=dtype, scale=scale, **facts)
    dims = head_dim, v_dim or head_dim
    return tuple(map(_row, (own.k, own.v), dims, apart(dtype)))


def _row(plane: Any, dim: int, dtype: str) -> RowBytes:
    elements, size = block_of(dtype)
    noun, data = "element" if elements == 1 else "block", -(-dim // elements) * size
    return RowBytes(noun, size, data, plane.scale_token_stride, plane.row_bytes)


def refuse_nonsense(decoder: Decoder) -> None:
    """Refuse a decoder with values that no cache can have."""
    _refuse_scales(decoder)
    for name in (*_FROM_ZERO, *_FROM_ONE):
        value, least = getattr(decoder, name), int(name in _FROM_ONE)
        if value is not None and not least <= value < _COUNT:
            option = "users" if name == "batch" else name.replace("_", "-")
            raise BadArgument(f"--{option} is {shown(value)}", f"{least} to {_COUNT - 1}")
    q_heads, kv_heads = decoder.q_heads, decoder.kv_heads
    if q_heads % kv_heads:
        raise BadArgument(
            f"{q_heads} query heads cannot be shared evenly by {kv_heads} KV heads",
            "let --kv-heads divide --q-heads",
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


def _refuse_scales(decoder: Decoder) -> None:
    """Refuse scales of K by channel for a format without a scale of its own for each token."""
    k, _ = apart(decoder.dtype)
    if decoder.k_scale not in K_SCALES:
        raise unknown_word("--k-scale", decoder.k_scale, K_SCALES)
    if decoder.k_scale == CHANNEL and not rows(replace(decoder, k_scale=TOKEN, dtype=k))[0].scale:
        raise BadArgument(
            f"--k-scale {CHANNEL}: rows of K in {k} have no scale of their own",
            "use a dtype with scales, such as i8",
        )


def kept(decoder: Decoder) -> int:
    """The number of layers that keep K and V."""
    return decoder.layers - decoder.ephemeral


def parts(decoder: Decoder) -> tuple[Layers, ...]:
    """Groups of equal layers, those that attend to most tokens first. Empty groups are left out."""
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
    """The number of layers whose window is shorter than `context`."""
    heads = (decoder.q_heads, decoder.kv_heads, decoder.head_dim)
    shape = Geometry(
        decoder.model, kept(decoder), *heads, context, decoder.window, decoder.window_every
    )
    return shape.sliding(context)


def growing_layers(decoder: Decoder) -> int:
    """The number of layers that hold more after one more token."""
    roomy = decoder.capacity is not None and decoder.context < decoder.capacity
    return kept(decoder) - (0 if roomy else sliding_layers(decoder, decoder.context + 1))


def cache_bytes(decoder: Decoder) -> int:
    """Bytes of the cache by the formula, in all layers."""
    return sum(layers.count * layers.bytes for layers in parts(decoder))


def streamed_bytes(decoder: Decoder) -> int:
    """Bytes of K, V and scales that one decode step reads."""
    return sum(
        layers.count * layers.bytes // layers.held * layers.read for layers in parts(decoder)
    )


def token_bytes(decoder: Decoder) -> int:
    """Bytes of one token of one sequence, in one layer."""
    return decoder.kv_heads * sum(each.payload for each in rows(decoder))


def sides(decoder: Decoder) -> tuple[Side, ...]:
    """Bytes of K and of V over all layers and sequences; one side if a row holds both."""
    dims = decoder.head_dim, decoder.v_dim or decoder.head_dim
    tokens = decoder.batch * sum(layers.count * layers.held for layers in parts(decoder))
    return tuple(
        Side(dtype, dim, decoder.kv_heads * each.payload, tokens * decoder.kv_heads * each.payload)
        for dtype, dim, each in zip(apart(decoder.dtype), dims, rows(decoder), strict=False)
    )


def intensity(decoder: Decoder) -> float:
    """FLOP for each byte that a decode reads from the cache: each query head of a group multiplies
    each element and adds the product.
    """
    return _flops(decoder) / token_bytes(decoder)


def _flops(decoder: Decoder) -> int:
    """FLOP for one token in one layer: for each query head, a product and a sum with each element
    of K and of V.
    """
    width_of_v = decoder.latent or decoder.v_dim or decoder.head_dim
    return 2 * decoder.q_heads * (decoder.head_dim + width_of_v)


def flops(decoder: Decoder) -> int:
    """FLOP of a decode step of one sequence, in all layers."""
    return sum(layers.count * layers.read for layers in parts(decoder)) * _flops(decoder)


def formula(decoder: Decoder) -> str:
    """The formula with its numbers: "2 (K, V) x 28 layers x 8 KV heads x 1,024 tokens x 128
    elements x 4 bytes".
    """
    return " x ".join(_factors(decoder))


def _factors(decoder: Decoder) -> Iterator[str]:
    own = rows(decoder)
    found = [(layers.count, layers.held) for layers in parts(decoder)] or [(0, decoder.context)]
    if decoder.latent:
        yield "1 (K and V in one row)"
    elif len({*own}) == 1:
        yield "2 (K, V)"
    if len(found) == 1:
        yield _many(found[0][0], "layer")
    yield _many(decoder.kv_heads, "KV head")
    if len(found) == 1:
        yield _many(found[0][1], "token")
    else:
        each = (f"{_many(count, 'layer')} x {held:,}" for count, held in found)
        yield f"({' + '.join(each)} tokens)"
    if len({*own}) == 1:
        yield _elements(own[0])
    else:
        k, v = map(_elements, own)
        yield f"({k} of K + {v} of V)"
    if decoder.batch > 1:
        yield _many(decoder.batch, "sequence")


def _elements(own: RowBytes) -> str:
    elements = f"{_many(own.data // own.each, own.noun)} x {_many(own.each, 'byte')}"
    return f"({elements} + {own.scale} of scale)" if own.scale else elements


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def allocated(decoder: Decoder, machine: Machine) -> Allocated:
    """The bytes allocated for all layers in one block of memory, on transparent huge pages."""
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
    """Bytes of a layer, as the library says; and how many of them are padding."""
    found = _of_layer(decoder, layers)
    return sum(found.values()), sum(found[name] for name in _PADDING)


def block_bytes(decoder: Decoder) -> tuple[int, int]:
    """Bytes of a block in one layer, and how many of them are padding. A decoder without blocks is
    treated as if its cache were paged.
    """
    layouts = (decoder.layout, *default_library().words("layout"))
    pooled = replace(
        decoder, layout=next(layout for layout in layouts if Cache.is_paged(layout)), batch=1
    )
    cache = _plan(pooled, decoder.block_tokens)
    each = sum(plane.seq_stride + plane.scale_seq_stride for plane in (cache.k, cache.v))
    return each, each - decoder.block_tokens * token_bytes(decoder)


def blocks(decoder: Decoder) -> Blocks | None:
    """The blocks of a paged cache; None for other layouts."""
    if not Cache.is_paged(decoder.layout) or not (found := parts(decoder)):
        return None
    cache, (each, _) = _plan(decoder, found[0].capacity), block_bytes(decoder)
    return Blocks(
        decoder.block_tokens, each, cache.blocks, decoder.batch * cache.table_stride * _NUMBER
    )


def _plan(decoder: Decoder, capacity: int) -> Any:
    words = ("batch", "layout", "dtype", "inner", "scale", "block_tokens", "pad")
    facts = {name: getattr(decoder, name) for name in words}
    facts |= {"v_dim": decoder.v_dim or None, "channel": decoder.k_scale == CHANNEL or None}
    return Cache.planned(decoder.kv_heads, decoder.head_dim, capacity, **facts)


def _of_layer(decoder: Decoder, layers: Layers) -> Counter[str]:
    """Bytes of a layer by what they are for. `places`: slots of a sequence; more than its capacity
    if the last block is not full.
    """
    cache, found = _plan(decoder, layers.capacity), Counter[str]()
    paged, lanes = cache.table_stride * cache.block_tokens, -(-cache.capacity // LANES) * LANES
    transposed = default_library().cell(decoder.layout, apart(decoder.dtype)[0], "k")
    places = paged or (lanes if transposed else cache.capacity)
    arranged, slot = cache.blocks if paged else cache.batch, decoder.batch * decoder.kv_heads
    for plane, each in zip((cache.k, cache.v), rows(decoder), strict=True):
        own, scales = arranged * plane.seq_stride, arranged * plane.scale_seq_stride
        found.update(
            rows=slot * layers.held * each.data,
            scales=slot * layers.held * each.scale,
            unused=slot * (layers.capacity - layers.held) * each.payload,
            block_rounding=slot * (places - layers.capacity) * each.payload,
            row_padding=slot * places * (each.padded - each.data),
            head_padding=own - slot * places * each.padded,
            line_rounding=-own - scales,
        )
    found["line_rounding"] += cache.bytes
    return found


def _huge_page(machine: Machine) -> int:
    """Bytes of a page: memory is allocated in multiples of it."""
    fact = machine.facts.get("page_bytes")
    base = fact.value if fact and isinstance(fact.value, int) and fact.value > 0 else _BASE
    huge = base * (base // _ENTRY)
    return huge if huge <= _SPARED else base

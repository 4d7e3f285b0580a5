"""A decoder's cache by the formula: which layers hold how many tokens, and what a row of one takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from kvbench.analysis.means.models import Geometry
from kvbench.errors import BadArgument
from kvbench.model.size import Decoder, Layers
from kvbench.native import Cache, block_of
from kvbench.suite.axes import shown

LARGEST = 1 << 63  # bytes of anything: what a machine can count
_COUNT = 1 << 31
_LEAST = {
    **dict.fromkeys(("layers", "q_heads", "kv_heads", "head_dim", "context", "batch", "block_tokens"), 1),
    **dict.fromkeys(("window", "window_every", "ephemeral", "pad"), 0),
    "capacity": 1,
}


@dataclass(frozen=True, slots=True)
class RowBytes:
    """Bytes of one side of one token in one KV head: its elements, its scale, and what the elements have to themselves.
    `each`: of an element, or of a block of a packed row."""

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
    for name, least in _LEAST.items():
        value = getattr(decoder, name)
        if value is not None and not least <= value < _COUNT:
            raise BadArgument(f"{_option(name)} is {shown(value)}", f"{least} to {_COUNT - 1}")
    q_heads, kv_heads = decoder.q_heads, decoder.kv_heads
    if kv_heads > q_heads:
        raise BadArgument(f"--kv-heads is {kv_heads}, more than the {q_heads} query heads", "a divisor of --q-heads")
    if q_heads % kv_heads:
        raise BadArgument(f"{q_heads} query heads do not divide into {kv_heads} KV heads", "a divisor of --q-heads")
    if decoder.ephemeral > decoder.layers:
        raise BadArgument(f"--ephemeral is {decoder.ephemeral}", f"at most all {decoder.layers} layers")
    for layers in parts(decoder):
        if layers.capacity < layers.read:
            what = f"--capacity is {decoder.capacity}, less than the {layers.read} tokens that a layer attends to"
            raise BadArgument(what, "leave it out, or give more room")


def _option(name: str) -> str:
    return "--users" if name == "batch" else f"--{name.replace('_', '-')}"


def parts(decoder: Decoder) -> tuple[Layers, ...]:
    """Its persistent layers, those that attend to most first; of no kind there are none."""
    sliding = sliding_layers(decoder, decoder.context)
    counts = ((decoder.layers - decoder.ephemeral - sliding, 0), (sliding, decoder.window))
    each = decoder.sides * decoder.batch * decoder.kv_heads * row(decoder).payload
    return tuple(_alike(decoder, count, window, each) for count, window in counts if count)


def _alike(decoder: Decoder, count: int, window: int, each: int) -> Layers:
    read = min(window or decoder.context, decoder.context)
    capacity = decoder.capacity or read
    held = min(decoder.context, capacity)
    return Layers(count, window, held, capacity, read, each * held)


def sliding_layers(decoder: Decoder, context: int) -> int:
    """How many leave some of so many tokens out."""
    heads = (decoder.q_heads, decoder.kv_heads, decoder.head_dim)
    layers = decoder.layers - decoder.ephemeral
    shape = Geometry(decoder.model, layers, *heads, context, decoder.window, decoder.window_every)
    return shape.sliding(context)


def growing_layers(decoder: Decoder) -> int:
    """How many hold more after one more token."""
    layers = decoder.layers - decoder.ephemeral
    roomy = decoder.capacity is not None and decoder.context < decoder.capacity
    return layers if roomy else layers - sliding_layers(decoder, decoder.context + 1)


def cache_bytes(decoder: Decoder) -> int:
    return sum(layers.count * layers.bytes for layers in parts(decoder))


def streamed_bytes(decoder: Decoder) -> int:
    """K, V and scales that one decode step reads."""
    return sum(layers.count * layers.bytes // layers.held * layers.read for layers in parts(decoder))


def token_bytes(decoder: Decoder) -> int:
    """Bytes of one token of one sequence, in one layer."""
    return decoder.sides * decoder.kv_heads * row(decoder).payload


def intensity(decoder: Decoder) -> float:
    """FLOP for each byte that a decode reads of the cache: every query head of a group multiplies each element that it
    reads, and adds the product."""
    return _flops(decoder) / token_bytes(decoder)


def _flops(decoder: Decoder) -> int:
    """Of one token in one layer: for each query head a product and a sum with every element of K, and of V."""
    return 2 * decoder.q_heads * (decoder.head_dim + (decoder.latent or decoder.head_dim))


def flops(decoder: Decoder) -> int:
    """Of one sequence, all layers."""
    return sum(layers.count * layers.read for layers in parts(decoder)) * _flops(decoder)


# ---- the formula, as one writes it -----------------------------------------------------------------------------------


def formula(decoder: Decoder) -> str:
    """With the numbers in it: "2 (K, V) x 28 layers x 8 KV heads x 1,024 tokens x 128 elements x 4 bytes"."""
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

"""Many users: what they take together, how many fit a memory, and what it wastes to reserve room ahead."""

from dataclasses import replace

from kvbench.errors import BadArgument
from kvbench.model.size import Admission, Decoder, Fleet, Reservation, Reserved, Rung
from kvbench.sizing.allocated import layer_bytes
from kvbench.sizing.decoder import cache_bytes, intensity, parts, sliding_layers, token_bytes
from kvbench.sizing.lengths import Lengths
from kvbench.units import size

_GROUPED = 8  # KV heads of the rung between, for a model whose own are as many as its query heads, or one


def ladder(decoder: Decoder) -> tuple[Rung, ...]:
    """The model with a KV head for each query head, with groups, and with one for all."""
    most, own = decoder.q_heads, decoder.kv_heads
    between = own if 1 < own < most else _GROUPED
    names = {most: "MHA"} if most > 1 else {}
    if 1 < between < most and most % between == 0:
        names[between] = "GQA"
    return tuple(_rung(decoder, name, heads) for heads, name in (names | {1: "MQA"}).items())


def _rung(decoder: Decoder, name: str, kv_heads: int) -> Rung:
    other = replace(decoder, kv_heads=kv_heads)
    layers = decoder.layers - decoder.ephemeral
    counts = cache_bytes(other), layers * token_bytes(other)
    return Rung(name, kv_heads, other.group, *counts, intensity(other), kv_heads == decoder.kv_heads)


def fleet(decoder: Decoder, users: int | None, replicas: int, weights: int | None) -> Fleet:
    each = cache_bytes(decoder) // decoder.batch
    users = users or decoder.batch
    replica = users * each + (weights or 0)
    return Fleet(users, replicas, each, replica, replicas * replica, weights)


# ---- admission -------------------------------------------------------------------------------------------------------


def admission(decoder: Decoder, budget: int | None, lengths: Lengths | None) -> Admission:
    reserved = _reservation(decoder, budget, lengths) if lengths else None
    if budget is None:
        return Admission(None, None, None, reserved)
    tokens = _tokens(decoder, budget)
    if tokens == 0:
        one = (decoder.layers - decoder.ephemeral) * token_bytes(decoder)
        raise BadArgument(f"--budget is {size(budget)}", f"one token takes {one:,} bytes")
    alone = replace(decoder, batch=1)
    whole = sum(layers.count * layer_bytes(alone, layers) for layers in parts(alone))
    return Admission(budget, tokens, budget // whole if whole else None, reserved)


def _tokens(decoder: Decoder, budget: int) -> int | None:
    """The longest sequence that fits, each layer holding what it attends to. None: it can go on for ever."""
    each, layers = token_bytes(decoder), decoder.layers - decoder.ephemeral
    sliding = sliding_layers(decoder, decoder.window + 1)
    if sliding and budget >= each * layers * decoder.window:
        rest, layers = budget - each * sliding * decoder.window, layers - sliding
    else:
        rest = budget
    return rest // (each * layers) if layers else None


def _reservation(decoder: Decoder, budget: int | None, lengths: Lengths) -> Reservation:
    if lengths.longest > decoder.context:
        raise BadArgument(
            f"--lengths {lengths.name[:60]}: a sequence of {lengths.longest} tokens is longer than --context "
            f"{decoder.context}",
            "shorter lengths, or a longer context",
        )
    alone, each = replace(decoder, batch=1), token_bytes(decoder)
    found = parts(alone)
    held = each * sum(layers.count * lengths.tokens(layers.window) for layers in found)
    ahead = each * sum(layers.count * layers.capacity for layers in found) * lengths.count
    blocks = each * sum(layers.count * lengths.tokens(layers.window, decoder.block_tokens) for layers in found)
    return Reservation(
        lengths.name,
        lengths.tokens() / lengths.count,
        decoder.block_tokens,
        *(_reserved(taken, held, lengths.count, budget) for taken in (ahead, blocks)),
    )


def _reserved(taken: int, held: int, count: int, budget: int | None) -> Reserved:
    """`taken` and `held`: of `count` sequences together."""
    sequences = budget * count // taken if budget is not None and taken else None
    return Reserved(taken / count, 1 - held / taken if taken else 0.0, sequences)

"""Many users: what they take together, how many fit a memory, and what it wastes to reserve room ahead."""

from dataclasses import replace

from kvbench.errors import BadArgument
from kvbench.model.size import Admission, Decoder, Fleet, Reservation, Reserved, Rung
from kvbench.sizing.allocated import block_bytes, layer_bytes, layer_padding
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


def fleet(decoder: Decoder, replicas: int, weights: int | None) -> Fleet:
    replica = cache_bytes(decoder) + (weights or 0)
    return Fleet(decoder.batch, replicas, cache_bytes(decoder) // decoder.batch, replica, replicas * replica, weights)


# ---- admission -------------------------------------------------------------------------------------------------------


def admission(decoder: Decoder, budget: int | None, lengths: Lengths | None) -> Admission:
    reserved = _reservation(decoder, budget, lengths) if lengths else None
    if budget is None:
        return Admission(None, None, None, reserved)
    tokens = _tokens(decoder, budget)
    if tokens == 0:
        one = (decoder.layers - decoder.ephemeral) * token_bytes(decoder)
        raise BadArgument(f"--budget is {size(budget)}", f"one token takes {one:,} bytes")
    whole = _ahead(replace(decoder, batch=1))
    return Admission(budget, tokens, budget // whole if whole else None, reserved)


def _tokens(decoder: Decoder, budget: int) -> int | None:
    """The longest sequence that fits, each layer holding what it has room for. None: it can go on for ever."""
    each, layers = token_bytes(decoder), decoder.layers - decoder.ephemeral
    rings = sliding_layers(decoder, decoder.window + 1)
    if not layers:
        return None
    if decoder.capacity is not None:
        most = min(budget // (each * layers), decoder.capacity)
        forgets = rings == layers and decoder.window <= decoder.capacity == most
        return None if forgets else most
    if rings and budget >= each * layers * decoder.window:
        rest, layers = budget - each * rings * decoder.window, layers - rings
    else:
        rest = budget
    return rest // (each * layers) if layers else None


def _reservation(decoder: Decoder, budget: int | None, lengths: Lengths) -> Reservation:
    longest, option = max((decoder.context, "--context"), (decoder.capacity or 0, "--capacity"))
    if lengths.longest > longest:
        raise BadArgument(
            f"--lengths {lengths.name[:60]}: a sequence of {lengths.longest} tokens is longer than {option} {longest}",
            "shorter lengths, or a longer context",
        )
    alone = replace(decoder, batch=1)
    count, found = lengths.count, parts(alone)
    held = token_bytes(alone) * sum(layers.count * lengths.tokens(layers.capacity) for layers in found)
    ahead_padding = sum(layers.count * layer_padding(alone, layers) for layers in found)
    step = alone.block_tokens
    blocks = sum(layers.count * lengths.tokens(layers.capacity, step) // step for layers in found)
    of_block, padding = block_bytes(alone)
    return Reservation(
        lengths.name,
        lengths.tokens() / count,
        step,
        _reserved(count * _ahead(alone), held, count * ahead_padding, count, budget),
        _reserved(blocks * of_block, held, blocks * padding, count, budget),
    )


def _ahead(alone: Decoder) -> int:
    """What is allocated for one sequence, however much of it is used."""
    return sum(layers.count * layer_bytes(alone, layers) for layers in parts(alone))


def _reserved(taken: int, held: int, padding: int, count: int, budget: int | None) -> Reserved:
    """`taken`, `held` and `padding`: of `count` sequences together."""
    if not taken:
        return Reserved(0.0, 0.0, 0.0, None)
    sequences = budget * count // taken if budget is not None else None
    return Reserved(taken / count, 1 - held / taken, padding / taken, sequences)

"""Many users: their memory together, how many fit, and the waste of reserving room for sequences of
several lengths (one length, evenly between two lengths, or listed in a file).
"""

import re
from collections import Counter
from dataclasses import dataclass, replace

from kvbench import named
from kvbench.errors import BadArgument
from kvbench.model.size import Admission, Decoder, Fleet, Reservation, Reserved, Rung
from kvbench.sizing import decoder as of
from kvbench.units import COUNT, size, whole

# KV heads of the rung in the middle, for a model with MHA or MQA
_GROUPED = 8
_FORM = "uniform:A-B, fixed:N, or a file of whole numbers"
_LARGEST = 1 << 31


def ladder(decoder: Decoder) -> tuple[Rung, ...]:
    """The model with a KV head for each query head (MHA), for each group (GQA), and with one for
    all (MQA).
    """
    most, own = decoder.q_heads, decoder.kv_heads
    between = own if 1 < own < most else _GROUPED
    names = {most: "MHA"} if most > 1 else {}
    if 1 < between < most and most % between == 0:
        names[between] = "GQA"
    return tuple(_rung(decoder, name, heads) for heads, name in (names | {1: "MQA"}).items())


def _rung(decoder: Decoder, name: str, kv_heads: int) -> Rung:
    other = replace(decoder, kv_heads=kv_heads)
    counts = of.cache_bytes(other), of.kept(other) * of.token_bytes(other)
    return Rung(
        name, kv_heads, other.group, *counts, of.intensity(other), kv_heads == decoder.kv_heads
    )


def fleet(decoder: Decoder, replicas: int, weights: int | None) -> Fleet:
    held = of.cache_bytes(decoder)
    replica = held + (weights or 0)
    return Fleet(
        decoder.batch, replicas, held // decoder.batch, replica, replicas * replica, weights
    )


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of sequences. `runs`: first length, last length, and the number of sequences of each
    length between them. Sums are exact.
    """

    name: str
    runs: tuple[tuple[int, int, int], ...]

    @property
    def count(self) -> int:
        return sum((last - first + 1) * each for first, last, each in self.runs)

    def tokens(self, window: int = 0, step: int = 1) -> int:
        """Tokens of all sequences together. Each counts at most `window` tokens (0: all), rounded
        up to multiples of `step`.
        """
        each = (
            (_sum(last, window, step) - _sum(first - 1, window, step), count)
            for first, last, count in self.runs
        )
        return sum(tokens * count for tokens, count in each)


def _sum(longest: int, window: int, step: int) -> int:
    """Tokens of one sequence of each length from 1 on."""
    beyond = max(0, longest - window) if window else 0
    full, over = divmod(longest - beyond, step)
    rising = step * (step * full * (full + 1) // 2 + over * (full + 1))
    return rising + beyond * -(-window // step) * step


def read_lengths(text: str) -> Lengths:
    if found := re.fullmatch(f"fixed:{COUNT}", text):
        runs = [(whole(*found.groups()), whole(*found.groups()), 1)]
    elif found := re.fullmatch(f"uniform:{COUNT}-{COUNT}", text):
        runs = [(whole(found[1], found[2]), whole(found[3], found[4]), 1)]
    elif text.startswith(("fixed:", "uniform:")):
        raise BadArgument(f"--lengths: {text[:60]!r} is not understood", _FORM)
    else:
        runs = [(length, length, count) for length, count in sorted(_listed(text).items())]
    for first, last, _ in runs:
        if not 1 <= first <= last < _LARGEST:
            raise BadArgument(
                f"--lengths {text[:60]}: {first} to {last} tokens",
                f"lengths from 1 to {_LARGEST - 1}",
            )
    return Lengths(text, tuple(runs))


def _listed(path: str) -> Counter[int]:
    try:
        return Counter(named.numbers(path))
    except OSError as error:
        raise BadArgument(f"--lengths: cannot read {path[:60]}: {error.strerror}", _FORM) from None


def admission(decoder: Decoder, budget: int | None, lengths: Lengths | None) -> Admission:
    reserved = _reservation(decoder, budget, lengths) if lengths else None
    if budget is None:
        return Admission(None, None, None, reserved)
    tokens = _tokens(decoder, budget)
    if tokens == 0:
        each = of.kept(decoder) * of.token_bytes(decoder)
        raise BadArgument(f"--budget is {size(budget)}", f"one token takes {each:,} bytes")
    one, _ = _ahead(replace(decoder, batch=1))
    return Admission(budget, tokens, budget // one if one else None, reserved)


def _tokens(decoder: Decoder, budget: int) -> int | None:
    """The longest sequence that fits, if each layer holds as much as it has room for. None: no
    limit.
    """
    each, layers = of.token_bytes(decoder), of.kept(decoder)
    rings = of.sliding_layers(decoder, decoder.window + 1)
    if not layers:
        return None
    if decoder.capacity is not None:
        most = min(budget // (each * layers), decoder.capacity)
        forgets = rings == layers and decoder.window <= decoder.capacity == most
        return None if forgets else most
    if rings and budget >= each * layers * decoder.window:
        budget, layers = budget - each * rings * decoder.window, layers - rings
    return budget // (each * layers) if layers else None


def _reservation(decoder: Decoder, budget: int | None, lengths: Lengths) -> Reservation:
    longest, option = max((decoder.context, "--context"), (decoder.capacity or 0, "--capacity"))
    if (most := max(last for _, last, _ in lengths.runs)) > longest:
        raise BadArgument(
            f"--lengths {lengths.name[:60]}: a sequence of {most} tokens is longer than {option}"
            f" {longest}",
            "shorter lengths, or a longer context",
        )
    alone = replace(decoder, batch=1)
    count, found, step = lengths.count, of.parts(alone), alone.block_tokens
    held = of.token_bytes(alone) * sum(
        layers.count * lengths.tokens(layers.capacity) for layers in found
    )
    blocks = sum(layers.count * lengths.tokens(layers.capacity, step) // step for layers in found)
    (ahead, ahead_padding), (of_block, padding) = _ahead(alone), of.block_bytes(alone)
    return Reservation(
        lengths.name,
        lengths.tokens() / count,
        step,
        _reserved(count * ahead, held, count * ahead_padding, count, budget),
        _reserved(blocks * of_block, held, blocks * padding, count, budget),
    )


def _ahead(alone: Decoder) -> tuple[int, int]:
    """Bytes allocated for one sequence of any length, and how many of them are padding."""
    each = [(layers.count, *of.layer_bytes(alone, layers)) for layers in of.parts(alone)]
    return sum(count * taken for count, taken, _ in each), sum(
        count * padding for count, _, padding in each
    )


def _reserved(taken: int, held: int, padding: int, count: int, budget: int | None) -> Reserved:
    """The memory of `count` sequences, from sums over all of them."""
    if not taken:
        return Reserved(0.0, 0.0, 0.0, None)
    sequences = budget * count // taken if budget is not None else None
    return Reserved(taken / count, 1 - held / taken, padding / taken, sequences)

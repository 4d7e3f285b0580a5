"""Everything that kvbench size prints, from arithmetic and from a machine's measured reads. Nothing
is allocated.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from kvbench.errors import BadArgument
from kvbench.model.point import CHANNEL
from kvbench.model.size import Decoder, Ephemeral, Fit, Level, Rates, Size
from kvbench.native import default_library
from kvbench.regime import Lies, Regime, holds, levels
from kvbench.sizing import decoder as of
from kvbench.sizing.fleet import Lengths, admission, fleet, ladder
from kvbench.sizing.known import KnownMachine
from kvbench.units import GB, counted

_SHORTEST = 128  # tokens
_SCALE = 4  # bytes of a channel's scale


def size_of(
    decoder: Decoder,
    known: KnownMachine,
    max_context: int = 0,
    replicas: int = 1,
    budget: int | None = None,
    weights: int | None = None,
    lengths: Lengths | None = None,
) -> Size:
    """The size of a decoder's cache, and what follows from it. `max_context`: the model's longest
    context; 0 if not known. `weights`: bytes of weights that one step reads.
    """
    of.refuse_nonsense(decoder)
    if decoder.latent:
        raise BadArgument(
            f"{decoder.model} keeps K and V of all heads in one row; the library has no such cache",
            f"kvbench explain {decoder.model} shows its bytes",
        )
    found, own, held = of.parts(decoder), of.rows(decoder), of.allocated(decoder, known.machine)
    streamed, together = of.streamed_bytes(decoder), fleet(decoder, replicas, weights)
    if max(held.mapped, together.bytes) >= of.LARGEST:
        raise BadArgument(f"the caches take {of.LARGEST} bytes or more", "give smaller numbers")
    of_layer = max((layers.bytes for layers in found), default=0)
    passing = decoder.batch * decoder.context * of.token_bytes(decoder) if decoder.ephemeral else 0
    return Size(
        decoder=decoder,
        formula=of.formula(decoder),
        bytes=of.cache_bytes(decoder),
        bytes_per_token=of.kept(decoder) * of.token_bytes(decoder),
        bytes_per_next_token=of.growing_layers(decoder) * of.token_bytes(decoder),
        bytes_per_layer=of_layer,
        bytes_per_layer_side=of_layer * own[0].payload // sum(each.payload for each in own),
        sides=of.sides(decoder),
        streamed=streamed,
        scale_share=sum(each.scale for each in own) / sum(each.data for each in own),
        ai=of.intensity(decoder),
        layers=found,
        ephemeral=Ephemeral(decoder.ephemeral, 0, passing),
        allocated=held,
        blocks=of.blocks(decoder),
        ladder=ladder(decoder),
        fleet=together,
        admission=admission(decoder, budget, lengths),
        fit=fit(decoder, known),
        tokens_per_second=_rates(decoder, known, streamed, weights),
        notes=tuple(_notes(decoder, known, max_context)),
    )


def _notes(decoder: Decoder, known: KnownMachine, max_context: int) -> Iterator[str]:
    if 0 < max_context < decoder.context:
        yield (
            f"{decoder.context:,} tokens are more than {decoder.model}'s longest context,"
            f" {max_context:,}"
        )
    if decoder.k_scale == CHANNEL:
        scales = _SCALE * decoder.kv_heads * decoder.head_dim
        yield f"scales of K's channels add {scales:,} bytes to a layer, once for all tokens"
    if known.decodes is not None and not known.decoded(decoder, of.streamed_bytes(decoder)):
        kind = (
            f"{decoder.dtype} in {decoder.layout} layout, {counted(decoder.group, 'query head')} on"
            " a KV head"
        )
        yield f"{known.name} has no decode of {kind}, so the best reads are the upper bound"


def fit(decoder: Decoder, known: KnownMachine) -> Fit:
    """The caches in which the largest layer fits. Padding of rows counts too, because it lies in
    the same cache lines.
    """
    row = sum(each.padded + each.scale for each in of.rows(decoder))
    token = decoder.batch * decoder.kv_heads * row
    found = of.parts(decoder)
    read, window = (found[0].read, found[0].window) if found else (0, 0)
    regime = known.regime(token * read) if read else Regime("", Lies.NOTHING, "")
    caches = levels(known.machine, known.cpus)
    rows = tuple(
        _level(level, sum(cache.size for cache in caches[level]), room, token, read, window, known)
        for level, room in holds(known.machine, known.cpus).items()
    )
    return Fit(
        machine=known.name,
        cpus=known.cpus,
        slice_bytes=token * read,
        word=regime.word,
        reason=regime.reason,
        walked=regime.bytes,
        limit=regime.limit,
        levels=rows,
    )


def _level(
    level: int, capacity: int, room: float, token: int, read: int, window: int, known: KnownMachine
) -> Level:
    """A cache level, and the longest context that fits in it; None if a window always fits."""
    most = math.floor(room / token)
    always = 0 < window <= most or not read
    best = known.best_read(f"L{level}")
    context, rate = None if always else most, best.median if best else None
    return Level(level, capacity, math.floor(room), token * read <= room, context, rate)


def _rates(decoder: Decoder, known: KnownMachine, streamed: int, weights: int | None) -> Rates:
    """Tokens per second with and without the weights, which are read at the rate of the best
    reads.
    """
    kv = known.decoded(decoder, streamed) or known.bound(streamed, decoder.batch)
    if weights is None:
        return Rates(kv, None)
    both = known.bound(streamed + weights, decoder.batch)
    decoded = known.decoded(decoder, streamed + weights) if streamed else None
    if both.tokens is None or decoded is None:
        return Rates(kv, both)
    share = streamed / (streamed + weights)
    mixed = {
        name: 1 / (share / getattr(decoded, name) + (1 - share) / getattr(both, name))
        for name in ("tokens", "low", "high")
    }
    gbps = mixed["tokens"] * both.bytes / decoder.batch / GB
    return Rates(kv, replace(both, **mixed, gbps=gbps, decode=decoded.decode))


def sweep(decoder: Decoder, longest: int) -> pd.DataFrame:
    """Bytes of the cache by context, in powers of two and at `longest`, for each dtype of the
    library.
    """
    contexts = [
        _SHORTEST << octave for octave in range(max(0, (longest - 1) // _SHORTEST).bit_length())
    ]
    every = [
        replace(decoder, context=context, dtype=dtype, capacity=None)
        for dtype in default_library().words("dtype")
        for context in (*contexts, longest)
    ]
    return pd.DataFrame(
        {"context": e.context, "dtype": e.dtype, "bytes": of.cache_bytes(e)} for e in every
    )

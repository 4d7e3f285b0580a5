"""A model's weights and cache against a machine's reads, at each context: what limits, which format
pays, how many users fit.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from kvbench.errors import BadArgument
from kvbench.model import DEFAULTS, HEADS, MODEL_SAYS, Ceiling
from kvbench.model.explained import Expected, Explained, Format, Measured, Row
from kvbench.model.size import Decoder
from kvbench.model.weights import Weights
from kvbench.sizing.decoder import cache_bytes, flops, refuse_nonsense, streamed_bytes
from kvbench.sizing.halves import shown
from kvbench.sizing.known import KnownMachine
from kvbench.sizing.sized import fit
from kvbench.suite import Model
from kvbench.units import GB

_SHORTEST = 512  # tokens
_PAYS = 1.05  # times the tokens per second with 16 bits: from there a format pays
_LEVEL = 1.02  # a format counts as faster if it is this many times as fast as one that rounds less
_L3 = 3


def decoder_of(name: str, model: Model, batch: int) -> Decoder:
    shape = {
        key: getattr(model, key)
        for key in ("layers", *HEADS, *MODEL_SAYS, "window", "window_every", "latent")
    }
    cache = {key: DEFAULTS[key] for key in ("dtype", "scale", "layout", "inner", "block_tokens")}
    found = Decoder(name, **shape, context=model.max_context, batch=batch, **cache)
    refuse_nonsense(found)
    return found


@dataclass(frozen=True, slots=True)
class _Wall:
    """All facts for an explanation. `read`: bytes of weights that a step reads. `dtypes`: formats
    to show.
    """

    decoder: Decoder
    known: KnownMachine
    reads: Ceiling | None
    read: int | None
    spare: int | None  # bytes of memory beside the weights
    dtypes: tuple[str, ...]

    def at(self, context: int, dtype: str) -> Decoder:
        return replace(self.decoder, context=context, dtype=dtype)

    def point(self, decoder: Decoder) -> pd.Series | None:
        """The measured decode whose rate is used."""
        return None if decoder.latent else self.known.fastest(decoder)

    def seconds(self, count: float) -> float | None:
        """Seconds of the best read of so many bytes."""
        return count / (self.reads.median * GB) if self.reads else None

    def cell(self, context: int, dtype: str) -> Expected:
        decoder = self.at(context, dtype)
        count, point = streamed_bytes(decoder), self.point(decoder)
        least, weights = self.seconds(count), self.seconds(self.read or 0)
        users = (
            None
            if self.spare is None
            else max(0, self.spare) // cache_bytes(replace(decoder, batch=1))
        )
        if least is None or weights is None:
            return Expected(dtype, count, None, None, None, users)
        fastest = max(least, self._computing(decoder))
        seconds = fastest if point is None else count / (float(point["kv_gbps"]) * GB)
        most, tokens = (decoder.batch / (weights + cache) for cache in (least, seconds))
        return Expected(dtype, count, most, tokens, seconds, users)

    def row(self, context: int) -> Row:
        place = fit(replace(self.decoder, context=context), self.known)
        cells = tuple(self.cell(context, dtype) for dtype in self.dtypes)
        found = Row(context, place.slice_bytes, place.word, cells, self.decoder.dtype)
        best = found.of(found.best)
        for cell in sorted(cells, key=lambda cell: -cell.bytes):
            if (
                best.tokens
                and cell.tokens
                and cell.bytes < best.bytes
                and cell.tokens > _LEVEL * best.tokens
                and self.point(self.at(context, cell.dtype)) is not None
            ):
                best = cell
        return replace(found, best=best.dtype)

    def _computing(self, decoder: Decoder) -> float:
        """Seconds that multiply-adds take at least, for a cache that no measured kernel walks."""
        if not decoder.latent or not self.known.gflops:
            return 0.0
        return decoder.batch * flops(decoder) / (self.known.gflops * GB)

    def overtakes(self, dtype: str) -> int | None:
        """The shortest context at which a step reads at least as much cache as weights."""
        if self.read is None:
            return None
        contexts = range(1, self.decoder.context + 1)
        place = bisect_left(contexts, self.read, key=lambda n: streamed_bytes(self.at(n, dtype)))
        return contexts[place] if place < len(contexts) else None


def explain(
    name: str,
    model: Model,
    known: KnownMachine,
    batch: int,
    why: str,
    given: int | None,
    asked: tuple[float, int] | None,
    dtypes: Sequence[str] = (),
) -> Explained:
    """Explain what limits the model. `given`: bytes of weights that a step reads, instead of the
    model's own. `asked`: tokens per second that the user measured, and the context. `dtypes`: as
    shown() returns them; empty: all of the library.
    """
    decoder, weights = decoder_of(name, model, batch), model.weights
    if given is not None:
        stored, parameters = (weights.stored, weights.multiplied()) if weights else (0, 0)
        weights = Weights(max(given, stored), given, parameters=parameters)
    fact = known.machine.facts.get("memory")
    memory = fact.value if fact and isinstance(fact.value, int) else None
    reads, plain = known.best_read("DRAM"), known.plain_read()
    read = weights.read(batch) if weights else None
    wall = _Wall(
        decoder,
        known,
        reads,
        read,
        memory - weights.stored if weights and memory is not None else None,
        tuple(dtypes) or shown((), among_all=True),
    )
    octaves = range(max(0, math.ceil(math.log2(model.max_context / _SHORTEST))))
    rows = tuple(map(wall.row, (*(_SHORTEST << octave for octave in octaves), model.max_context)))
    return Explained(
        model=name,
        source=model.source,
        max_context=model.max_context,
        decoder=decoder,
        weights=weights,
        read=read,
        experts=weights.distinct(batch) if weights else 0.0,
        why="" if weights else why,
        machine=known.name,
        threads=len(known.cpus),
        gbps=plain.median if plain else None,
        low=plain.low if plain else None,
        high=plain.high if plain else None,
        best_gbps=reads.median if reads else None,
        gflops=known.gflops,
        memory=memory,
        base=decoder.dtype,
        l3=_within_l3(decoder, known),
        formats=tuple(_format(wall, dtype, rows) for dtype in wall.dtypes),
        rows=rows,
        measured=_measured(wall, *asked) if asked else None,
    )


def _format(wall: _Wall, dtype: str, rows: tuple[Row, ...]) -> Format:
    decoder = wall.at(rows[-1].context, dtype)
    point, reads, pays = wall.point(decoder), wall.reads, None
    for row in reversed(rows):
        own, base = row.of(dtype).tokens, row.of(wall.decoder.dtype).tokens
        if point is None or own is None or base is None or own < _PAYS * base:
            break
        pays = row.context
    found = Format(dtype, None, None, None, "", None, wall.overtakes(dtype), pays)
    if point is None:
        if reads is None:
            return found
        return replace(found, gbps=reads.median, low=reads.low, high=reads.high)
    gbps, low, high = (float(point[f"gbps{end}"]) for end in ("", "_low", "_high"))
    group = int(point["group"])
    return replace(found, gbps=gbps, low=low, high=high, decode=point["short"], group=group)


def _within_l3(decoder: Decoder, known: KnownMachine) -> int | None:
    """The longest context whose slice fits in L3, at most the model's longest context."""
    found = [level.context for level in fit(decoder, known).levels if level.level == _L3]
    return min(decoder.context, found[0] or decoder.context) if found else None


def _measured(wall: _Wall, tokens: float, context: int) -> Measured:
    if wall.read is None:
        raise BadArgument(
            "--measured: the bytes of its weights are not known", "give --weights BYTES"
        )
    if wall.reads is None:
        raise BadArgument(
            "--measured: the run has no reads of memory", "name another run with --machine"
        )
    if context > wall.decoder.context:
        raise BadArgument(
            f"--measured: {context} tokens", f"at most the model's {wall.decoder.context}"
        )
    row = wall.row(context)
    base, batch, step = row.of(wall.decoder.dtype), wall.decoder.batch, wall.decoder.batch / tokens
    best, rate = row.of(row.best), wall.reads.median * GB
    least, weights = base.bytes / rate, wall.read / rate
    assert base.most is not None and best.seconds is not None  # because reads are known
    missing = step - batch / base.most
    low, high = step + min(0.0, best.seconds - least), min(step, weights + best.seconds)
    return Measured(
        tokens, context, tokens / base.most, missing, least, best.dtype, batch / low, batch / high
    )

"""What a cache takes, as lines of a terminal."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

import pandas as pd

from kvbench.model.size import Admission, Allocated, Bound, Decoder, Fit, Fleet, Reservation, Rung, Size
from kvbench.report.ruled import Column, ruled
from kvbench.texts import wrapped
from kvbench.units import GB, GIB, counted, cpu_text, size


def size_text(found: Size) -> list[str]:
    parts = (
        _formula(found),
        _each(found),
        _allocated(found.allocated, found.decoder),
        _ladder(found.ladder),
        _fleet(found.fleet),
        _admission(found.admission, found.decoder),
        _fit(found.fit),
        _rates(found),
        (f"note: {note}" for note in found.notes),
    )
    lines = [*wrapped([_title(found.decoder)], "")]
    for part in filter(None, map(list, parts)):
        lines += ["", *(line.rstrip() for line in wrapped(part))]
    return lines


def _title(decoder: Decoder) -> str:
    heads = f"{counted(decoder.q_heads, 'query head')} on {counted(decoder.kv_heads, 'KV head')}"
    shape = f"{counted(decoder.layers, 'layer')}, {heads}, head_dim {decoder.head_dim}"
    words = f"{decoder.dtype}, {decoder.layout} layout"
    name = f"{decoder.model}: " if decoder.model else ""
    return f"{name}{shape}; {counted(decoder.batch, 'sequence')} of {decoder.context:,} tokens, {words}"


def _exact(count: int) -> str:
    return f"{count:,} bytes ({size(count)})"


def _formula(found: Size) -> Iterator[str]:
    yield found.formula
    yield f"= {_exact(found.bytes)}: {found.bytes / GB:.6g} GB, {found.bytes / GIB:.6g} GiB"


def _each(found: Size) -> Iterator[str]:
    """What one of each takes. `next`: only where a token more does not take what the first ones took."""
    sequence = ", of each sequence" if found.decoder.batch > 1 else ""
    yield f"a token         {_exact(found.bytes_per_token)} in all layers{sequence}"
    if found.bytes_per_next_token != found.bytes_per_token:
        yield f"  the next one  {_exact(found.bytes_per_next_token)}: full windows grow no further"
    yield f"a layer         {_exact(found.bytes_per_layer)}; its K or its V {_exact(found.bytes_per_layer_side)}"
    for layers in found.layers[1:]:
        yield f"  with window   {_exact(layers.bytes)}, in {layers.count} layers of {layers.held:,} tokens"
    if found.ephemeral.layers:
        passing = _exact(found.ephemeral.passing)
        yield f"ephemeral       0 bytes in {counted(found.ephemeral.layers, 'layer')}; {passing} while one of them runs"
    if found.scale_share:
        yield f"scales          +{100 * found.scale_share:.6g} % of the rows"
    yield f"a decode reads  {_exact(found.streamed)}"
    yield f"  intensity     2 G / b = {found.ai:.4g} FLOP for each byte: {_group(found)}"
    if found.blocks:
        table = f"{found.blocks.table_bytes:,} bytes of page table"
        each = f"{found.blocks.tokens} tokens are {_exact(found.blocks.bytes)}"
        yield f"blocks          {found.blocks.per_layer:,} in a layer; {each}; {table}"


def _group(found: Size) -> str:
    """The two numbers that arithmetic intensity rests on."""
    each = 2 * found.decoder.group / found.ai
    return f"G = {found.decoder.group} query heads per KV head, b = {each:.6g} bytes per element"


_REASONS = {
    "rows": "rows",
    "scales": "scales",
    "unused": "room for tokens to come",
    "block_rounding": "rest of last blocks",
    "row_padding": "padding of rows to lines",
    "head_padding": "padding between heads",
    "line_rounding": "padding of planes to lines",
}


def _allocated(found: Allocated, decoder: Decoder) -> Iterator[str]:
    counts = {label: getattr(found, name) for name, label in _REASONS.items() if getattr(found, name)}
    counts |= {"allocated": found.total, f"in pages of {size(found.page_bytes)}": found.mapped}
    width = max(len(f"{count:,}") for count in counts.values())
    yield f"allocated ({decoder.layout} layout, all layers in one block of memory), bytes"
    for label, count in counts.items():
        yield f"  {label:<28}{count:>{width},}"


def _ladder(rungs: Iterable[Rung]) -> list[str]:
    table = pd.DataFrame({**asdict(rung), "size": size(rung.bytes)} for rung in rungs)
    table["own"] = table["own"].map({True: "this model", False: ""})
    return ruled(table, _LADDER)


_LADDER = (
    Column("name", ""),
    Column("kv_heads", "KV heads"),
    Column("group", "query heads each"),
    Column("bytes", "bytes", "{:,}".format),
    Column("size", ""),
    Column("bytes_per_token", "per token", "{:,}".format),
    Column("ai", "FLOP/byte", "{:.4g}".format),
    Column("own", ""),
)


# ---- fleet and admission ---------------------------------------------------------------------------------------------


def _fleet(found: Fleet) -> Iterator[str]:
    if found.users == found.replicas == 1 and found.weights is None:
        return
    weights = f" and {size(found.weights)} of weights" if found.weights else ""
    users = f"{counted(found.users, 'user')} x {size(found.bytes_per_user)}{weights}"
    yield f"fleet: {users} = {_exact(found.bytes_per_replica)}"
    if found.replicas > 1:
        yield f"  {found.replicas} replicas: {_exact(found.bytes)}"


def _admission(found: Admission, decoder: Decoder) -> Iterator[str]:
    if found.budget is not None:
        tokens = "any number of" if found.tokens is None else f"{found.tokens:,}"
        full = ", the capacity," if found.tokens == decoder.capacity and found.tokens else ""
        whole = "" if found.sequences is None else f"; {_whole(found.sequences, decoder)} as allocated"
        yield f"admission: {size(found.budget)} hold {tokens} tokens{full} by the formula{whole}"
    if found.reservation:
        yield from _reservation(found.reservation, decoder, found.budget)


def _whole(sequences: int, decoder: Decoder) -> str:
    return f"{counted(sequences, 'whole sequence')} of {decoder.context:,}"


def _reservation(found: Reservation, decoder: Decoder, budget: int | None) -> Iterator[str]:
    ahead = f"room for {decoder.capacity or decoder.context:,} tokens"
    blocks = f"blocks of {found.block_tokens} tokens"
    rows = [{"way": ahead, **asdict(found.contiguous)}, {"way": blocks, **asdict(found.paged)}]
    columns = (*_RESERVED, Column("sequences", f"sequences in {size(budget)}", "{:,}".format)) if budget else _RESERVED
    each = "what each sequence reserves, padding counted as waste"
    yield f"lengths {found.lengths}: {found.mean:,.6g} tokens on average; {each}"
    yield from (f"  {line}" for line in ruled(pd.DataFrame(rows), columns))


_RESERVED = (
    Column("way", ""),
    Column("bytes", "reserved, mean", size),
    Column("waste", "wasted, of that", "{:.2%}".format),
    Column("padding", "padding alone", "{:.2%}".format),
)


# ---- on a machine ----------------------------------------------------------------------------------------------------


def _fit(found: Fit) -> Iterator[str]:
    threads = f"{counted(len(found.cpus), 'thread')} on CPU{'s' * (len(found.cpus) > 1)} {cpu_text(found.cpus)}"
    if not found.slice_bytes:
        yield f"fit: {found.machine}, {threads}: {found.reason}"
        return
    yield f"fit: {found.machine}, {threads}: a layer's {size(found.slice_bytes)} are {_place(found)}"
    if found.levels:
        yield from (f"  {line}" for line in ruled(_levels(found), _LEVELS))


def _place(found: Fit) -> str:
    words = {"mixed": "in no single level", "unknown": "nobody knows where", "DRAM": "in memory"}
    return f"{words.get(found.word, f'in {found.word}')} ({found.reason})"


def _levels(found: Fit) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "level": f"L{each.level}",
            "caches": size(each.capacity),
            "holds": size(each.holds),
            "fits": "fits" if each.fits else "no",
            "context": "any" if each.context is None else f"{each.context:,}",
            "gbps": each.gbps,
        }
        for each in found.levels
    )


_LEVELS = (
    Column("level", ""),
    Column("caches", "caches"),
    Column("holds", "hold"),
    Column("fits", "a layer"),
    Column("context", "up to context"),
    Column("gbps", "GB/s read", "{:.3g}".format),
)


def _rates(found: Size) -> Iterator[str]:
    rates = found.tokens_per_second
    yield f"tokens per second, {counted(found.decoder.batch, 'sequence')} a step"
    yield f"  K and V alone     {_bound(rates.kv)}"
    if rates.weights:
        yield f"  with the weights  {_bound(rates.weights)}"


def _bound(found: Bound) -> str:
    if found.tokens is None:
        return f"unknown: {found.reason}"
    where = "from memory" if found.level == "DRAM" else f"of {size(found.footprint)}"
    rate = f"the measured decode {found.decode}" if found.decode else f"plain reads {where}"
    most = "" if found.decode else "at most "
    said = f"{size(found.bytes)} a step at {found.gbps:.3g} GB/s, as {rate}"
    return f"{most}{found.tokens:,.4g} ({found.low:,.4g}..{found.high:,.4g}): {said}"

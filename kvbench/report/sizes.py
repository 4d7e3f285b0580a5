"""kvbench size: the size of a cache, and where a decoder's buffers lie, as lines of a terminal."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from kvbench.model.size import Allocated, ArenaMap, Size
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import template
from kvbench.texts import WIDTH
from kvbench.units import size

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
_RESERVED = (
    Column("way", ""),
    Column("bytes", "reserved, mean", size),
    Column("waste", "wasted, of that", "{:.2%}".format),
    Column("padding", "padding alone", "{:.2%}".format),
)
_LEVELS = (
    Column("level", "", "L{}".format),
    Column("capacity", "caches", size),
    Column("holds", "hold", size),
    Column("fits", "a layer"),
    Column("context", "up to context"),
    Column("gbps", "GB/s read", "{:.3g}".format),
)
_BUFFERS = (
    Column("offset", "offset", "0x{:X}".format),
    Column("end", "end", "0x{:X}".format),
    Column("size", "bytes", "{:,}".format),
    Column("name", "buffer"),
    Column("kind", "kind"),
    Column("canary", "canary", "{:,}".format),
    Column("shape", "shape"),
)
_REASONS = {
    "rows": "rows",
    "scales": "scales",
    "unused": "room for tokens to come",
    "block_rounding": "rest of last blocks",
    "row_padding": "padding of rows to lines",
    "head_padding": "padding between heads",
    "line_rounding": "padding of planes to lines",
}


def size_text(found: Size, plan: ArenaMap | None = None) -> list[str]:
    """The size of a cache as lines. `plan`: the decoder's buffers, for --map."""
    rungs = [
        asdict(each) | {"size": size(each.bytes), "own": "this model" if each.own else ""}
        for each in found.ladder
    ]
    levels = [
        asdict(each)
        | {
            "fits": "fits" if each.fits else "no",
            "context": "any" if each.context is None else f"{each.context:,}",
        }
        for each in found.fit.levels
    ]
    tables = {
        "allocated": _allocated(found.allocated),
        "ladder": _table(rungs, _LADDER, 2),
        "reserved": _reserved(found),
        "levels": _table(levels, _LEVELS),
    }
    lines = re.sub(r"\n\n+", "\n\n", template("size", "lines", found, tables)).strip().splitlines()
    lines = [
        part
        for line in lines
        for part in textwrap.wrap(line, WIDTH, subsequent_indent="    ") or [""]
    ]
    return [*lines, "", *(f"  {line}".rstrip() for line in map_text(plan))] if plan else lines


def _table(rows: Sequence[dict[str, object]], columns: Sequence[Column], indent: int = 4) -> str:
    return (
        textwrap.indent("\n".join(ruled(pd.DataFrame(rows), columns)), " " * indent) if rows else ""
    )


def _allocated(found: Allocated) -> str:
    parts = {label: getattr(found, name) for name, label in _REASONS.items()}
    counts = {
        **{label: count for label, count in parts.items() if count},
        "allocated": found.total,
        f"in pages of {size(found.page_bytes)}": found.mapped,
    }
    width = max(len(f"{count:,}") for count in counts.values())
    return "\n".join(f"    {label:<28}{count:>{width},}" for label, count in counts.items())


def _reserved(found: Size) -> str:
    held, of = found.admission, found.decoder
    if not held.reservation:
        return ""
    ahead, blocks = held.reservation.contiguous, held.reservation.paged
    rows = [
        {"way": f"room for {of.capacity or of.context:,} tokens", **asdict(ahead)},
        {"way": f"blocks of {held.reservation.block_tokens} tokens", **asdict(blocks)},
    ]
    more = (
        [Column("sequences", f"sequences in {size(held.budget)}", "{:,}".format)]
        if held.budget
        else []
    )
    return _table(rows, [*_RESERVED, *more])


def map_text(found: ArenaMap) -> list[str]:
    """A line for each buffer, then the share of each kind of buffer."""
    rows = [asdict(each) | {"shape": str(list(each.shape))} for each in found.buffers]
    kinds = ", ".join(f"{kind} {taken.share:.1%}" for kind, taken in found.kinds.items())
    share = found.buffer("kv_cache").size / found.total
    fenced = ", a canary of 0xDEADBEEF behind each buffer" if found.buffers[0].canary else ""
    return [
        *ruled(pd.DataFrame(rows), _BUFFERS),
        "",
        f"{found.total:,} B ({size(found.total)}) in all, of which the cache is {share:.1%}",
        f"by kind: {kinds}",
        (
            f"{found.model}, {found.context} tokens, cache {found.dtype}; each buffer starts at a"
            f" multiple of {found.align} bytes{fenced}"
        ),
    ]

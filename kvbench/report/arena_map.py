"""The arena map as lines of a terminal, and as plain data."""

from typing import Any

import pandas as pd

from kvbench.model import ArenaMap, Buffer
from kvbench.report.ruled import Column, ruled
from kvbench.units import size

_COLUMNS = (
    Column("offset", "offset"),
    Column("end", "end"),
    Column("size", "bytes", "{:,}".format),
    Column("name", "buffer"),
    Column("kind", "kind"),
    Column("shape", "shape"),
)
_FENCE = Column("canary", "canary", "{:,}".format)


def map_text(found: ArenaMap) -> list[str]:
    """A line for each buffer, and what the kinds of them take."""
    rows = [
        {
            "offset": f"0x{buffer.offset:X}",
            "end": f"0x{buffer.end:X}",
            "size": buffer.size,
            "name": buffer.name,
            "kind": buffer.kind,
            "canary": buffer.canary,
            "shape": str(list(buffer.shape)),
        }
        for buffer in found.buffers
    ]
    columns = (*_COLUMNS[:-1], _FENCE, _COLUMNS[-1]) if _fenced(found) else _COLUMNS
    return [*ruled(pd.DataFrame(rows), columns), "", *_sums(found), _rules(found)]


def _fenced(found: ArenaMap) -> bool:
    return any(buffer.canary for buffer in found.buffers)


def map_plain(found: ArenaMap) -> dict[str, Any]:
    facts = {"model": found.model, "context": found.context, "dtype": found.dtype, "align": found.align}
    shares = {kind: {"bytes": count, "share": count / found.total} for kind, count in by_kind(found).items()}
    return {**facts, "total": found.total, "kinds": shares, "buffers": [_plain(each) for each in found.buffers]}


def by_kind(found: ArenaMap) -> dict[str, int]:
    """Bytes of the buffers of each kind, in their order; of gaps and canaries under "between"."""
    counts: dict[str, int] = {}
    for buffer in found.buffers:
        counts[buffer.kind] = counts.get(buffer.kind, 0) + buffer.size
    between = found.total - sum(counts.values())
    return counts | ({"between": between} if between else {})


def _plain(buffer: Buffer) -> dict[str, Any]:
    names = ("name", "kind", "offset", "end", "size", "canary", "shape", "about")
    return {name: getattr(buffer, name) for name in names} | {"shape": list(buffer.shape)}


def _sums(found: ArenaMap) -> list[str]:
    kinds = ", ".join(f"{kind} {count / found.total:.1%}" for kind, count in by_kind(found).items())
    cache = found.buffer("kv_cache").size
    whole = f"{found.total:,} B ({size(found.total)}) in all, of which the cache is {cache / found.total:.1%}"
    return [whole, f"by kind: {kinds}"]


def _rules(found: ArenaMap) -> str:
    fenced = ", a canary of 0xDEADBEEF behind each" if _fenced(found) else ""
    return f"{found.model}, {found.context} tokens, cache {found.dtype}; every buffer at a multiple of {found.align}{fenced}"

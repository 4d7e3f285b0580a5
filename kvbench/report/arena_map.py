"""The arena map as lines of a terminal."""

from dataclasses import asdict

import pandas as pd

from kvbench.model.size import ArenaMap
from kvbench.report.ruled import Column, ruled
from kvbench.units import size

_COLUMNS = (
    Column("offset", "offset", "0x{:X}".format),
    Column("end", "end", "0x{:X}".format),
    Column("size", "bytes", "{:,}".format),
    Column("name", "buffer"),
    Column("kind", "kind"),
    Column("canary", "canary", "{:,}".format),
    Column("shape", "shape"),
)


def map_text(found: ArenaMap) -> list[str]:
    """A line for each buffer, and what the kinds of them take."""
    rows = [asdict(each) | {"end": each.end, "shape": str(list(each.shape))} for each in found.buffers]
    kinds = ", ".join(f"{kind} {taken.share:.1%}" for kind, taken in found.kinds.items())
    share = found.buffer("kv_cache").size / found.total
    fenced = ", a canary of 0xDEADBEEF behind each" if found.buffers[0].canary else ""
    return [
        *ruled(pd.DataFrame(rows), _COLUMNS),
        "",
        f"{found.total:,} B ({size(found.total)}) in all, of which the cache is {share:.1%}",
        f"by kind: {kinds}",
        f"{found.model}, {found.context} tokens, cache {found.dtype}; every buffer at a multiple of {found.align}{fenced}",
    ]

"""The arena map as lines of a terminal, and as plain data."""

from dataclasses import asdict, dataclass
from typing import Annotated

import pandas as pd

from kvbench.model import ArenaMap
from kvbench.model.annotated import about
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


@dataclass(frozen=True, slots=True)
class MapRow:
    """A buffer."""

    name: Annotated[str, about("what it holds")]
    kind: Annotated[str, about("how long it must stay", "input", "persistent", "scratch", "output")]
    offset: Annotated[int, about("bytes: where it begins")]
    end: Annotated[int, about("bytes: where it ends")]
    size: Annotated[int, about("bytes: of it")]
    canary: Annotated[int, about("bytes: of a known pattern behind it")]
    shape: Annotated[tuple[int, ...], about("elements in each direction")]
    about: Annotated[str, about("where its size is from")]


@dataclass(frozen=True, slots=True)
class KindBytes:
    """What buffers of a kind take."""

    bytes: Annotated[int, about("bytes: of them")]
    share: Annotated[float, about("share of the total")]


@dataclass(frozen=True, slots=True)
class Map:
    """Where each buffer of a decoder lies."""

    model: Annotated[str, about("its name")]
    context: Annotated[int, about("tokens")]
    dtype: Annotated[str, about("number format of the cache")]
    align: Annotated[int, about("bytes: every buffer begins at a multiple of it")]
    total: Annotated[int, about("bytes: of all of it")]
    kinds: Annotated[dict[str, KindBytes], about("by kind of buffer, and between for gaps and canaries")]
    buffers: Annotated[tuple[MapRow, ...], about("in their order")]


def map_rows(found: ArenaMap) -> Map:
    counts: dict[str, int] = {}
    for buffer in found.buffers:
        counts[buffer.kind] = counts.get(buffer.kind, 0) + buffer.size
    if between := found.total - sum(counts.values()):
        counts["between"] = between
    facts = {name: getattr(found, name) for name in ("model", "context", "dtype", "align", "total")}
    kinds = {kind: KindBytes(count, count / found.total) for kind, count in counts.items()}
    return Map(**facts, kinds=kinds, buffers=tuple(MapRow(**asdict(each), end=each.end) for each in found.buffers))


def map_text(plan: ArenaMap) -> list[str]:
    """A line for each buffer, and what the kinds of them take."""
    found = map_rows(plan)
    table = ruled(pd.DataFrame([asdict(each) | {"shape": str(list(each.shape))} for each in found.buffers]), _COLUMNS)
    cache = plan.buffer("kv_cache").size / found.total
    kinds = ", ".join(f"{kind} {each.share:.1%}" for kind, each in found.kinds.items())
    fenced = ", a canary of 0xDEADBEEF behind each" if found.buffers[0].canary else ""
    whole = f"{found.total:,} B ({size(found.total)}) in all, of which the cache is {cache:.1%}"
    of = f"{found.model}, {found.context} tokens, cache {found.dtype}"
    return [*table, "", whole, f"by kind: {kinds}", f"{of}; every buffer at a multiple of {found.align}{fenced}"]

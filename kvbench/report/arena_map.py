"""The arena map as lines of a terminal, and as plain data."""

from dataclasses import asdict, dataclass
from typing import Annotated

import pandas as pd

from kvbench.model import ArenaMap
from kvbench.model.annotated import about
from kvbench.report.ruled import Column, ruled
from kvbench.units import size

_COLUMNS = (
    Column("offset", "offset"),
    Column("end", "end"),
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


def map_text(found: ArenaMap) -> list[str]:
    """A line for each buffer, and what the kinds of them take."""
    rows = [
        asdict(buffer)
        | {"offset": f"0x{buffer.offset:X}", "end": f"0x{buffer.end:X}", "shape": str(list(buffer.shape))}
        for buffer in found.buffers
    ]
    return [*ruled(pd.DataFrame(rows), _COLUMNS), "", *_sums(found), _rules(found)]


def map_rows(found: ArenaMap) -> Map:
    return Map(
        model=found.model,
        context=found.context,
        dtype=found.dtype,
        align=found.align,
        total=found.total,
        kinds={kind: KindBytes(count, count / found.total) for kind, count in by_kind(found).items()},
        buffers=tuple(MapRow(**asdict(buffer), end=buffer.end) for buffer in found.buffers),
    )


def by_kind(found: ArenaMap) -> dict[str, int]:
    """Bytes of the buffers of each kind, in their order; of gaps and canaries under "between"."""
    counts: dict[str, int] = {}
    for buffer in found.buffers:
        counts[buffer.kind] = counts.get(buffer.kind, 0) + buffer.size
    between = found.total - sum(counts.values())
    return counts | ({"between": between} if between else {})


def _sums(found: ArenaMap) -> list[str]:
    kinds = ", ".join(f"{kind} {count / found.total:.1%}" for kind, count in by_kind(found).items())
    cache = found.buffer("kv_cache").size
    whole = f"{found.total:,} B ({size(found.total)}) in all, of which the cache is {cache / found.total:.1%}"
    return [whole, f"by kind: {kinds}"]


def _rules(found: ArenaMap) -> str:
    fenced = ", a canary of 0xDEADBEEF behind each" if found.buffers[0].canary else ""
    return f"{found.model}, {found.context} tokens, cache {found.dtype}; every buffer at a multiple of {found.align}{fenced}"

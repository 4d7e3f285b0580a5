"""The arena map: where a decoder's buffers lie in one block of memory.

for each buffer, in the order of buffers.toml: the next aligned offset, its bytes, then its canary
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kvbench.errors import BadArgument
from kvbench.model import ArenaMap, Buffer
from kvbench.model.size import Decoder
from kvbench.native import Cache, default_library
from kvbench.sizing.expressions import ALLOWED, evaluate
from kvbench.suite import model as geometry
from kvbench.suite import stated

CANARY = bytes.fromhex("deadbeef")
_CANARY_BYTES = 64  # at least: up to the next aligned offset there may be more
_LINE = 64  # a cache of the library begins on one
PLAN = Path(__file__).with_name("buffers.toml")
_PAD = 0  # bytes between the heads of the mapped cache
_KINDS = ("input", "persistent", "scratch", "output")
_NEEDED = ("hidden", "intermediate", "vocabulary")
_LARGEST = 1 << 62


@dataclass(frozen=True, slots=True)
class Planned:
    """A buffer as buffers.toml has it: `size` and `shape` are arithmetic on names."""

    name: str
    kind: str
    size: str
    shape: tuple[str, ...]
    about: str


def arena_map(
    model: str, context: int, dtype: str, align: int = _LINE, canaries: bool = False, plan: Path = PLAN
) -> ArenaMap:
    """`dtype` is the cache's. `canaries`: a known pattern behind every buffer, which an overrun destroys. `plan`: the
    file of its buffers."""
    names = _names(model, context, dtype)
    if align < _LINE or align & (align - 1):
        raise BadArgument(f"align is {align}", f"a power of two, at least {_LINE}")
    return ArenaMap(model, context, dtype, align, tuple(_laid(plan, names, align, canaries)))


def mapped(model: str, context: int, dtype: str) -> Decoder:
    """Whose buffers are mapped: every layer keeps all of one sequence, rows one behind another."""
    known = geometry(model)
    shape = {name: getattr(known, name) for name in ("layers", "q_heads", "kv_heads", "head_dim")}
    cache = Cache.planned(1, known.head_dim, 1, dtype=dtype, pad=_PAD)
    numbers = {"layout": cache.layout, "inner": cache.inner, "scale": cache.k.scale}
    words = {kind: default_library().words(kind)[number] for kind, number in numbers.items()}
    facts = {"block_tokens": cache.block_tokens, "capacity": context, "pad": _PAD}
    return Decoder(model, **shape, context=context, batch=cache.batch, dtype=dtype, **words, **facts)


def read(path: Path) -> tuple[Planned, ...]:
    """The buffers of a plan, in their order."""
    try:
        tables = tomllib.loads(path.read_text())["buffer"]
        if not (isinstance(tables, list) and tables):
            raise KeyError
    except (OSError, ValueError) as error:
        raise BadArgument(f"cannot read {path.name}: {error}", "the plan of the buffers is a TOML file") from None
    except KeyError:
        raise BadArgument(f"{path.name} has no buffers", "each begins with [[buffer]]") from None
    found = tuple(_planned(path.name, number, table) for number, table in enumerate(tables, 1))
    names = [each.name for each in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadArgument(f"{path.name}: buffer {min(twice)!r} is there twice", "each needs a name of its own")
    return found


def _planned(file: str, number: int, table: Any) -> Planned:
    wanted = [field.name for field in fields(Planned)]
    if not isinstance(table, Mapping) or set(table) != set(wanted):
        raise BadArgument(f"{file}: buffer {number} has other keys", f"it needs: {', '.join(wanted)}")
    texts = [value for key, value in table.items() if key != "shape"]
    dims = table["shape"]
    if not all(isinstance(text, str) and text for text in texts) or not isinstance(dims, list) or not dims:
        raise BadArgument(f"{file}: buffer {number}: a value is no text", "shape is a list of texts, all else is text")
    if table["kind"] not in _KINDS:
        raise BadArgument(
            f"{file}: buffer {table['name']!r}: kind is {table['kind']!r}", f"one of: {', '.join(_KINDS)}"
        )
    return Planned(**{**table, "shape": tuple(map(str, dims))})


def _names(model: str, context: int, dtype: str) -> dict[str, int]:
    """What expressions may name."""
    known = stated(model, *_NEEDED)
    if not 1 <= context <= _LARGEST // max(known.vocabulary, known.q_heads * known.head_dim):
        raise BadArgument(f"context is {context}", "at least 1, and no more than memory can hold")
    one = Cache.planned(1, known.head_dim, 1, dtype=dtype, pad=_PAD)
    rows = {"row_bytes": one.k.row_bytes, "scale_bytes": one.k.scale_token_stride}
    words = ("layers", "q_heads", "kv_heads", "head_dim", *_NEEDED)
    return {"context": context} | {word: getattr(known, word) for word in words} | rows


def _laid(path: Path, names: Mapping[str, int], align: int, canaries: bool) -> Iterator[Buffer]:
    offset = 0
    for each in read(path):
        where = f"{path.name}: buffer {each.name!r}"
        size = _evaluated(f"{where}: size", each.size, names)
        shape = tuple(_evaluated(f"{where}: shape", text, names) for text in each.shape)
        least = offset + size + (_CANARY_BYTES if canaries else 0)
        after = -(-least // align) * align
        yield Buffer(each.name, each.kind, offset, size, shape, each.about, after - offset - size if canaries else 0)
        offset = after


def _evaluated(where: str, text: str, names: Mapping[str, int]) -> int:
    try:
        found = evaluate(text, names)
    except ValueError as error:
        raise BadArgument(f"{where}: {error}", f"it may have {ALLOWED}") from None
    if not 1 <= found < _LARGEST:
        raise BadArgument(f"{where} is {found}", f"from 1 to {_LARGEST}")
    return found

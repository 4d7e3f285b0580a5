"""Sizes of the tensors of a Hugging Face folder: from the headers of its files, or the names that their index lists."""

import struct
from pathlib import Path

import msgspec

from kvbench import named
from kvbench.errors import BadArgument

INDEX, ALONE = "model.safetensors.index.json", "model.safetensors"
_HINT = "name the config.json of a folder as Hugging Face publishes it"
_COLONS = 400_000  # in a header or an index: a few for each tensor, of which no model has so many
_LONGEST = 1 << 24  # bytes of either
_FILES = 2000


class _Tensor(msgspec.Struct):
    data_offsets: tuple[int, int] = (0, 0)


class _Total(msgspec.Struct):
    total_size: int | float | None = None


class _Index(msgspec.Struct):
    weight_map: dict[str, str]
    metadata: _Total = msgspec.field(default_factory=_Total)


def parsed(path: Path, text: bytes, kind: type) -> object:
    """JSON from a file, as such a value."""
    if text.count(b":") > _COLONS:
        raise BadArgument(f"{path}: it lists more than any model has", _HINT)
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadArgument(f"{path}: {str(error)[:120]}", _HINT) from None


def read_text(path: Path, most: int) -> bytes:
    try:
        return named.text(path, most).encode()
    except OSError as error:
        raise BadArgument(f"{path} cannot be read: {error.strerror}", _HINT) from None


def tensors(folder: Path) -> tuple[dict[str, int] | None, frozenset[str], int | None]:
    """Bytes by name, where files say them; all names; and the sum that an index states. No names: there is neither."""
    if not (folder / INDEX).exists():
        sizes = _header(folder / ALONE) if (folder / ALONE).exists() else None
        return sizes, frozenset(sizes or ()), None
    path = folder / INDEX
    index = parsed(path, read_text(path, _LONGEST), _Index)
    files = sorted(set(index.weight_map.values()))
    if odd := [name for name in files if "/" in name or "\0" in name or name in ("", ".", "..")]:
        raise BadArgument(f"{path}: {odd[0][:60]!r} is no name of a file beside it", _HINT)
    if len(files) > _FILES:
        raise BadArgument(f"{path}: it names {len(files)} files", f"at most {_FILES}")
    total = index.metadata.total_size
    sizes = None
    if all((folder / name).exists() for name in files):
        found = {name: count for file in files for name, count in _header(folder / file).items()}
        if missing := index.weight_map.keys() - found.keys():
            raise BadArgument(f"{path}: no file has {min(missing)[:80]}", "fetch the model's files again")
        sizes = {name: found[name] for name in index.weight_map}
    return sizes, frozenset(index.weight_map), None if total is None else int(total)


def _header(path: Path) -> dict[str, int]:
    try:
        with named.opened(path) as file:
            room = file.seek(0, 2) - 8
            file.seek(0)
            (length,) = struct.unpack("<Q", file.read(8)) if room >= 0 else (0,)
            if not 0 < length <= min(room, _LONGEST):
                raise BadArgument(f"{path} is no safetensors file, or was cut off", "fetch it again")
            text = file.read(length)
    except OSError as error:
        raise BadArgument(f"{path} cannot be read: {error.strerror}", _HINT) from None
    found = parsed(path, text, dict[str, _Tensor])
    found.pop("__metadata__", None)
    for name, tensor in found.items():
        begin, end = tensor.data_offsets
        if not 0 <= begin <= end <= room - length:
            raise BadArgument(f"{path} was cut off: {name[:80]} lies beyond its end", "fetch it again")
    return {name: tensor.data_offsets[1] - tensor.data_offsets[0] for name, tensor in found.items()}

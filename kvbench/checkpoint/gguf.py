"""A .gguf file: its header alone. What it counts is held against the file before anything is read by these counts.

The package gguf says what types of tensors take; its reader is not used, for it maps and unpacks all that a header
claims.
"""

import math
import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kvbench import named
from kvbench.checkpoint.tensors import weights_of
from kvbench.errors import BadArgument, Unsupported
from kvbench.model.weights import Weights
from kvbench.suite import Model

MAGIC = b"GGUF"
_HINT = "name a whole .gguf file of version 2 or 3"
_TENSORS, _KEYS, _TEXTS = 1 << 17, 1 << 14, 1 << 21  # of each; no model has so many
_KEPT = 1 << 16  # bytes of a value that is looked at: longer ones are skipped
_HEADER = 1 << 27  # bytes
_SCALARS = "BbHhIif?"  # by number of the type; then text, list and three of 8 bytes
_WIDE = {10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_TABLE = "token_embd.weight"
_ORDER = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "llama4": 4, "cohere2": 4}  # of so many layers the last has no window
_CHUNK = {"llama4": 8192}  # tokens that its other layers attend to, where the file is silent


class _Header:
    """Read on and on; beyond the end there is nothing."""

    def __init__(self, path: Path, room: mmap.mmap) -> None:
        self._path, self._room, self._at, self._texts = path, room, len(MAGIC), 0
        self._end, self.vocabulary = min(len(room), _HEADER), 1

    def refuse(self, what: str) -> BadArgument:
        return BadArgument(f"{self._path}: {what}", _HINT)

    def number(self, form: str = "Q") -> Any:
        begin = self.skip(struct.calcsize(form))
        return struct.unpack_from(f"<{form}", self._room, begin)[0]

    def skip(self, count: int) -> int:
        """Where it began."""
        begin, self._at = self._at, self._at + count
        if self._at > self._end:
            raise self.refuse("the file was cut off, or is no GGUF: its header goes on beyond its end")
        return begin

    def count(self, most: int, what: str) -> int:
        if (found := self.number()) > most:
            raise self.refuse(f"it counts {found} {what}, more than any model has")
        return found

    def text(self) -> str:
        length = self.number()
        begin = self.skip(length)
        return self._room[begin : begin + min(length, _KEPT)].decode("utf-8", "replace")

    def value(self) -> Any:
        """None for what nobody asks for: lists of texts, and long ones."""
        kind = self.number("I")
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            return self.number(self._form(kind))
        inner, length = self.number("I"), self.number()
        if inner == _TEXT:
            self._skip_texts(length)
            return None
        form = self._form(inner)
        begin = self.skip(length * struct.calcsize(form))
        return list(struct.unpack_from(f"<{length}{form}", self._room, begin)) if length <= _KEPT else None

    def _skip_texts(self, count: int) -> None:
        """Hundreds of thousands of words: without a call for each."""
        self._texts += count
        if self._texts > _TEXTS:
            raise self.refuse(f"it has {self._texts} texts, more than any model has")
        at, room, end, length_at = self._at, self._room, self._end - 8, struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at > end:
                break
            at += 8 + length_at(room, at)[0]
        self.skip(at - self._at)

    def _form(self, kind: int) -> str:
        form = _SCALARS[kind] if kind < len(_SCALARS) else _WIDE.get(kind)
        if form is None:
            raise self.refuse(f"it has a value of an unknown type, {kind}")
        return form

    def facts(self, count: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(count):
            name = self.text()
            if name in found:
                raise self.refuse(f"{name[:60]!r} stands in it twice")
            found[name] = self.value()
        return found

    def tensors(self, count: int, start: int) -> dict[str, int]:
        """Bytes by name; each must lie inside the file."""
        found: dict[str, int] = {}
        ends = 0
        for _ in range(count):
            name, axes = self.text(), self.number("I")
            if axes > 8 or name in found:
                raise self.refuse(f"its tensor {name[:60]!r} has {axes} axes, or stands twice")
            shape = [self.number() for _ in range(axes)]
            found[name] = self._bytes(math.prod(shape), self.number("I"), name)
            if name == _TABLE and shape:
                self.vocabulary = max(1, shape[-1])
            ends = max(ends, self.number() + found[name])
        begin = -(-self._at // start) * start
        if begin + ends > len(self._room):
            raise self.refuse(f"the file was cut off: {begin + ends - len(self._room)} bytes are missing")
        return found

    def _bytes(self, elements: int, kind: int, name: str) -> int:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        try:
            block, each = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (ValueError, KeyError):
            raise self.refuse(f"its tensor {name[:60]!r} has an unknown type, {kind}") from None
        return elements // block * each


def read_gguf(path: Path) -> tuple[Model, str]:
    """And why its weights are not known; else empty."""
    try:
        import gguf.constants  # noqa: F401
    except ImportError:
        raise Unsupported(f"{path}: to read it needs the package gguf", "pip install 'kvbench[explain]'") from None
    try:
        with named.opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as room:
            return _model(path, _Header(path, room), bytes(room[:4]))
    except (OSError, ValueError) as error:  # what is empty cannot be mapped
        if isinstance(error, BadArgument):
            raise
        raise BadArgument(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", _HINT) from None


def _model(path: Path, header: _Header, magic: bytes) -> tuple[Model, str]:
    if magic != MAGIC or header.number("I") not in (2, 3):
        raise header.refuse("it is no GGUF file of version 2 or 3")
    tensors, keys = header.count(_TENSORS, "tensors"), header.count(_KEYS, "keys")
    facts = header.facts(keys)
    start = facts.get("general.alignment", 32)
    if type(start) is not int or not 0 < start <= 1 << 20:
        raise header.refuse("general.alignment is no number of bytes")
    sizes = header.tensors(tensors, start)
    own = _Own(header, str(facts.get("general.architecture", "")), facts)
    ahead = frozenset(int(name.split(".")[1]) for name in sizes if name.startswith("blk.") and ".nextn." in name)
    layers = own.count("block_count") - len(ahead)
    weights, why = _weights(own, sizes, ahead)
    window, every = _window(own, layers)
    return Model(
        layers=layers,
        max_context=own.count("context_length"),
        source=str(path),
        window=window,
        window_every=every,
        **_heads(own),
        weights=weights,
    ), why


class _Own:
    """The keys of an architecture."""

    def __init__(self, header: _Header, name: str, facts: Mapping[str, Any]) -> None:
        self.header, self.name, self.facts = header, name, facts

    def value(self, key: str) -> Any:
        return self.facts.get(f"{self.name}.{key}")

    def counts(self, key: str, default: int | None = None) -> Iterator[int]:
        """One, or one for each layer."""
        found = self.value(key)
        for each in found if isinstance(found, list) else [default if found is None else found]:
            if type(each) is not int or not 0 <= each < 1 << 31:
                raise self.header.refuse(f"{self.name}.{key} is {'missing' if each is None else str(each)[:60]}")
            yield each

    def count(self, key: str, default: int | None = None) -> int:
        found = set(self.counts(key, default))
        if len(found) != 1 or not (one := found.pop()) and default != 0:
            raise self.header.refuse(f"{self.name}.{key} differs from layer to layer, or is 0")
        return one


def _heads(own: _Own) -> dict[str, int]:
    heads = own.count("attention.head_count")
    if rank := own.count("attention.kv_lora_rank", 0):
        row = rank + own.count("rope.dimension_count")
        return {"q_heads": heads, "kv_heads": 1, "head_dim": row, "latent": rank}
    kv_heads = own.count("attention.head_count_kv", heads)
    each = own.count("attention.key_length", own.count("embedding_length") // heads)
    if heads % kv_heads or own.count("attention.value_length", each) != each:
        raise own.header.refuse("its rows of K and of V differ, or its heads do not divide")
    return {"q_heads": heads, "kv_heads": kv_heads, "head_dim": each}


def _window(own: _Own, layers: int) -> tuple[int, int]:
    window = own.count("attention.sliding_window", _CHUNK.get(own.name, 0))
    if not window:
        return 0, 0
    if own.name not in _ORDER:
        raise own.header.refuse(f"its layers have a window of {window}, and nothing says which of them")
    return window, _ORDER[own.name]


def _weights(own: _Own, sizes: Mapping[str, int], ahead: frozenset[int]) -> tuple[Weights | None, str]:
    parts = own.facts.get("split.count") or 1
    if parts != 1:
        return None, f"it is one of {parts} files, whose tensors are apart"
    experts, chosen = own.count("expert_count", 0), own.count("expert_used_count", 0)
    return weights_of(sizes, own.header.vocabulary, ahead, experts, chosen), ""

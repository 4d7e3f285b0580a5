"""Read the header of a .gguf file. Its counts are compared with the file's size before anything is
read by them.

The package gguf says how many bytes types of tensors take. Its reader is not used: it maps and
unpacks all that a header claims.
"""

import math
import mmap
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvbench import named
from kvbench.checkpoint.facts import Facts, model_of, weights_of
from kvbench.errors import BadArgument, Unsupported
from kvbench.suite import Model

_MAGIC = 0x46554747
_HINT = "give a complete .gguf file of version 2 or 3"
_TENSORS, _KEYS, _TEXTS = 1 << 17, 1 << 14, 1 << 21  # most in a file; no model has as many
_KEPT, _HEADER = 1 << 16, 1 << 27  # bytes of a value that is kept, and of a header
_TYPES = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_TABLE, _AHEAD = "token_embd.weight", re.compile(r"blk\.(\d{1,9})\.nextn\.")
_NAMES = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "v_head_dim",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "attention.kv_lora_rank": "kv_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim",
    "attention.sliding_window": "sliding_window",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
}
# By architecture: in how many layers one has no window.
_ORDER = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "llama4": 4, "cohere2": 4}
_SILENT = {"llama4": {"attention_chunk_size": 8192}}


class _Header:
    """Reads the header in order. Reading beyond the end is an error."""

    def __init__(self, path: Path, room: mmap.mmap) -> None:
        self._path, self._room, self._at, self._texts = path, room, 0, 0
        self._end, self.vocabulary = min(len(room), _HEADER), 1
        self.elements: dict[str, int] = {}  # by tensor

    def refuse(self, what: str) -> BadArgument:
        return BadArgument(f"{self._path}: {what}", _HINT)

    def number(self, form: str = "Q") -> Any:
        begin = self.skip(struct.calcsize(form))
        return struct.unpack_from(f"<{form}", self._room, begin)[0]

    def skip(self, count: int) -> int:
        """Skip `count` bytes; return where they began."""
        begin, self._at = self._at, self._at + count
        if self._at > self._end:
            raise self.refuse(
                "the file was cut off, or is not GGUF: its header ends beyond the file's end"
            )
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
        """Read a value; None for a value that is not needed: lists of texts, and long lists."""
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
        return (
            list(struct.unpack_from(f"<{length}{form}", self._room, begin))
            if length <= _KEPT
            else None
        )

    def _skip_texts(self, count: int) -> None:
        """Skip a list of texts, perhaps hundreds of thousands, without a call for each."""
        self._texts += count
        if self._texts > _TEXTS:
            raise self.refuse(f"it has {self._texts} texts, more than any model has")
        at = self._at
        room = self._room
        end = self._end - 8
        length_at = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at > end:
                break
            at += 8 + length_at(room, at)[0]
        self.skip(at - self._at)

    def _form(self, kind: int) -> str:
        if kind not in _TYPES:
            raise self.refuse(f"it has a value of an unknown type, {kind}")
        return _TYPES[kind]

    def facts(self, count: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(count):
            name = self.text()
            if name in found:
                raise self.refuse(f"its key {name[:60]!r} occurs twice")
            found[name] = self.value()
        return found

    def tensors(self, count: int, start: Any) -> dict[str, int]:
        """Bytes of tensors, by name. Each must lie inside the file, after a multiple of `start`."""
        if type(start) is not int or not 0 < start <= _KEPT:
            raise self.refuse("general.alignment is not a number of bytes")
        found: dict[str, int] = {}
        ends = 0
        for _ in range(count):
            name, axes = self.text(), self.number("I")
            if axes > 8 or name in found:
                raise self.refuse(f"its tensor {name[:60]!r} has {axes} axes, or occurs twice")
            shape = [self.number() for _ in range(axes)]
            self.elements[name] = math.prod(shape)
            found[name] = self._bytes(self.elements[name], self.number("I"), name)
            if name == _TABLE and shape:
                self.vocabulary = max(1, shape[-1])
            ends = max(ends, self.number() + found[name])
        begin = -(-self._at // start) * start
        if begin + ends > len(self._room):
            raise self.refuse(
                f"the file was cut off: {begin + ends - len(self._room)} bytes are missing"
            )
        return found

    def _bytes(self, elements: int, kind: int, name: str) -> int:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        try:
            block, each = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (ValueError, KeyError):
            raise self.refuse(f"its tensor {name[:60]!r} has an unknown type, {kind}") from None
        return elements // block * each


def read_gguf(path: Path) -> tuple[Model, str]:
    """Read the model; also return why its weights are unknown (empty if known)."""
    try:
        import gguf.constants  # noqa: F401
    except ImportError:
        raise Unsupported(
            f"{path}: reading it needs the package gguf", "pip install 'kvbench[explain]'"
        ) from None
    try:
        with (
            named.opened(path) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as room,
        ):
            return _read(path, _Header(path, room))
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        if isinstance(error, BadArgument):
            raise
        raise BadArgument(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", _HINT
        ) from None


def _read(path: Path, header: _Header) -> tuple[Model, str]:
    if header.number("I") != _MAGIC or header.number("I") not in (2, 3):
        raise header.refuse("it is not a GGUF file of version 2 or 3")
    tensors, keys = header.count(_TENSORS, "tensors"), header.count(_KEYS, "keys")
    found = header.facts(keys)
    sizes = header.tensors(tensors, found.get("general.alignment", 32))
    facts = _facts(path, found)
    ahead = frozenset(int(each[1]) for name in sizes if (each := _AHEAD.match(name)))
    facts.found["num_hidden_layers"] = facts.layers - len(ahead)
    if found.get("split.count") not in (None, 0, 1):
        return model_of(facts, None), "it is one of several files; the others hold more tensors"
    weights = weights_of(facts, sizes, header.elements, header.vocabulary, ahead)
    return model_of(facts, weights), ""


def _facts(path: Path, found: Mapping[str, Any]) -> Facts:
    """The header's facts under config.json's names. A value may be one number per layer."""
    arch = str(found.get("general.architecture", ""))
    own = {name: found.get(f"{arch}.{key}") for key, name in _NAMES.items()}
    own = {
        name: value[0] if isinstance(value, list) and len(set(value)) == 1 else value
        for name, value in own.items()
    }
    told = {"model_type": arch, "sliding_window_pattern": _ORDER.get(arch)}
    facts = Facts(path, own | told | _SILENT.get(arch, {}))
    if facts.some("sliding_window") and arch not in _ORDER:
        raise facts.refuse("some layers have a window, but the file does not say which")
    return facts

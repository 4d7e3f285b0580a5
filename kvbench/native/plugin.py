"""Kernels of somebody else: a shared object whose functions are called for the units that our threads cut."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cffi

from kvbench.errors import BadArgument, BadLibrary
from kvbench.model import Kernel

if TYPE_CHECKING:
    from kvbench.native.library import Library

_OP = "decode"
_WORD = re.compile(r"[a-z0-9_]{1,32}")
_ALL = "all"  # of the words of an axis: none of them may be called so
_EXAMPLE = "kernels/example/plugin.c shows how one is made"
_symbol = cffi.FFI()
_symbol.cdef("extern int32_t kvb_plugin;")  # of plug-ins alone: abi.h cannot declare what the library lacks


def is_plugin(path: Path | str) -> bool:
    """Whether a shared object calls itself a plug-in; other ones may be libraries of kernels."""
    return _version(Path(path)) is not None


def _version(path: Path) -> int | None:
    try:
        return _opened(_symbol, path).kvb_plugin
    except (AttributeError, KeyError):  # what cffi says of a variable that is not there
        return None


def _opened(ffi: cffi.FFI, path: Path) -> Any:
    try:
        return ffi.dlopen(str(path.absolute()))
    except OSError as error:
        why = str(error).partition(".  Additionally")[0]  # cffi goes on about names that are no paths
        raise BadLibrary(why, "a shared object for this machine is needed") from None


class Plugin:
    """An opened plug-in. `kernels`: what it lists, all of it checked against the library's words."""

    def __init__(self, path: Path | str, library: "Library") -> None:
        self.path, self._library = Path(path), library
        version, ours = _version(self.path), getattr(library.lib, "KVB_PLUGIN", 0)  # 0: of before there were any
        if version is None:
            raise BadLibrary(f"{path} is no plug-in: it does not export kvb_plugin", _EXAMPLE)
        if version != ours:
            what = f"{path} is a plug-in of version {version}, and {library.path.name} takes version {ours}"
            raise BadLibrary(what, "build it again with the abi.h of that library")
        self._lib = _opened(library.ffi, self.path)
        self._runs: dict[tuple[str, ...], Any] = {}
        self.kernels = tuple(self._kernel(*row) for row in enumerate(self._rows()))
        if not self.kernels:
            raise BadLibrary(f"{path} lists no kernels", _EXAMPLE)
        self.variants = tuple(dict.fromkeys(kernel.variant for kernel in self.kernels))

    def run(self, *words: str) -> Any:
        """The function for a variant, layout, dtype and isa."""
        if words not in self._runs:
            variant, *cell = words
            offered = (".".join(have[1:]) for have in self._runs if have[0] == variant)
            raise BadArgument(f"variant {variant} has no kernel for {'.'.join(cell)}", f"it has: {', '.join(offered)}")
        return self._runs[words]

    def _rows(self) -> Iterator[Any]:
        try:
            table = self._lib.kvb_kernels
        except AttributeError:
            raise BadLibrary(f"{self.path} does not export kvb_kernels", _EXAMPLE) from None
        for index in count():
            if (row := table(index)) == self._library.ffi.NULL:
                return
            yield row

    def _kernel(self, index: int, row: Any) -> Kernel:
        where = f"{self.path}: kernel {index}"
        texts = {name: self._text(where, name, row) for name in ("op", "variant", "layout", "dtype", "isa", "about")}
        kernel = Kernel(**texts, runnable=bool(row.runnable) and texts["isa"] in self._library.isas())
        self._refuse_words(where, kernel)
        words = (kernel.variant, kernel.layout, kernel.dtype, kernel.isa)
        if words in self._runs:
            raise BadLibrary(f"{where}: {kernel.id} is listed twice", "kvb_kernels returns null behind its last kernel")
        if row.run == self._library.ffi.NULL:
            raise BadLibrary(f"{where}: {kernel.id} has no function", "set its run, the last field of kvb_kernel")
        self._runs[words] = row.run
        return kernel

    def _text(self, where: str, name: str, row: Any) -> str:
        chars = getattr(row, name)
        text = b"" if chars == self._library.ffi.NULL else self._library.ffi.string(chars)
        if not text or not text.isascii() or not text.decode().isprintable():
            raise BadLibrary(f"{where}: {name} is no printable text", _EXAMPLE)
        return text.decode()

    def _refuse_words(self, where: str, kernel: Kernel) -> None:
        library = self._library
        for name, allowed in ((name, library.words(name)) for name in ("layout", "dtype", "isa")):
            if (word := getattr(kernel, name)) not in allowed:
                raise BadLibrary(f"{where}: {name} {word!r} is not known", f"one of: {', '.join(allowed)}")
        if kernel.op != _OP:
            raise BadLibrary(f"{where}: op {kernel.op!r} cannot be plugged in", f"only {_OP} can")
        if not _WORD.fullmatch(kernel.variant):
            hint = "up to 32 small letters, digits and underscores"
            raise BadLibrary(f"{where}: variant {kernel.variant!r} is no word", hint)
        if kernel.variant in (_ALL, *library.own_variants):
            raise BadLibrary(f"{where}: variant {kernel.variant} is taken", "choose a word of your own")

"""Plug-ins: shared objects with other people's kernels. Our threads call their functions, one work
unit a call.

A plug-in is foreign code. A process that lists kernels, plans or reports never loads it: a child
process loads it, and reports what it found. Only the process that runs its kernels loads it for
good (see kvbench.worker).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cffi

from kvbench import named
from kvbench.apart import Ended, apart
from kvbench.errors import BadArgument, BadLibrary, unknown_word
from kvbench.model import Kernel
from kvbench.model.masks import CHAIN

if TYPE_CHECKING:
    from kvbench.native.library import Library

_OP = "decode"
_WORD = re.compile(r"[a-z0-9_]{1,32}")
_QUERIES, _MASK = "KVB_TAKES_QUERIES", "KVB_TAKES_MASK"
_SOFTCAP, _SLOPE, _CHANNEL = "KVB_TAKES_SOFTCAP", "KVB_TAKES_SLOPE", "KVB_TAKES_CHANNEL"
# the library itself handles sinks and kept tokens
_TAKEN = (_QUERIES, _MASK, _SOFTCAP, _SLOPE, _CHANNEL)
_AT = "@"  # parts a variant from the plug-in's file stem, if two plug-ins have the variant
_ALL = "all"  # a word of every axis, so that no variant may have this name
_EXAMPLE = "see kvbench verify --example for how to make a plug-in"
_PATIENCE = 30.0  # seconds for loading a plug-in and listing its kernels
_EXPORTED = (b"kvb_kernels\0", b"kvb_plugin\0")  # as the symbols stand in a shared object
_symbol = cffi.FFI()
# declared for plug-ins only: abi.h cannot declare what the library lacks
_symbol.cdef("extern int32_t kvb_plugin;")


def opened(
    ffi: cffi.FFI, path: Path, hint: str = "a shared object for this machine is needed"
) -> Any:
    """Open a shared object by path."""
    try:
        return ffi.dlopen(str(path.absolute()))
    except OSError as error:
        # cffi's message also lists places where it did not look by path
        why = str(error).partition(".  Additionally")[0]
        raise BadLibrary(why, hint) from None


def is_plugin(path: Path | str, hint: str = _EXAMPLE) -> bool:
    """Whether a shared object is a plug-in, not a kernel library. `hint`: for the error if it is
    neither.
    """
    path = Path(path)
    with named.opened(path) as file:
        exported = file.read()
    if not any(name in exported for name in _EXPORTED):  # it is not even loaded
        raise BadLibrary(
            f"{path} is neither a kernel library of kvbench nor a plug-in: it lacks kvb_kernels",
            hint,
        )
    return _looked_at(_version, path) is not None


def _looked_at(look: Any, path: Path, *args: Any) -> Any:
    """Call `look` in a child process that loads the plug-in."""
    try:
        return apart(look, path, *args, patience=_PATIENCE)
    except Ended as end:
        raise BadLibrary(
            f"{path}: the process that loaded it {end.how}", "fix what the plug-in does on loading"
        ) from None


def _version(path: Path) -> int | None:
    try:
        return opened(_symbol, path).kvb_plugin
    except (AttributeError, KeyError):  # cffi raises these for a missing variable
        return None


def _listed(path: Path, library: Path, interface: Path) -> dict[Kernel, int]:
    from kvbench.native.library import Library

    return {kernel: takes for kernel, takes, _ in Plugin(path, Library(library, interface)).rows}


class Asked(NamedTuple):
    """What a decode asks for that a plug-in's kernel need not take. ragged: sequences have
    different numbers of queries. softcap, slopes: scores have them. channel: K has scales by
    channel.
    """

    queries: int = 1
    mask: str = CHAIN
    window: int = 0
    ragged: bool = False
    softcap: bool = False
    slopes: bool = False
    channel: bool = False

    def missing(self, takes: int, lib: Any) -> str:
        """Why a kernel with this sum of KVB_TAKES_* refuses this decode; else empty."""
        several = f"{self.queries} queries of a sequence"
        if self.queries > 1 and self.window:
            return f"{several} with a window, which plug-ins cannot take"
        asked = {
            several: self.queries > 1 and _QUERIES,
            "different numbers of queries": self.ragged and _QUERIES,
            f"the mask {self.mask}": self.mask != CHAIN and _MASK,
            "softcap": self.softcap and _SOFTCAP,
            "slopes": self.slopes and _SLOPE,
            "K by channel": self.channel and _CHANNEL,
        }
        for what, name in asked.items():
            if name and not takes & getattr(lib, name):
                return f"{what}, and kvb_kernel.takes lacks {name}"
        return ""


ONE_QUERY = Asked()


class Plugins:
    """All plug-ins of a `library`. If two have the same variant, the stem of the file tells them
    apart: `textbook@old` is the variant `textbook` of old.so.
    """

    def __init__(self, paths: Iterable[Path | str], library: "Library") -> None:
        self.each = tuple(Plugin(path, library) for path in paths)
        named: dict[str, Path] = {}
        for plugin in self.each:
            other = named.setdefault(plugin.stem, plugin.path)
            if other is not plugin.path:
                raise BadArgument(
                    f"--plugin: {other} and {plugin.path} are both called {plugin.stem}",
                    "rename one: plug-ins are told apart by the stem of the file",
                )

    def __bool__(self) -> bool:
        return bool(self.each)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(plugin.path for plugin in self.each)

    @cached_property
    def _shared(self) -> set[str]:
        """Variants that several plug-ins have. A single plug-in need not be listed for that."""
        if len(self.each) < 2:
            return set()
        offers = Counter(variant for plugin in self.each for variant in plugin.variants)
        return {variant for variant, count in offers.items() if count > 1}

    def told(self, plugin: "Plugin") -> tuple[Kernel, ...]:
        """A plug-in's kernels, by their names in this set."""
        return tuple(
            (
                replace(kernel, variant=f"{kernel.variant}{_AT}{plugin.stem}")
                if kernel.variant in self._shared
                else kernel
            )
            for kernel in plugin.kernels
        )

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(kernel for plugin in self.each for kernel in self.told(plugin))

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kernel.variant for kernel in self.kernels))

    def of(self, variant: str) -> "Plugin":
        """The plug-in that has a variant. If the name says which one, no other plug-in is
        listed.
        """
        stem = variant.partition(_AT)[2]
        for plugin in self.each:
            if plugin.stem == stem if stem else len(self.each) == 1 or variant in plugin.variants:
                return plugin
        raise unknown_word("variant", variant, self.variants)

    def refuse_lacking(self, *words: str) -> None:
        """Refuse a variant, layout, dtype and isa for which no plug-in has a kernel."""
        variant, *cell = words
        self.of(variant).refuse_lacking(variant.partition(_AT)[0], *cell)

    def untaken(self, asked: Asked, *words: str) -> str:
        """Why the kernel for a variant, layout, dtype and isa refuses what is asked; empty if it
        does not.
        """
        variant, *cell = words
        plugin = self.of(variant)
        return asked.missing(plugin.taken(variant.partition(_AT)[0], *cell), plugin.lib)

    def refuse_untaken(self, asked: Asked, *words: str) -> None:
        if why := self.untaken(asked, *words):
            what = f"variant {words[0]} is asked for {why}"
            raise BadArgument(what, f"ask for less; {_EXAMPLE}")

    def run(self, *words: str) -> Any:
        """The function for a variant, layout, dtype and isa. Loads only its plug-in into this
        process.
        """
        variant, *cell = words
        return self.of(variant).run(variant.partition(_AT)[0], *cell)


class Plugin:
    """A plug-in of a `library`. Errors in it are raised when its kernels are first asked for."""

    def __init__(self, path: Path | str, library: "Library") -> None:
        self.path, self._library = Path(path), library
        if not self.path.is_file():
            raise BadLibrary(
                f"cannot read {path}: the file does not exist", "name an existing plug-in"
            )

    @property
    def lib(self) -> Any:
        return self._library.lib

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(self.takes)

    @cached_property
    def takes(self) -> dict[Kernel, int]:
        """List its kernels, checked against the library's words, each with its sum of KVB_TAKES_*.
        The plug-in is not loaded into this process.
        """
        found = _looked_at(_listed, self.path, self._library.path, self._library.interface)
        if not found:
            raise BadLibrary(f"{self.path} lists no kernels", _EXAMPLE)
        return found

    @property
    def stem(self) -> str:
        """The stem of its file, as a word that can stand in names of points."""
        return re.sub(r"[^A-Za-z0-9_-]", "_", self.path.stem)

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kernel.variant for kernel in self.kernels))

    @cached_property
    def rows(self) -> tuple[tuple[Kernel, int, Any], ...]:
        """Its kernels, what each takes, and their functions. This loads the plug-in into this
        process.
        """
        library = self._library
        version, ours = _version(self.path), library.plugin_version
        if version is None:
            raise BadLibrary(f"{self.path} is not a plug-in: it lacks kvb_plugin", _EXAMPLE)
        if version != ours:
            raise BadLibrary(
                f"{self.path} is a plug-in of version {version}, and {library.path.name} takes"
                f" version {ours}",
                f"build it again with the kvbench.h and abi.h of that library: {_EXAMPLE}",
            )
        found: dict[str, tuple[Kernel, int, Any]] = {}
        for index, row in enumerate(self._rows()):
            kernel, where = self._kernel(index, row), f"{self.path}: kernel {index}"
            if kernel.id in found:
                raise BadLibrary(
                    f"{where}: {kernel.id} is listed twice",
                    "kvb_kernels must return null after its last kernel",
                )
            found[kernel.id] = (kernel, row.takes, row.run)
        # No other process has to load it now.
        self.takes = {kernel: takes for kernel, takes, _ in found.values()}
        return tuple(found.values())

    def refuse_lacking(self, *words: str) -> None:
        """Refuse a variant, layout, dtype and isa for which the plug-in has no kernel."""
        variant, *cell = words
        offered = [
            kernel.id.split(".", 2)[2] for kernel in self.kernels if kernel.variant == variant
        ]
        if ".".join(cell) not in offered:
            raise BadArgument(
                f"variant {variant} has no kernel for {'.'.join(cell)}",
                f"it has: {', '.join(offered) or 'none at all'}",
            )

    def run(self, *words: str) -> Any:
        """The function for a variant, layout, dtype and isa, loaded into this process."""
        functions = {kernel.id.split(".", 1)[1]: function for kernel, _, function in self.rows}
        self.refuse_lacking(*words)
        return functions[".".join(words)]

    def taken(self, *words: str) -> int:
        """The sum of KVB_TAKES_* of its kernel for a variant, layout, dtype and isa."""
        takes = {kernel.id.split(".", 1)[1]: own for kernel, own in self.takes.items()}
        self.refuse_lacking(*words)
        return takes[".".join(words)]

    def _rows(self) -> Iterator[Any]:
        try:
            table = opened(self._library.ffi, self.path).kvb_kernels
        except AttributeError:
            raise BadLibrary(f"{self.path} does not export kvb_kernels", _EXAMPLE) from None
        return takewhile(lambda row: row != self._library.ffi.NULL, map(table, count()))

    def _kernel(self, index: int, row: Any) -> Kernel:
        where = f"{self.path}: kernel {index}"
        texts = {
            name: self._text(where, name, row)
            for name in ("op", "variant", "layout", "dtype", "isa", "about")
        }
        kernel = Kernel(
            **texts, runnable=bool(row.runnable) and texts["isa"] in self._library.isas()
        )
        self._refuse_words(where, kernel)
        if row.takes & ~sum(getattr(self.lib, name) for name in _TAKEN):
            raise BadLibrary(
                f"{where}: takes {row.takes}, which {self._library.path.name} does not know",
                _EXAMPLE,
            )
        if row.run == self._library.ffi.NULL:
            raise BadLibrary(
                f"{where}: {kernel.id} has no function", "set its run, the last field of kvb_kernel"
            )
        return kernel

    def _text(self, where: str, name: str, row: Any) -> str:
        chars = getattr(row, name)
        text = b"" if chars == self._library.ffi.NULL else self._library.ffi.string(chars)
        if not text or not text.isascii() or not text.decode().isprintable():
            raise BadLibrary(f"{where}: {name} is not printable text", _EXAMPLE)
        return text.decode()

    def _refuse_words(self, where: str, kernel: Kernel) -> None:
        library = self._library
        for name, allowed in ((name, library.words(name)) for name in ("layout", "dtype", "isa")):
            if (word := getattr(kernel, name)) not in allowed:
                raise BadLibrary(
                    f"{where}: {name} {word!r} is not known", f"one of: {', '.join(allowed)}"
                )
        if kernel.op != _OP:
            raise BadLibrary(f"{where}: op {kernel.op!r} cannot be plugged in", f"only {_OP} can")
        if not _WORD.fullmatch(kernel.variant):
            raise BadLibrary(
                f"{where}: variant {kernel.variant!r} is not a valid name",
                "use at most 32 lower-case letters, digits and underscores",
            )
        if kernel.variant in (_ALL, *library.own_variants):
            raise BadLibrary(
                f"{where}: variant {kernel.variant} already exists", "choose another name"
            )

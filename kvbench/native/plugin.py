"""Kernels of somebody else: a shared object whose functions are called for the units that our
threads cut.

It is foreign code. A process that lists kernels, plans or reports never loads it: another one does,
and tells what it found. It is loaded for good where its kernels run, see kvbench.worker.
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
# sinks and kept tokens are the library's own work
_TAKEN = (_QUERIES, _MASK, _SOFTCAP, _SLOPE, _CHANNEL)
_AT = "@"  # between a variant and the stem of its plug-in, where two have it
_ALL = "all"  # of the words of an axis: none of them may be called so
_EXAMPLE = "kvbench verify --example shows how one is made"
_PATIENCE = 30.0  # seconds that loading it and listing its kernels may take
_EXPORTED = (b"kvb_kernels\0", b"kvb_plugin\0")  # as a shared object names what it exports
_symbol = cffi.FFI()
# of plug-ins alone: abi.h cannot declare what the library lacks
_symbol.cdef("extern int32_t kvb_plugin;")


def opened(
    ffi: cffi.FFI, path: Path, hint: str = "a shared object for this machine is needed"
) -> Any:
    """A shared object, by path."""
    try:
        return ffi.dlopen(str(path.absolute()))
    except OSError as error:
        # cffi goes on about names that are no paths
        why = str(error).partition(".  Additionally")[0]
        raise BadLibrary(why, hint) from None


def is_plugin(path: Path | str, hint: str = _EXAMPLE) -> bool:
    """Whether a shared object is a plug-in, and not a library of kernels. `hint`: where it is
    neither.
    """
    path = Path(path)
    with named.opened(path) as file:
        exported = file.read()
    if not any(name in exported for name in _EXPORTED):  # another project's is not even loaded
        raise BadLibrary(
            f"{path} is neither a kernel library of kvbench nor a plug-in: it has no kvb_kernels",
            hint,
        )
    return _looked_at(_version, path) is not None


def _looked_at(look: Any, path: Path, *args: Any) -> Any:
    """What a look finds, in a process of its own."""
    try:
        return apart(look, path, *args, patience=_PATIENCE)
    except Ended as end:
        raise BadLibrary(
            f"{path}: the process that loaded it {end.how}", "mend what it does when it is loaded"
        ) from None


def _version(path: Path) -> int | None:
    try:
        return opened(_symbol, path).kvb_plugin
    except (AttributeError, KeyError):  # what cffi says of a variable that is not there
        return None


def _listed(path: Path, library: Path, interface: Path) -> dict[Kernel, int]:
    from kvbench.native.library import Library

    return {kernel: takes for kernel, takes, _ in Plugin(path, Library(library, interface)).rows}


class Asked(NamedTuple):
    """What a decode asks for that a plug-in's kernel need not take. ragged: whether sequences have
    different numbers of queries. softcap, slopes: whether scores have them. channel: whether K has
    scales of channels.
    """

    queries: int = 1
    mask: str = CHAIN
    window: int = 0
    ragged: bool = False
    softcap: bool = False
    slopes: bool = False
    channel: bool = False

    def missing(self, takes: int, lib: Any) -> str:
        """Why it is refused by a kernel that takes this sum of KVB_TAKES_*; empty if it is not."""
        several = f"{self.queries} queries of a sequence"
        if self.queries > 1 and self.window:
            return f"{several} with a window, which no plug-in is told of"
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
    """All that stand beside `library`. A variant that two of them have is told apart by the stem of
    the file: a library that is asked for `textbook@old` goes by the `textbook` of old.so.
    """

    def __init__(self, paths: Iterable[Path | str], library: "Library") -> None:
        self.each = tuple(Plugin(path, library) for path in paths)
        named: dict[str, Path] = {}
        for plugin in self.each:
            other = named.setdefault(plugin.stem, plugin.path)
            if other is not plugin.path:
                raise BadArgument(
                    f"--plugin: {other} and {plugin.path} are both called {plugin.stem}",
                    "rename one: a plug-in is told apart by the stem of its file",
                )

    def __bool__(self) -> bool:
        return bool(self.each)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(plugin.path for plugin in self.each)

    @cached_property
    def _shared(self) -> set[str]:
        """Variants that more than one has. Of one plug-in alone nothing need be listed."""
        if len(self.each) < 2:
            return set()
        offers = Counter(variant for plugin in self.each for variant in plugin.variants)
        return {variant for variant, count in offers.items() if count > 1}

    def told(self, plugin: "Plugin") -> tuple[Kernel, ...]:
        """A plug-in's kernels, by the names that they have here."""
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
        """Whose it is. Where the name says that, no other plug-in is listed."""
        stem = variant.partition(_AT)[2]
        for plugin in self.each:
            if plugin.stem == stem if stem else len(self.each) == 1 or variant in plugin.variants:
                return plugin
        raise unknown_word("variant", variant, self.variants)

    def refuse_lacking(self, *words: str) -> None:
        """A variant, layout, dtype and isa that none has a kernel for."""
        variant, *cell = words
        self.of(variant).refuse_lacking(variant.partition(_AT)[0], *cell)

    def untaken(self, asked: Asked, *words: str) -> str:
        """Why the kernel for a variant, layout, dtype and isa does not take it; empty if it
        does.
        """
        variant, *cell = words
        plugin = self.of(variant)
        return asked.missing(plugin.taken(variant.partition(_AT)[0], *cell), plugin.lib)

    def refuse_untaken(self, asked: Asked, *words: str) -> None:
        if why := self.untaken(asked, *words):
            what = f"variant {words[0]} is asked for {why}"
            raise BadArgument(what, f"ask for less; {_EXAMPLE}")

    def run(self, *words: str) -> Any:
        """The function for a variant, layout, dtype and isa. Its plug-in is loaded into this
        process, and no other.
        """
        variant, *cell = words
        return self.of(variant).run(variant.partition(_AT)[0], *cell)


class Plugin:
    """A plug-in beside `library`. What is wrong with it is told when its kernels are first asked
    for.
    """

    def __init__(self, path: Path | str, library: "Library") -> None:
        self.path, self._library = Path(path), library
        if not self.path.is_file():
            raise BadLibrary(
                f"cannot read {path}: there is no such file", "name a plug-in that is there"
            )

    @property
    def lib(self) -> Any:
        return self._library.lib

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(self.takes)

    @cached_property
    def takes(self) -> dict[Kernel, int]:
        """What it lists, all of it checked against the library's words: kernels, and of each the
        sum of KVB_TAKES_*. It is not loaded into this process.
        """
        found = _looked_at(_listed, self.path, self._library.path, self._library.interface)
        if not found:
            raise BadLibrary(f"{self.path} lists no kernels", _EXAMPLE)
        return found

    @property
    def stem(self) -> str:
        """Its file's, as a word that stands in names of points."""
        return re.sub(r"[^A-Za-z0-9_-]", "_", self.path.stem)

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kernel.variant for kernel in self.kernels))

    @cached_property
    def rows(self) -> tuple[tuple[Kernel, int, Any], ...]:
        """Its kernels, what each takes, and their functions. Here it is loaded."""
        library = self._library
        version, ours = _version(self.path), library.plugin_version
        if version is None:
            raise BadLibrary(f"{self.path} is no plug-in: it does not export kvb_plugin", _EXAMPLE)
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
                    "kvb_kernels returns null behind its last kernel",
                )
            found[kernel.id] = (kernel, row.takes, row.run)
        # no other process need look
        self.takes = {kernel: takes for kernel, takes, _ in found.values()}
        return tuple(found.values())

    def refuse_lacking(self, *words: str) -> None:
        """A variant, layout, dtype and isa that it has no kernel for."""
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
        """What its kernel for a variant, layout, dtype and isa takes."""
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
            raise BadLibrary(f"{where}: {name} is no printable text", _EXAMPLE)
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
                f"{where}: variant {kernel.variant!r} is no word",
                "up to 32 small letters, digits and underscores",
            )
        if kernel.variant in (_ALL, *library.own_variants):
            raise BadLibrary(
                f"{where}: variant {kernel.variant} is taken", "choose a word of your own"
            )

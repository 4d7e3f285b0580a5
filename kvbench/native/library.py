"""One opened kernel library: its interface, its words, its kernels, its errors."""

import os
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import cffi

import kvbench
from kvbench import named
from kvbench.closing import Closing
from kvbench.errors import (
    BadArgument,
    BadLibrary,
    OutOfMemory,
    Refused,
    Unsupported,
    WrongAnswer,
    one_of,
    unknown_word,
)
from kvbench.model import AUTO, OWN, Kernel, several
from kvbench.model.planes import PLANES, apart, is_pair
from kvbench.model.point import DOT8, DOT16, FLOPS
from kvbench.native.plugin import ONE_QUERY, Asked, Plugins, opened
from kvbench.oracle import Levels

_LIBRARY = "libkvbench.so"
_INTERFACE = "abi.h"
_ISA_VARIABLE = "KVBENCH_ISA"


def library_path() -> Path:
    """The path of the installed library. An editable install keeps it apart from the Python
    files.
    """
    for folder in kvbench.__path__:
        if (path := Path(folder, _LIBRARY)).is_file():
            return path
    raise BadLibrary(
        f"{_LIBRARY} is not in {', '.join(kvbench.__path__)}",
        "this is a source tree that was not installed: run pip install -e . in it",
    )


class Library:
    """An opened kernel library. `path`: a shared object; its abi.h, from the same build, lies
    beside it or at `interface`. `plugin`: one or several shared objects with other kernels.

    `ffi` and `lib` are cffi's; kvbench.native is written with them. Two libraries share nothing
    except the types of an equal interface.
    """

    def __init__(
        self,
        path: Path | str,
        interface: Path | str | None = None,
        plugin: Sequence[Path | str] | Path | str | None = None,
    ) -> None:
        self.path, self._words = Path(path), dict[str, tuple[str, ...]]()
        self.interface = Path(interface) if interface else self.path.with_name(_INTERFACE)
        try:
            self.ffi = _interface(named.text(self.interface, named.WRITTEN))
        except OSError as error:
            raise BadLibrary(
                f"cannot read {error.filename}: {error.strerror}",
                "a shared object is needed, with its abi.h beside it",
            ) from None
        except (cffi.CDefError, cffi.FFIError) as error:
            raise BadLibrary(
                f"{self.interface} cannot be read as an interface: {error}", "install kvbench again"
            ) from None
        self.lib = opened(
            self.ffi, self.path, "it is not a library for this machine: install kvbench again"
        )
        self._refuse_another_interface()
        paths = (str(plugin),) if isinstance(plugin, Path | str) else map(str, plugin or ())
        self.plugins = Plugins(several(paths), self)

    # ---- the interface ---------------------------------------------------------------------------

    def _declared(self) -> dict[str, tuple[int, int]]:
        """Offset and size of every struct and field of abi.h, named as kvb_fields() names them."""
        rows = {}
        for name in self.ffi.list_types()[0]:
            kind = self.ffi.typeof(name)
            if kind.kind != "struct" or kind.fields is None:
                continue
            rows[name] = (0, self.ffi.sizeof(kind))
            for field, info in kind.fields:
                rows[f"{name}.{field}"] = (info.offset, self.ffi.sizeof(info.type))
        return rows

    def _compiled(self) -> dict[str, tuple[int, int]]:
        return {
            self._text(row.name): (row.offset, row.size) for row in self._rows(self.lib.kvb_fields)
        }

    def _refuse_another_interface(self) -> None:
        try:
            for name in dir(self.lib):
                getattr(self.lib, name)
        except AttributeError as error:
            raise BadLibrary(
                f"{self.path} lacks a function of abi.h: {error}", "install kvbench again"
            ) from None
        declared, compiled = self._declared(), self._compiled()
        different = sorted(
            name
            for name in declared.keys() | compiled.keys()
            if declared.get(name) != compiled.get(name)
        )
        if different:
            raise BadLibrary(
                f"{self.path} was built from another abi.h: {', '.join(different[:4])} differ",
                "install kvbench again",
            )

    @property
    def takes_series(self) -> bool:
        """Whether the library can run several tasks as one pass; older libraries cannot."""
        return hasattr(self.lib, "kvb_task_series")

    def _rows(self, table: Any) -> Iterator[Any]:
        """The rows of a C table that ends with a null pointer."""
        return takewhile(lambda row: row != self.ffi.NULL, map(table, count()))

    def _text(self, chars: Any) -> str:
        return self.ffi.string(chars).decode()

    # ---- errors ----------------------------------------------------------------------------------

    def check(self, code: int) -> None:
        """Raise the error that a status code means, with the library's message."""
        if code == self.lib.KVB_OK:
            return
        message = self._text(self.lib.kvb_message())
        meanings = {
            self.lib.KVB_BAD_ARGUMENT: (BadArgument, "change that argument"),
            self.lib.KVB_UNSUPPORTED: (Unsupported, f"this CPU runs: {', '.join(self.isas())}"),
            self.lib.KVB_NO_MEMORY: (OutOfMemory, "ask for less, or free some memory"),
            self.lib.KVB_FOREIGN: (WrongAnswer, "see kvb_work in abi.h for what a kernel may do"),
        }
        kind, hint = meanings.get(
            code, (Refused, "the operating system refused; see its limits for this process")
        )
        raise kind(message, hint)

    # ---- words and kernels -----------------------------------------------------------------------

    @property
    def plugin_version(self) -> int:
        """The version of plug-ins that the library takes."""
        return self.lib.KVB_PLUGIN

    @property
    def build(self) -> str:
        """Compiler, flags and version."""
        return self._text(self.lib.kvb_build())

    def words(self, kind: str) -> tuple[str, ...]:
        """A list of words, such as the names of all dtypes. A word's index is its number in C."""
        if kind not in self._words:
            name = kind.encode()
            found = tuple(
                self._text(word)
                for word in self._rows(lambda index: self.lib.kvb_word(name, index))
            )
            if not found:
                raise BadArgument(
                    f"{kind!r} is not a list of words", "see kvb_word in abi.h for the lists"
                )
            self._words[kind] = found
        return self._words[kind]

    def number(self, kind: str, word: object) -> int:
        """The number of a word in C."""
        words = self.words(kind)
        if not isinstance(word, str) or word not in words:
            raise unknown_word(
                kind, word, (*words, *self.foreign_variants) if kind == "variant" else words
            )
        return words.index(word)

    def isas(self) -> tuple[str, ...]:
        """The tiers that this CPU runs, the plainest first."""
        return tuple(
            isa for index, isa in enumerate(self.words("isa")) if self.lib.kvb_isa_runs(index)
        )

    def isa(self, word: str | None = None) -> str:
        """The tier to use: `word`, else the one in KVBENCH_ISA, else the best tier that this CPU
        runs.
        """
        forced = word if word is not None else os.environ.get(_ISA_VARIABLE) or None
        if forced is None:
            return self.words("isa")[self.lib.kvb_isa_best()]
        name = "isa" if word is not None else _ISA_VARIABLE
        if forced not in self.words("isa"):
            raise unknown_word(name, forced, self.isas())
        if forced not in self.isas():
            raise Unsupported(
                f"{name}: {forced} does not run here", f"this CPU runs: {', '.join(self.isas())}"
            )
        return forced

    def schedule(self, word: str) -> str:
        """The preset that runs if this word is asked for."""
        return (
            self.words("schedule")[self.lib.kvb_schedule_default()] if word in (AUTO, OWN) else word
        )

    @property
    def reads_on(self) -> bool:
        """Whether a read of memory can go on where its last pass stopped; older libraries
        cannot.
        """
        return "piece" in dict(self.ffi.typeof("kvb_probe").fields)

    def refuse_no_loads(self) -> None:
        """Refuse a library that is too old to run a load beside a run."""
        if not hasattr(self.lib, "kvb_run_beside"):
            raise Unsupported(
                f"{self.path.name} is too old to run a load beside a run",
                "leave out chase and neighbour",
            )

    def refuse_no_pieces(self) -> None:
        if not self.reads_on:
            raise Unsupported(
                f"{self.path.name} is too old to read memory between passes",
                "use points with between = 0, or a newer build",
            )

    def kernels(self) -> list[Kernel]:
        """The library's own kernels, then those of the plug-ins."""
        return [*self._own_kernels(), *self.plugins.kernels]

    def _own_kernels(self) -> list[Kernel]:
        words = ("op", "variant", "layout", "dtype", "isa", "about")
        return [
            Kernel(
                **{word: self._text(getattr(row, word)) for word in words},
                runnable=bool(row.runnable),
            )
            for row in self._rows(self.lib.kvb_kernels)
        ]

    @cached_property
    def own_variants(self) -> tuple[str, ...]:
        """The variants of all ops, without those of plug-ins."""
        return tuple(dict.fromkeys(kernel.variant for kernel in self._own_kernels()))

    @property
    def foreign_variants(self) -> tuple[str, ...]:
        """The variants of plug-ins."""
        return self.plugins.variants

    def halves(self, dtype: object, name: str = "dtype") -> tuple[str, str]:
        """The dtypes of K and V that a word stands for. `name`: the argument's name in a
        message.
        """
        known = self.words("dtype")
        if not isinstance(dtype, str) or not is_pair(dtype) and dtype not in known:
            raise unknown_word(name, dtype, known)
        found = apart(dtype)
        for word in found:
            if word not in known:
                why = f"{word!r} is not known" if word else "one is missing"
                hint = one_of(word, known) if word else "K + V, such as q8_0+q4_0"
                raise BadArgument(f"{name}: {dtype!r} is not a pair of dtypes: {why}", hint)
        return found

    @cached_property
    def takes_planes(self) -> bool:
        """Whether the library tells K and V apart; in older libraries they are alike."""
        return len(self.ffi.typeof(self.lib.kvb_reads).args) > 3

    def _plane(self, plane: str) -> tuple[int, ...]:
        """The plane's number as an argument, if the library takes one."""
        return (PLANES.index(plane),) if self.takes_planes else ()

    def reads(self, variant: str, layout: str, dtype: str, plane: str) -> str | None:
        """The dtype whose values a variant uses for a plane of `dtype`: mostly the same one. None:
        the variant has no kernel for it.
        """
        if variant not in self.words("variant"):  # a variant of a plug-in, or a store
            return dtype
        asked = {"variant": variant, "layout": layout, "dtype": dtype}
        numbers = (self.number(kind, word) for kind, word in asked.items())
        found = self.lib.kvb_reads(*numbers, *self._plane(plane))
        return self.words("dtype")[found] if found >= 0 else None

    def dtypes(self, layout: str) -> tuple[str, ...]:
        """The dtypes that caches of a layout can have."""
        have = {kernel.dtype for kernel in self._own_kernels() if kernel.layout == layout}
        return tuple(word for word in self.words("dtype") if word in have)

    def cell(self, layout: str, dtype: str, plane: str) -> int:
        """Bytes of a row that stay together if the layout transposes the plane; else 0."""
        if plane == "v" and not self.takes_planes:
            return 0
        numbers = self.number("layout", layout), self.number("dtype", dtype)
        return self.lib.kvb_cell(*numbers, *self._plane(plane))

    def levels(self, variant: str, dtype: str, *widths: int) -> tuple[Levels, Levels] | None:
        """To what a variant rounds queries and weights; None: it rounds neither. widths: elements
        of a row of K, and of V if different.
        """
        if variant not in self.words("variant"):
            return None
        ask, number = self.lib.kvb_levels, self.number("variant", variant)
        found = []
        for plane, word in enumerate(self.halves(dtype)):
            own = self.number("dtype", word)
            most = ask(number, own, plane)
            bits = 0 if most else ask(number, own, 3)
            width = widths[min(plane, len(widths) - 1)] if widths else 1
            found.append(Levels(most, ask(number, own, 2) or width, bits))
        k, v = found
        return (k, v) if k.most or k.bits else None

    def computes(self, variant: str, dtype: str) -> tuple[str, str]:
        """The probes of the products made with K, and with V."""
        k, v = (self._computes(variant, word) for word in apart(dtype))
        return k, v

    def _computes(self, variant: str, dtype: str) -> str:
        if variant not in self.words("variant") or dtype not in self.words("dtype"):
            return FLOPS  # a variant of a plug-in, or a store
        numbers = self.number("variant", variant), self.number("dtype", dtype)
        whole, bits = (self.lib.kvb_levels(*numbers, which) for which in (0, 3))
        return DOT8 if whole else DOT16 if bits else FLOPS

    def way(
        self, variant: str, layout: str, dtype: str, isa: str, asked: Asked = ONE_QUERY
    ) -> dict[str, Any]:
        """How a kvb_decode is told its variant: by number, or for a plug-in by function. Refuses
        what the plug-in's kernel does not take.
        """
        if self.plugins and variant not in self.words("variant"):
            run = self.plugins.run(variant, layout, dtype, isa)
            self.plugins.refuse_untaken(asked, variant, layout, dtype, isa)
            return {"run": run}
        number = self.number("variant", variant)
        for plane, word in zip(PLANES, self.halves(dtype), strict=True):
            if self.reads(variant, layout, word, plane) is None:
                which = f"{plane.upper()} of {word}" if is_pair(dtype) else f"the dtype {word}"
                has = (w for w in self.words("dtype") if self.reads(variant, layout, w, plane))
                raise BadArgument(
                    f"variant {variant} has no kernel for {which} in the layout {layout}",
                    f"in that layout it has: {', '.join(has) or 'none'}",
                )
        return {"variant": number}


class Owned(Closing):
    """A C object at `pointer`. The C function `free` takes it back, once."""

    _hint = "open another one"

    def __init__(self, library: Library, pointer: Any, free: str) -> None:
        self.library, lib = library, library.lib
        # keeps lib open
        self._pointer = library.ffi.gc(pointer, lambda made: getattr(lib, free)(made))

    def close(self) -> None:
        if self._pointer is not None:
            self.library.ffi.release(self._pointer)
            self._pointer = None

    @property
    def pointer(self) -> Any:
        if self._pointer is None:
            raise BadArgument(f"the {type(self).__name__.lower()} is closed", self._hint)
        return self._pointer


@cache
def _interface(text: str) -> cffi.FFI:
    """Parse abi.h once: it takes a tenth of a second."""
    ffi = cffi.FFI()
    ffi.cdef(text)
    return ffi


@cache
def default_library() -> Library:
    """The library that was installed with this package, opened once."""
    return Library(library_path())


@cache
def _library_of(path: str, plugins: tuple[str, ...]) -> Library:
    return Library(path or library_path(), plugin=plugins)


def library_of(path: str | None, plugin: Sequence[str] | str | None = None) -> Library:
    """Open the library at `path`, by default the installed one, with the kernels of these
    plug-ins.
    """
    plugins = several(plugin)
    return _library_of(path or "", plugins) if path or plugins else default_library()

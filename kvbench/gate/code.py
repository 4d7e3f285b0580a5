"""Which kernels of two libraries are the same machine code: a digest of all that a point of a kernel runs.

An address differs wherever the linker put things elsewhere, so it is no part of a digest; what stands there is. That
takes a library with the relocations kept, and each function in a section of its own: as kvbench.gate.builds makes it.
In doubt two kernels differ.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from kvbench.gate.image import Image, Part, Use, image_of
from kvbench.model import Kernel

# Where a point begins, beside the function that makes its task.
_ROOTS = ("kvb_run", "kvb_team_open", "kvb_cache_plan", "kvb_cache_bind")
_PROBE = "kvb_task_probe"
_SPOKEN = ("kvb_fail", "kvb_word")  # they make messages: no pass runs them, and a new word makes no kernel another one

# Ops that call what a tier's table holds, by the first part of its name. Else a name that is an op's is that op's alone.
_CALLERS = {stem: ("decode",) for stem in ("qk", "pv", "peak", "weigh", "perhead")} | {
    "encode": ("append", "bulk", "clear", "fill"),
    "decode": ("decode", "twin", "unpack"),  # of a row: of scales, and of rows that are widened or unpacked
}
_WALKED = "decode"  # the op whose variants have functions of their own
_WIDE = "f32"  # rows of any dtype are folded as this, where a group has many heads
_SCALE = "f16"  # and scales are converted from this


def digests(library: Path, kernels: Iterable[Kernel]) -> dict[str, str] | None:
    """By kernel id; without the kernels that the library has not. None where the file does not tell."""
    image = image_of(library)
    if image is None:
        return None
    reader, found = _Reader(image, tuple(kernels)), {}
    for kernel in reader.kernels:
        if digest := reader.digest(kernel):
            found[kernel.id] = digest
    return found


class _Reader:
    """Reaches from a kernel's roots whatever its points may run."""

    def __init__(self, image: Image, kernels: Sequence[Kernel]) -> None:
        self.kernels, self._image = kernels, image
        self._code: dict[Part, str] = {}

    @cached_property
    def _ops(self) -> frozenset[str]:
        return frozenset(kernel.op for kernel in self.kernels)

    def digest(self, kernel: Kernel) -> str | None:
        """None for a kernel that is not in the library."""
        named = self._image.named
        makers = [name for name in (f"kvb_task_{kernel.op}", f"kvb_{kernel.op}", _PROBE) if name in named]
        if not makers or f"kvb_tier_{kernel.isa}" not in named:
            return None
        others = self._others(kernel)
        reached = self._reached([named[name] for name in (makers[0], *_ROOTS) if name in named], kernel, others)
        if kernel.op == "decode" and not any(kernel.variant in self._words(part.name) for part in reached):
            return None
        return _digest(*sorted(self._described(part, uses) for part, uses in reached.items()))

    def _reached(self, roots: list[Part], kernel: Kernel, others: frozenset[str]) -> dict[Part, tuple[Use, ...]]:
        """Parts, each with what it uses: of a table only what belongs to the kernel."""
        found: dict[Part, tuple[Use, ...]] = {}
        while roots:
            part = roots.pop()
            if part in found:
                continue
            uses = () if part.name in _SPOKEN else part.uses
            found[part] = tuple(use for use in uses if part.code or self._runs(kernel, use, others))
            roots += [use.target for use in found[part] if isinstance(use.target, Part)]
        return found

    def _others(self, kernel: Kernel) -> frozenset[str]:
        """Words of kernels that are not this one: of another layout, another tier, another variant of the op or of decode."""
        others = {other.isa for other in self.kernels}
        if kernel.layout != "-":
            others |= {other.layout for other in self.kernels}
        others |= {other.variant for other in self.kernels if other.op in (kernel.op, _WALKED)}
        return frozenset(others - {kernel.layout, kernel.isa, kernel.variant, "-"})

    @cached_property
    def _dtypes(self) -> frozenset[str]:
        return frozenset(kernel.dtype for kernel in self.kernels) - {"-"}

    @cached_property
    def _word(self) -> re.Pattern[str]:
        """What stands between underscores, or a dtype that has one itself."""
        long = sorted((re.escape(dtype) for dtype in self._dtypes if "_" in dtype), key=len, reverse=True)
        return re.compile("|".join([*(f"{dtype}(?![^_])" for dtype in long), "[^_]+"]))

    def _words(self, name: str) -> list[str]:
        """ "qk8_f16.constprop.0" is qk8 and f16."""
        return self._word.findall(name.partition(".")[0])

    def _runs(self, kernel: Kernel, use: Use, others: frozenset[str]) -> bool:
        """Whether an entry of a table may be for the kernel, by its name."""
        if not isinstance(use.target, Part):
            return True
        words = self._words(use.target.name)
        if others & set(words):
            return False
        of = self._dtypes & set(words)
        rest = [word for word in words if word not in of and word not in ("kvb", "probe", kernel.isa)]
        stem = "_".join(rest).rstrip("0123456789")
        callers = _CALLERS.get(stem, (stem,) if stem in self._ops else (kernel.op,))
        if kernel.op not in callers:
            return False
        if not of or kernel.dtype in of or kernel.dtype == "-":
            return True
        return stem != "encode" and (_WIDE in of or (_SCALE in of and stem == "decode"))

    def _described(self, part: Part, uses: tuple[Use, ...]) -> str:
        if not part.code:
            return _describe(part, uses)
        if part not in self._code:
            self._code[part] = _describe(part, uses)
        return self._code[part]


def _describe(part: Part, uses: tuple[Use, ...]) -> str:
    return _digest(part.label, *_lines(uses))


def _lines(uses: tuple[Use, ...]) -> Iterator[str]:
    for use in uses:
        target = use.target.label if isinstance(use.target, Part) else use.target
        yield f"{use.at} {use.kind} {target} {use.further}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

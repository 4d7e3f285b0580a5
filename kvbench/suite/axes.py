"""The axes of a sweep, and how their values are written.

A value stands alone or in a list.

counts                      4096, "4k", or a range by a factor, "256..64k x2"
context                     also the size of one slice relative to caches, "0.5xL3"
window, layers, full_every  also "model"
between                     bytes such as "64m" (MiB), "0.5xL3", or "model:q4_0"
numbers                     decimals
words                       also "all"
dtype                       also K + V, "q8_0+q4_0"
threads                     also words
lengths                     also a draw from a trace, or a file of numbers
"""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kvbench import named
from kvbench.errors import BadArgument, one_of
from kvbench.machine.placement import MOST_THREADS, POWERS, SIBLINGS, UNITS
from kvbench.model import DEFAULTS, FIELDS, OURS, PLACES
from kvbench.model.masks import MOST_QUERIES
from kvbench.model.planes import is_pair, together
from kvbench.model.point import INTERLEAVE, LOCAL
from kvbench.model.shape import EVEN, LISTED, RAGGED
from kvbench.native import Library, default_library
from kvbench.peers.known import entries
from kvbench.suite.models import models
from kvbench.suite.traces import LONGEST, MEAN, TRACE
from kvbench.suite.values import ALL, Relative
from kvbench.units import COUNT, cpu_list, whole

AXES = {field.name: field for field in FIELDS if field.axis}
BY_KERNEL = ("variant", "layout", "dtype", "isa")  # axes whose "all" depends on the op
MOST = 100_000  # values of an axis, or points of a suite
_LARGEST = 1 << 31  # the largest count
_HIGHEST = 1e6  # the largest number that is not a count
_SEQUENCES = 4096  # the most lengths that a file may list
_RANGE = re.compile(rf"{COUNT}\s*\.\.\s*{COUNT}\s*x\s*([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)")
_RELATIVE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*x\s*L([1-3])")
_DECIMAL = r"[0-9]{1,7}(?:\.[0-9]{1,9})?"
OF_MODEL = "model:"  # before the format of a layer's weights
NODES = "nodes"  # of memory or CPUs: each NUMA node in turn
_WORDS = {  # words that are allowed beside counts, by kind
    "window": ("model",),
    "layers": ("model",),
    "full_every": ("model",),
    "threads": (*UNITS, "ccx", ALL, SIBLINGS, POWERS),
    "memory": (LOCAL, INTERLEAVE, NODES),
    "cpus": (NODES,),
}
_MOST = {"threads": MOST_THREADS, "queries": MOST_QUERIES}  # by kind, if lower than _LARGEST
_FROM_ZERO = (
    "count from 0",
    "window",
    "layers",
    "full_every",
    "between",
)  # kinds whose counts begin at 0
_FORMS = {
    "count": 'a number such as 4096 or "4k", or a range such as "256..64k x2"',
    "queries": f'a number from 1 to {MOST_QUERIES}, or a range such as "1..16 x2"',
    "context": (
        'tokens such as 4096 or "4k", a range such as "256..64k x2", or a size such as "0.5xL3"'
    ),
    "window": 'tokens such as 1024 or "1k", 0 for all, or "model"',
    "layers": (
        'slices such as 16, 0 for more than caches hold, or "model" for full sets of its layers'
    ),
    "full_every": 'layers such as 6, 0 for none, or "model"',
    "between": 'bytes such as "64m", 0 for none, a size such as "0.5xL3", or "model:q4_0"',
    "number": f"a number from 0 to {_HIGHEST:,.0f}, such as 50 or 0.5",
    "count from 0": 'a number from 0 on, such as 8, or a range such as "1..16 x2"',
    "threads": (
        'a number, a range such as "1..16 x2", or one of:'
        f" {', '.join((*UNITS, ALL, SIBLINGS, POWERS))}"
    ),
    "cpus": f'a list such as "0-3,8", each CPU once; {", ".join(PLACES)}; or a kind of cores',
    "lengths": (
        f"{EVEN}, {RAGGED}:SEED such as {RAGGED}:1, {TRACE}:SEED, {MEAN}:SEED, {LONGEST}:SEED, or a"
        " file of numbers, one a sequence"
    ),
    "memory": f"{LOCAL}, {INTERLEAVE}, a node such as node0, or {NODES}: each in turn",
    "flag": "true or false",
}


def read_axis(where: str, name: str, value: Any, library: Library | None = None) -> tuple[Any, ...]:
    """The values of an axis, each once. `where` begins every message. `library` has the words of
    kernels.
    """
    values = value if isinstance(value, list) else [value]
    if not values:
        raise BadArgument(f"{where} is an empty list", form(name, library))
    found = dict.fromkeys(one for item in values for one in _values(where, name, item, library))
    if len(found) > MOST:
        raise BadArgument(f"{where} has {len(found)} values", f"at most {MOST}")
    return tuple(found)


def form(name: str, library: Library | None = None) -> str:
    """How a value of an axis is written, for messages."""
    kind = AXES[name].kind
    pairs = "; or K + V, such as q8_0+q4_0" if name == "dtype" else ""
    return f"one of: {', '.join(words(name, library))}{pairs}" if kind == "word" else _FORMS[kind]


def words(name: str, library: Library | None = None) -> tuple[str, ...]:
    """All words of an axis. Words of kernels come from the library. Pairs of dtypes are not
    listed.
    """
    library = library or default_library()
    if AXES[name].words:
        return AXES[name].words
    if name == "model":
        # no kernel reads latent rows
        return tuple(name for name, model in models().items() if not model.latent)
    if name == "engine":
        return (OURS, *entries())
    if name == "variant":
        return tuple(
            dict.fromkeys(
                kernel.variant for kernel in library.kernels() if kernel.op in words("op")
            )
        )
    found = library.words(name)
    # the default is a choice of the library or of this CPU
    return found if DEFAULTS[name] in found else (DEFAULTS[name], *found)


def unknown(
    where: str, word: Any, allowed: Iterable[str], what: str = "is not known"
) -> BadArgument:
    """The error for a word that is not allowed, with the allowed words as its hint."""
    return BadArgument(f"{where} {what}", one_of(word, allowed))


def shown(value: Any) -> str:
    """A value as a message quotes it, shortened: a file may hold anything."""
    # Python refuses to print very long integers
    huge = isinstance(value, int) and value.bit_length() > 128
    text = f"a whole number of {value.bit_length()} bits" if huge else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def from_options(
    options: Iterable[str], library: Library | None = None
) -> dict[str, tuple[Any, ...]]:
    """Values by axis, from options such as "context=1k,8k". An axis that is given twice has both
    values. `library` has the words of kernels.
    """
    found: dict[str, list[Any]] = {}
    for option in options:
        name, given, text = option.partition("=")
        name = name.strip()
        if not given:
            raise BadArgument(
                f"--axis {shown(option)} has no value", "such as --axis context=1k,8k"
            )
        if name not in AXES:
            raise unknown(f"--axis {shown(name)}", name, AXES, "is not an axis")
        found.setdefault(name, []).extend(_items(name, text))
    return {
        name: read_axis(f"--axis {name}", name, values, library) for name, values in found.items()
    }


def absolute(option: str) -> str:
    """The option with absolute paths of the files that it names, so that it can be read in another
    folder.
    """
    name, _, text = option.partition("=")
    if name.strip() != "lengths":
        return option
    items = (item.strip() for item in text.split(","))
    found = (item if _is_lengths(item) else str(Path(item).absolute()) for item in items)
    return f"{name}={','.join(found)}"


def _items(name: str, text: str) -> list[Any]:
    """The text split at commas. A list of CPUs keeps its commas."""
    if name == "cpus" and text[:1].isdigit():
        return [text]
    return [
        {"true": True, "false": False}.get(item, item) if AXES[name].kind == "flag" else item
        for item in map(str.strip, text.split(","))
    ]


# ---- one value -----------------------------------------------------------------------------------


def _values(where: str, name: str, value: Any, library: Library | None) -> Iterable[Any]:
    """The values that one item of a list stands for."""
    kind = AXES[name].kind
    if kind == "word":
        allowed = words(name, library)
        if name == "dtype" and isinstance(value, str) and is_pair(value):
            return [together(*(library or default_library()).halves(value, where))]
        if not isinstance(value, str) or value not in (*allowed, ALL):
            raise unknown(f"{where}: {shown(value)}", value, (*allowed, ALL))
        return [value]
    if (
        kind == "flag"
        and isinstance(value, bool)
        or kind == "cpus"
        and _are_cpus(value)
        or value in _WORDS.get(kind, ())
    ):
        return [value]
    if kind == "memory" and isinstance(value, str) and re.fullmatch(r"node\d{1,4}", value):
        return [value]
    if kind == "lengths" and isinstance(value, str) and value:
        return [_lengths(where, value)]
    if kind in ("flag", "cpus", "memory", "lengths"):
        raise _wrong(where, name, value)
    if kind == "number":
        return [_number(where, name, value)]
    if (
        kind in ("context", "between")
        and isinstance(value, str)
        and (found := _RELATIVE.fullmatch(value.strip()))
    ):
        if not float(found[1]):
            raise BadArgument(f"{where}: {shown(value)} is a size of 0", form(name))
        return [Relative(float(found[1]), int(found[2]))]
    if kind == "between" and isinstance(value, str) and value.startswith(OF_MODEL):
        dtype, known = value.removeprefix(OF_MODEL), words("dtype", library)
        if dtype not in known:
            raise unknown(f"{where}: {shown(value)}", dtype, known, "is not a format of weights")
        return [value]
    return _counts(where, name, value)


def _number(where: str, name: str, value: Any) -> float:
    text = value.strip() if isinstance(value, str) else shown(value)
    if isinstance(value, bool) or not re.fullmatch(_DECIMAL, text):
        raise _wrong(where, name, value)
    if not (found := float(text)) <= _HIGHEST:
        raise BadArgument(f"{where} is {shown(value)}", form(name))
    return found


def _lengths(where: str, text: str) -> str:
    """The lengths as a point has them. A file's numbers are copied, so that later changes of the
    file do not matter.
    """
    if _is_lengths(text):
        return text
    try:
        found = named.numbers(text)
    except OSError as error:
        raise BadArgument(
            f"{where}: cannot read {text[:200]}: {error.strerror}", form("lengths")
        ) from None
    if max(found) > _LARGEST or len(found) > _SEQUENCES:
        raise BadArgument(
            f"{where}: {text[:200]} lists {len(found):,} lengths up to {max(found):,}",
            f"at most {_SEQUENCES:,}, of at most {_LARGEST:,} tokens",
        )
    return f"{LISTED}:{','.join(map(str, found))}"


def _is_lengths(text: str) -> bool:
    """Whether the text is a word for lengths, not the name of a file."""
    drawn = "|".join((RAGGED, TRACE, MEAN, LONGEST))
    return text == EVEN or bool(re.fullmatch(rf"({drawn}):[0-9]{{1,18}}", text))


def _are_cpus(value: Any) -> bool:
    """Whether the value may name CPUs. The machine is asked later whether it has them."""
    try:
        named = isinstance(value, str) and (
            value in PLACES or re.fullmatch(r"[A-Za-z][\w. -]{0,40}", value)
        )
        return (
            bool(named) or isinstance(value, str) and len(value) <= 4096 and bool(cpu_list(value))
        )
    except ValueError:
        return False


def _counts(where: str, name: str, value: Any) -> Iterator[int]:
    kind = AXES[name].kind
    least, most = 0 if kind in _FROM_ZERO else 1, _MOST.get(kind, _LARGEST)
    text = value.strip() if isinstance(value, str) else ""
    if found := _RANGE.fullmatch(text):
        low, high = whole(found[1], found[2]), whole(found[3], found[4])
        values: Iterable[int] = _range(where, low, high, float(found[5]))
    elif found := re.fullmatch(COUNT, text):
        values = (whole(*found.groups()),)
    elif isinstance(value, int) and not isinstance(value, bool):
        values = (value,)
    else:
        raise _wrong(where, name, value)
    for number in values:
        if not least <= number <= most:
            raise BadArgument(f"{where} is {shown(number)}", f"{least} to {most}")
        yield number


def _range(where: str, low: int, high: int, factor: float) -> Iterator[int]:
    """From `low` on, each number the one before times `factor`, up to `high`, which is included if
    it is met.
    """
    if not 0 < low <= high or factor <= 1:
        raise BadArgument(
            f"{where}: the range from {low} to {high} by x{factor:g} is empty", _FORMS["count"]
        )
    steps = math.floor(math.log(high / low) / math.log(factor) + 1e-9)
    if steps > MOST:
        raise BadArgument(
            f"{where}: the range has {steps + 1} values", f"at most {MOST}: a larger factor"
        )
    yield from (round(low * factor**step) for step in range(steps + 1))


def _wrong(where: str, name: str, value: Any) -> BadArgument:
    return BadArgument(f"{where}: {shown(value)} is not understood", form(name))

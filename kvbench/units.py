"""Numbers and names as people read them. GB is 10^9 bytes and used for rates. KiB, MiB and GiB are
used for capacities. The two are never mixed.
"""

import math
from collections.abc import Iterable
from datetime import datetime

GB = 1_000_000_000
KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

COUNT = r"([0-9]{1,18})([kKmM]?)"  # "4096", "4k"
_COUNTS = {"": 1, "k": KIB, "m": MIB}
_HIGHEST_CPU = 1 << 16  # far above any kernel's CPU numbers
_LINE = 64  # bytes


def gbps(count: float, seconds: float) -> float:
    """Bytes per second as GB/s."""
    return count / seconds / GB


def whole(digits: str, unit: str) -> int:
    """The number that the two parts of a COUNT stand for."""
    return int(digits) * _COUNTS[unit.lower()]


def whole_lines(count: float) -> int:
    """`count` bytes rounded up to whole cache lines, in bytes."""
    return math.ceil(count / _LINE) * _LINE


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 thread", "2 threads", "10 launches", "3 families"."""
    if number != 1:
        noun = (
            f"{noun[:-1]}ies"
            if noun.endswith("y")
            else f"{noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"
        )
    return f"{number} {noun}"


def cut(text: str, longest: int) -> str:
    """At most `longest` characters; an ellipsis stands for the characters left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cpu_text(cpus: Iterable[int]) -> str:
    """Write {0, 1, 2, 5} as "0-2,5"."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def cpu_list(text: str) -> frozenset[int]:
    """Parse "0-2,5" as {0, 1, 2, 5}. Raises ValueError if the text is not such a list."""
    cpus: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        ends = int(first), int(last if dash else first)
        if not ends[0] <= ends[1] <= _HIGHEST_CPU:
            raise ValueError(f"{part!r} is not a range of CPUs")
        if cpus & (more := set(range(ends[0], ends[1] + 1))):
            raise ValueError(f"{part!r} names a CPU twice")
        cpus |= more
    return frozenset(cpus)


def size(count: float) -> str:
    """A capacity in bytes: "512 B", "1.5 MiB"."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count:.4g} B"


def duration(seconds: float) -> str:
    """A time in seconds, or a difference of two: "12.3 µs"."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def span(seconds: float) -> str:
    """A long time as people say it: "40 s", "18 min", "7 h 20 min"."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 120 else f"{minutes} min"


def now() -> str:
    """The time as files store it: to the second, with its time zone."""
    return datetime.now().astimezone().isoformat(timespec="seconds")

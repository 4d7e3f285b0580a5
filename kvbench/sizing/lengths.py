"""How long sequences are: all alike, evenly between two lengths, or as a file lists them."""

import re
from collections import Counter
from dataclasses import dataclass

from kvbench import named
from kvbench.errors import BadArgument
from kvbench.units import COUNT, whole

_FORM = "uniform:A-B, fixed:N, or a file of whole numbers"
_LARGEST = 1 << 31


@dataclass(frozen=True, slots=True)
class Lengths:
    """`runs`: first length, last length, sequences of each length between them. Sums are exact."""

    name: str
    runs: tuple[tuple[int, int, int], ...]

    @property
    def count(self) -> int:
        return sum((last - first + 1) * each for first, last, each in self.runs)

    @property
    def longest(self) -> int:
        return max(last for _, last, _ in self.runs)

    def tokens(self, window: int = 0, step: int = 1) -> int:
        """Tokens of all sequences together, from each no more than the last `window` (0: all), rounded up to steps."""
        each = ((_sum(last, window, step) - _sum(first - 1, window, step), count) for first, last, count in self.runs)
        return sum(tokens * count for tokens, count in each)


def _sum(longest: int, window: int, step: int) -> int:
    """Tokens of one sequence of each length from 1 on."""
    beyond = max(0, longest - window) if window else 0
    full, over = divmod(longest - beyond, step)
    rising = step * (step * full * (full + 1) // 2 + over * (full + 1))
    return rising + beyond * -(-window // step) * step


def read_lengths(text: str) -> Lengths:
    if found := re.fullmatch(f"fixed:{COUNT}", text):
        runs = [(whole(*found.groups()), whole(*found.groups()), 1)]
    elif found := re.fullmatch(f"uniform:{COUNT}-{COUNT}", text):
        runs = [(whole(found[1], found[2]), whole(found[3], found[4]), 1)]
    elif text.startswith(("fixed:", "uniform:")):
        raise BadArgument(f"--lengths: {text[:60]!r} is not understood", _FORM)
    else:
        runs = [(length, length, count) for length, count in sorted(_listed(text).items())]
    for first, last, _ in runs:
        if not 1 <= first <= last < _LARGEST:
            raise BadArgument(f"--lengths {text[:60]}: {first} to {last} tokens", f"lengths from 1 to {_LARGEST - 1}")
    return Lengths(text, tuple(runs))


def _listed(path: str) -> Counter[int]:
    try:
        words = named.text(path, named.LISTED).split()
    except OSError as error:
        raise BadArgument(f"--lengths: cannot read {path[:60]}: {error.strerror}", _FORM) from None
    for word in words:
        if not re.fullmatch(r"[0-9]{1,18}", word):
            raise BadArgument(f"--lengths: {path[:60]} holds {word[:20]!r}", "whole numbers, each a sequence's tokens")
    if not words:
        raise BadArgument(f"--lengths: {path[:60]} is empty", "whole numbers, each a sequence's tokens")
    return Counter(map(int, words))

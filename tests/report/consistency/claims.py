"""What is claimed somewhere: of what, which quantity, how much, held against what."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"


@dataclass(frozen=True)
class Claim:
    """`half`: half of the last digit that is shown. A word has no number."""

    subject: object
    quantity: str
    value: float | str
    half: float
    held: str
    place: str

    def __str__(self) -> str:
        held = f" of {self.held}" if self.held else ""
        shown = self.value if isinstance(self.value, str) else f"{self.value:.6g}"
        return f"{_plain(self.subject)}, {self.quantity}{held}: {shown} ({self.place})"


@dataclass(frozen=True)
class Conflict:
    """Two statements that cannot both be true, or one that cannot be."""

    rule: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"[{self.rule}] {self.first} | {self.second}"


def _plain(subject: object) -> str:
    return " ".join(sorted(subject)) if isinstance(subject, frozenset) else str(subject)


def number(text: str) -> tuple[float, float] | None:
    """The first number of a text, and half of its last digit."""
    found = re.search(NUMBER, text)
    if not found:
        return None
    digits, _, power = found[0].replace(",", "").partition("e")
    places = len(digits.partition(".")[2])
    return float(found[0].replace(",", "")), 0.5 * 10.0 ** (int(power or 0) - places)


def claim(subject: object, quantity: str, text: str, held: str, place: str) -> Iterator[Claim]:
    """The claim of a text with a number; a percentage becomes a share. A text without a number has
    no claim. A CSV does not round.
    """
    found = number(text)
    if found:
        scale = 0.01 if "%" in text else 1.0
        half = 0.0 if ".csv" in place else found[1] * scale
        yield Claim(subject, quantity, found[0] * scale, half, held, place)


def apart(first: Claim, second: Claim) -> bool:
    """Whether they disagree beyond rounding."""
    if isinstance(first.value, str) or isinstance(second.value, str):
        return first.value != second.value
    slack = 1e-6 * max(abs(first.value), abs(second.value))
    return abs(first.value - second.value) > first.half + second.half + slack


def disagreeing(claims: Iterable[Claim]) -> Iterator[Conflict]:
    """Pairs of one subject, quantity and whole, each pair of values once."""
    same: dict[tuple[object, str, str], list[Claim]] = {}
    for each in claims:
        same.setdefault((each.subject, each.quantity, each.held), []).append(each)
    for group in same.values():
        seen = set()
        for first, second in combinations(group, 2):
            if apart(first, second) and (first.value, second.value) not in seen:
                seen.add((first.value, second.value))
                yield Conflict(first.quantity, str(first), str(second))

"""Markdown for GitHub: the summary of a job, and a comment that is found again and replaced.

GitHub drops a summary that is too long altogether, and refuses such a comment, so both stop in time and say so."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from kvbench.exports.wording import UNKNOWN, change, counts, detectable, probability, rates, sides, title
from kvbench.model import Comparison, Judged
from kvbench.texts import markdown as plain
from kvbench.units import cut

SUMMARY = 1 << 20  # bytes that GitHub takes
COMMENT = 1 << 16
_TOP = 15  # rows that are not folded
_NOTES = 12
_LONGEST = 200  # characters of one text
_END = 200  # bytes kept free for what is said last
_SIMPLE = re.compile(r"[\w./:,=+ -]+")
_COMPLEX = re.compile(r"[^\w./:,=+ -]|_")
_CHANGE = "change of time [95 % interval], in % of base's time"

_Rows = tuple[Sequence[Any], Callable[[Any], str]]  # what they are about, and what makes a line of it


class _Room:
    """Lines, as long as there is room for them."""

    def __init__(self, limit: int) -> None:
        self.lines: list[str] = []
        self.left = limit

    def take(self, *lines: str) -> bool:
        """All of them or none."""
        size = sum(len(line.encode()) + 1 for line in lines)
        if size > self.left:
            return False
        self.left -= size
        self.lines.extend(lines)
        return True

    def rows(self, head: Sequence[str], rows: _Rows, last: Sequence[str] = ()) -> int:
        """As many as fit between the head and the last lines; how many did not."""
        things, line = rows
        if not things or not self.take("", *head, *last):
            return len(things)
        del self.lines[len(self.lines) - len(last) :]
        taken = next((number for number, thing in enumerate(things) if not self.take(line(thing))), len(things))
        self.lines.extend(last)
        return len(things) - taken


def summary(comparison: Comparison) -> str:
    return _page(comparison, SUMMARY)


def comment(comparison: Comparison) -> str:
    return _page(comparison, COMMENT)


def _page(comparison: Comparison, limit: int) -> str:
    room = _Room(limit - _END)
    room.take(_marker(comparison), f"## {_plain(title(comparison))}", "", _plain(sides(comparison), 3 * _LONGEST), "")
    for text in (counts(comparison.families, "families"), counts(comparison.points, "points")):
        room.take(f"- {_plain(text)}")
    for note in comparison.notes[:_NOTES]:
        room.take(_item(note))
    levels = {"family": comparison.families, "point": comparison.points}
    lost = max(len(comparison.notes) - _NOTES, 0)
    lost += sum(room.rows(_heads(level), (judged[:_TOP], _row)) for level, judged in levels.items())
    lost += _folded(room, f"{len(comparison.missing)} could not be compared", [], (comparison.missing, _item))
    for level, judged in levels.items():
        rest = judged[_TOP:]
        lost += _folded(room, f"{len(rest)} more, by {level}", _heads(level), (rest, _row))
    more = ["", f"{lost} more lines do not fit here; the CSV form of this comparison has them."] if lost else []
    return "\n".join([*room.lines, *more]) + "\n"


def _folded(room: _Room, about: str, head: Sequence[str], rows: _Rows) -> int:
    return room.rows(["<details>", f"<summary>{about}</summary>", "", *head], rows, ["", "</details>"])


def _marker(comparison: Comparison) -> str:
    """What a job looks for to replace its comment of last time: one for each command and machine."""
    place = re.sub(r"[^A-Za-z0-9.]+", "-", comparison.machine)[:_LONGEST].strip("-")
    return f"<!-- kvbench {re.sub('[^a-z]', '', comparison.command)} {place} -->"


def _heads(level: str) -> list[str]:
    heads = ["verdict", level, _CHANGE, "GB/s, base → head", "q", "launches, base / head", "why"]
    return [_cells(heads), _cells(["---"] * len(heads))]


def _item(text: str) -> str:
    return f"- {_plain(text)}"


def _row(judged: Judged) -> str:
    base, head = judged.launches
    return _cells(
        [
            _plain(judged.verdict),
            _code(judged.name),
            _plain(change(judged)),
            rates(judged) or UNKNOWN,
            probability(judged.q),
            f"{base} / {head}",
            _plain("; ".join(filter(None, (judged.note, detectable(judged))))),
        ]
    )


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    """As it is; signs that mean something to Markdown, which a code span cannot hold in a table, by their numbers."""
    name = cut(name, _LONGEST)
    if _SIMPLE.fullmatch(name):
        return f"`{name}`"
    return f"<code>{_COMPLEX.sub(lambda sign: f'&#{ord(sign[0])};', name)}</code>"


def _plain(text: str, longest: int = _LONGEST) -> str:
    return plain(cut(text, longest))

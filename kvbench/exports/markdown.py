"""For GitHub: Markdown for the summary of a job and for a comment that replaces the last one; and
lines for the log.

GitHub drops a summary that is too long, and refuses such a comment. So both stop in time and say
so.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from kvbench.exports import wording
from kvbench.exports.causes import headline, sensitivity, sentence, told
from kvbench.exports.wording import (
    UNKNOWN,
    change,
    counts,
    detectable,
    probability,
    rates,
    sides,
    title,
)
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import (
    CONTAMINATED,
    EQUIVALENT,
    INCONCLUSIVE,
    NOT_COMPARABLE,
    REGRESSION,
    WORDS,
)
from kvbench.texts import markdown as plain
from kvbench.texts import markdown_table
from kvbench.units import counted, cut

SUMMARY = 1 << 20  # bytes that GitHub accepts
COMMENT = 1 << 16
_TOP = 15  # rows that are not folded
_NOTES = 12
_LONGEST = 200  # characters of one text
_SIMPLE = re.compile(r"[\w./:,=+ -]+")
_COMPLEX = re.compile(r"[^\w./:,=+ -]|_")
_CHANGE = "change of time [95 % interval], in % of base's time"
_LEVELS = {
    REGRESSION: "error",
    NOT_COMPARABLE: "error",
    CONTAMINATED: "warning",
    INCONCLUSIVE: "warning",
}
_NAMED, _SAID = 15, 300  # rows that an annotation names, and characters about each
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def fitted(comparison: Comparison, limit: int) -> str:
    """The page with as many rows of each table as fit, in steps of a tenth."""
    most = max(map(len, (comparison.points, comparison.families, comparison.missing)))
    while len((text := "\n".join(_page(comparison, most)) + "\n").encode()) > limit:
        most = most * 9 // 10
    return text


def _page(comparison: Comparison, most: int) -> Iterator[str]:
    """The lines of the page. `most`: rows of each table, including those not folded."""
    heading = _plain(f"{title(comparison)}: {headline(comparison)}", 3 * _LONGEST)
    yield from (_marker(comparison), f"## {heading}", "")
    lines = [sentence(line) for line in told(comparison)]
    yield from map(_item, lines[:_TOP])
    yield from _folded(f"{len(lines[_TOP:])} more families", map(_item, lines[_TOP:most]))
    numbers = (
        counts(comparison.points, "point"),
        sensitivity(comparison),
        *comparison.notes[:_NOTES],
    )
    yield from ("", _plain(sides(comparison), 3 * _LONGEST), "", *map(_item, filter(None, numbers)))
    if top := comparison.points[: min(_TOP, most)]:
        yield from ("", *_table("point", top))
    yield from _folded(
        f"{len(comparison.missing)} could not be compared",
        map(_item, comparison.missing[:most]),
    )
    for level, judged in (("family", comparison.families), ("point", comparison.points)):
        first = _TOP if level == "point" else 0
        yield from _folded(
            f"{len(judged[first:])} rows, by {level}", _table(level, judged[first:most])
        )
    lost = sum(
        max(len(each) - most, 0)
        for each in (comparison.families, comparison.points, comparison.missing)
    )
    if lost := lost + max(len(comparison.notes) - _NOTES, 0):
        yield from (
            "",
            f"{lost} more lines do not fit here; see the CSV form of this comparison.",
        )


def _folded(about: str, content: Iterable[str]) -> Iterator[str]:
    if lines := list(content):
        yield from (
            "",
            "<details>",
            f"<summary>{about}</summary>",
            "",
            *lines,
            "",
            "</details>",
        )


def _marker(comparison: Comparison) -> str:
    """The text by which a job finds its last comment to replace it: one for each command and
    machine.
    """
    place = re.sub(r"[^A-Za-z0-9.]+", "-", comparison.machine)[:_LONGEST].strip("-")
    return f"<!-- kvbench {re.sub('[^a-z]', '', comparison.command)} {place} -->"


def _table(level: str, judged: Sequence[Judged]) -> list[str]:
    """Lines of a table with a row for each point or family; none without any."""
    heads = ["verdict", level, _CHANGE, "GB/s, base → head", "q", "launches, base / head", "why"]
    return list(markdown_table(heads, map(_row, judged))) if judged else []


def _item(text: str) -> str:
    return f"- {_plain(text)}"


def _row(judged: Judged) -> list[str]:
    base, head = judged.launches
    why = _plain("; ".join(filter(None, (judged.note, detectable(judged)))))
    numbers = (
        _plain(change(judged)),
        rates(judged) or UNKNOWN,
        probability(judged.q),
        f"{base} / {head}",
    )
    return [_plain(judged.verdict), _code(judged.name), *numbers, why]


def _code(name: str) -> str:
    """A name as code. Signs with a meaning in Markdown, which a code span in a table cannot hold,
    become their numbers.
    """
    name = cut(name, _LONGEST)
    if _SIMPLE.fullmatch(name):
        return f"`{name}`"
    return f"<code>{_COMPLEX.sub(lambda sign: f'&#{ord(sign[0])};', name)}</code>"


def _plain(text: str, longest: int = _LONGEST) -> str:
    return plain(cut(text, longest))


def annotations(comparison: Comparison) -> str:
    """Workflow commands for the log: one for each verdict that occurs, because GitHub shows about
    ten. The overall verdict has its own level; all others are notices.
    """
    own, found = comparison.verdict, ""
    for word in (own, *(word for word in WORDS if word != own)):
        judged = [
            one
            for one in (*comparison.families, *comparison.points)
            if one.verdict == word != EQUIVALENT
        ]
        lines = [cut(f"{one.name}: {wording.sentence(one)}", _SAID) for one in judged[:_NAMED]]
        lines += [f"{len(judged) - _NAMED} more"] if len(judged) > _NAMED else []
        if word == own:
            lost = (
                [f"{counted(len(comparison.missing), 'point')} could not be compared"]
                if comparison.missing
                else []
            )
            found += _command(
                _LEVELS.get(word, "notice"), title(comparison), [sides(comparison), *lines, *lost]
            )
        elif lines:
            found += _command("notice", f"kvbench {comparison.command}: also {word}", lines)
    return found


def _command(level: str, heading: str, lines: list[str]) -> str:
    text = "\n".join(lines)
    return f"::{level} title={heading.translate(_PROPERTY)}::{text.translate(_DATA)}\n"

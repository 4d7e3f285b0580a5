"""Workflow commands for GitHub's log: one annotation for each verdict word that was given, for it shows about ten."""

from collections.abc import Iterator

from kvbench.exports.wording import sentence, sides, title
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, INCONCLUSIVE, NOT_COMPARABLE, REGRESSION, WORDS
from kvbench.units import counted, cut

_LEVELS = {REGRESSION: "error", NOT_COMPARABLE: "error", CONTAMINATED: "warning", INCONCLUSIVE: "warning"}
_MOST = 15  # named in one annotation
_LONGEST = 300  # characters said of one of them
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def annotations(comparison: Comparison) -> str:
    return "".join(f"{line}\n" for line in _lines(comparison))


def _lines(comparison: Comparison) -> Iterator[str]:
    """The word of the whole has its own level; what else was found is worth a notice."""
    for word in (comparison.verdict, *(word for word in WORDS if word != comparison.verdict)):
        judged = [one for one in (*comparison.families, *comparison.points) if one.verdict == word]
        if word == comparison.verdict:
            yield _command(_LEVELS.get(word, "notice"), title(comparison), _whole(comparison, judged))
        elif judged and word != EQUIVALENT:
            yield _command("notice", f"kvbench {comparison.command}: also {word}", _named(judged))


def _whole(comparison: Comparison, judged: list[Judged]) -> str:
    lines = [sides(comparison)]
    if judged and comparison.verdict != EQUIVALENT:
        lines.append(_named(judged))
    if comparison.missing:
        lines.append(f"{counted(len(comparison.missing), 'point')} could not be compared")
    return "\n".join(lines)


def _named(judged: list[Judged]) -> str:
    lines = [cut(f"{one.name}: {sentence(one)}", _LONGEST) for one in judged[:_MOST]]
    more = [f"{len(judged) - _MOST} more"] if len(judged) > _MOST else []
    return "\n".join(lines + more)


def _command(level: str, heading: str, text: str) -> str:
    return f"::{level} title={heading.translate(_PROPERTY)}::{text.translate(_DATA)}"

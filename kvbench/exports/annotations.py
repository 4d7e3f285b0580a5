"""Workflow commands for GitHub's log: one annotation for each verdict word that was given, for it shows about ten."""

from kvbench.exports.wording import sentence, sides, title
from kvbench.model import Comparison
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, INCONCLUSIVE, NOT_COMPARABLE, REGRESSION, WORDS
from kvbench.units import counted, cut

_LEVELS = {REGRESSION: "error", NOT_COMPARABLE: "error", CONTAMINATED: "warning", INCONCLUSIVE: "warning"}
_MOST = 15  # named in one annotation
_LONGEST = 300  # characters said of one of them
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def annotations(comparison: Comparison) -> str:
    """The word of the whole has its own level; what else was found is worth a notice."""
    own, found = comparison.verdict, ""
    for word in (own, *(word for word in WORDS if word != own)):
        judged = [one for one in (*comparison.families, *comparison.points) if one.verdict == word != EQUIVALENT]
        lines = [cut(f"{one.name}: {sentence(one)}", _LONGEST) for one in judged[:_MOST]]
        lines += [f"{len(judged) - _MOST} more"] if len(judged) > _MOST else []
        if word == own:
            lost = [f"{counted(len(comparison.missing), 'point')} could not be compared"] if comparison.missing else []
            found += _command(_LEVELS.get(word, "notice"), title(comparison), [sides(comparison), *lines, *lost])
        elif lines:
            found += _command("notice", f"kvbench {comparison.command}: also {word}", lines)
    return found


def _command(level: str, heading: str, lines: list[str]) -> str:
    text = "\n".join(lines)
    return f"::{level} title={heading.translate(_PROPERTY)}::{text.translate(_DATA)}\n"

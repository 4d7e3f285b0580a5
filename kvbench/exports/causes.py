"""Sum up a comparison in the fewest lines. If all points of a family share a change, the widest
such family is reported, and not its points.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from statistics import median

from kvbench.analysis.judge import LIMITS
from kvbench.exports.wording import counts
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import CONTAMINATED, EQUIVALENT, IMPROVEMENT, REGRESSION, WORDS

_CHANGED = (REGRESSION, IMPROVEMENT)
_ANY = ".*"  # ends the name of a family that is a pattern of kernels


@dataclass(frozen=True, slots=True)
class Cause:
    """A family with its points, or a point whose change none of its families shares."""

    judged: Judged
    points: tuple[Judged, ...]


def told(found: Comparison) -> list[Cause]:
    """The causes, worst first; of equal verdicts the widest first. A single point only if it
    changed.
    """
    families = [Cause(each, tuple(_points(each, found))) for each in found.families]
    points = [
        Cause(each, (each,)) for each in found.points if each.verdict in (*_CHANGED, CONTAMINATED)
    ]
    lines, seen = [], {word: set[str]() for word in WORDS}
    for line in sorted(
        (*families, *points), key=lambda line: (WORDS.index(line.judged.verdict), -len(line.points))
    ):
        own, word = {point.name for point in line.points}, line.judged.verdict
        # points that are told already
        elsewhere = set() if word in _CHANGED else seen[REGRESSION] | seen[IMPROVEMENT]
        if not own or own - seen[word] - elsewhere:
            lines.append(line)
            seen[word] |= own | {
                p.name for p in found.points if _within(line.judged, p.name.partition("/")[0])
            }
    return lines


def sentence(line: Cause, name: str = "") -> str:
    """The sentence of a cause, such as "all 40 decode.flash points are 2.1 % slower (1.4..2.8)".
    `name`: a short name.
    """
    one, many = line.judged, len(line.points)
    name = name or one.name.removesuffix(_ANY)
    note = f": {one.note}" if one.note else ""
    if one.effect is None:
        return f"{name}: {one.verdict}{note}"
    alike = all((point.effect or 0.0) * one.effect > 0 for point in line.points)
    who = name if many < 2 else f"{'all ' if alike else 'the median of '}{many} {name} points"
    ends = one.ends
    if one.verdict in _CHANGED or (one.verdict == EQUIVALENT and ends and ends[0] * ends[1] > 0):
        way, sign = ("slower", 1) if one.effect > 0 else ("faster", -1)
        own = sorted(sign * end for end in ends or ())
        around = f" ({'..'.join(f'{100 * end:.1f}' for end in own)})" if ends else ""
        return (
            f"{who} {'are' if alike and many > 1 else 'is'} {100 * abs(one.effect):.1f} %"
            f" {way}{around}{note}"
        )
    said = "no change" if one.verdict == EQUIVALENT else one.verdict.lower()
    around = f" ({'..'.join(f'{100 * end:+.1f}' for end in ends)})" if ends else ""
    return f"{who}: {said}, {100 * one.effect:+.1f} %{around}{note}"


def headline(found: Comparison) -> str:
    """The most important facts besides the verdict."""
    own = [line for line in told(found) if line.judged.verdict == found.verdict]
    if found.verdict in _CHANGED and own:
        first = Cause(replace(own[0].judged, note=""), own[0].points)
        return f"{sentence(first)}{f'; and {len(own) - 1} more' if len(own) > 1 else ''}"
    return counts(found.points, "point") if found.points else "no point was measured"


def sensitivity(found: Comparison) -> str:
    """The smallest slowdown of a single point that would have been seen; "" if unknown."""
    if not (seen := [point.detectable for point in found.points if point.detectable is not None]):
        return ""
    return (
        f"a slowdown of {median(seen):.1%} at the typical point would have been seen,"
        f" {LIMITS.power:.0%} of the time; {min(seen):.1%} to {max(seen):.1%} over all"
    )


def _points(family: Judged, found: Comparison) -> Iterator[Judged]:
    """The points of a family. The name of a point's own family begins with the point's kernel."""
    for point in found.points:
        own = point.family == family.name or _within(family, point.family.partition(" ")[0] + ".")
        if point.effect is not None and own:
            yield point


def _within(family: Judged, kernel: str) -> bool:
    return family.name.endswith(_ANY) and fnmatchcase(kernel, family.name)

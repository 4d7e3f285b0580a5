"""The summary of a sweep as lines of text."""

from collections.abc import Iterator, Sequence

from kvbench.analysis.diagnosis import Sentence
from kvbench.analysis.findings import Place, RunSummary
from kvbench.model import AHEAD, Role
from kvbench.texts import WIDTH, wrapped
from kvbench.units import counted, cut

_LINES = 40  # of the whole summary
_LEGEND = {
    "twin": "twin: the same reads and nothing else",
    "copy": "copy, copy_nt: as many bytes moved by ordinary and by non-temporal stores",
}
# Where there is no room for all: the first of these are left to the report.
_LEFT_OUT = ("overhead", "stores", "tokens", "bound", "threads", "fit", "suspect", "dtype", "layout", "l3", "bandwidth")


def text(summary: RunSummary) -> list[str]:
    """No more than a page: what does not fit is counted."""
    head = [list(part) for part in (_heading(summary), _table(summary.places))]
    kept, taken = list(summary.diagnosis), sum(len(part) + 1 for part in head if part)
    for topic in _LEFT_OUT:
        if taken + len(_sentences(kept, summary)) > _LINES:
            kept = [sentence for sentence in kept if sentence.topic != topic]
    found = [part for part in (*head, _sentences(kept, summary)) if part]
    return [line for part in found for line in ("", *part)][1:]


def _sentences(kept: Sequence[Sentence], summary: RunSummary) -> list[str]:
    lines = list(wrapped(sentence.text for sentence in kept))
    left = len(summary.diagnosis) - len(kept)
    return [*lines, f"  and {counted(left, 'sentence')} more: kvbench report"] if left else lines


def _heading(summary: RunSummary) -> Iterator[str]:
    failed = f"; {summary.failed} with errors" if summary.failed else ""
    yield f"{counted(summary.points, 'point')}, {counted(summary.launches, 'launch')}{failed}"
    for error in summary.errors:
        yield f"  {_cut(error)}"
    if summary.failed > len(summary.errors):
        yield f"  and {summary.failed - len(summary.errors)} more"


def _cut(line: str) -> str:
    return cut(" ".join(line.splitlines()), WIDTH - 2)


def _table(places: Sequence[Place]) -> Iterator[str]:
    if not places:
        return
    labels = _labels(places)
    width = max(map(len, labels.values()))
    yield f"  {'':<{width}}    GB/s"
    for place in {place.name: place for place in places}.values():
        role = Role.of(place.witness)
        form = role.kind if role == AHEAD else role.name
        share = "" if place.efficiency is None else f"{place.efficiency:.0%} of {form}"
        share = "at the reads" if form == "twin" and (place.efficiency or 0) > 1 else share
        yield f"  {_cut(f'{labels[place.name]:<{width}}  {place.gbps:>6.3g}  {share:<16}  {place.short}')}"
    said = {Role.of(place.witness).kind for place in places}
    legend = "; ".join(words for form, words in _LEGEND.items() if form in said)
    if legend:
        yield f"  {legend}"


def _labels(places: Sequence[Place]) -> dict[str, str]:
    """By point: it has one line, whatever it stands out in."""
    found: dict[str, str] = {}
    for place in places:
        found[place.name] = f"{found.get(place.name, place.kind)}, {place.rank}"
    return found

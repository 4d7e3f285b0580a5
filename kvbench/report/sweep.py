"""The summary of a sweep as lines of text."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from kvbench.analysis.summary import Place, Summary
from kvbench.units import counted

_WIDTH = 120
_LEGEND = {
    "twin": "twin: the same reads and nothing else",
    "copy": "copy, copy_nt: as many bytes moved by ordinary and by non-temporal stores",
}


def text(summary: Summary) -> list[str]:
    parts = (_heading(summary), _table(summary.places), _wrapped(summary.verdicts), _wrapped(_noise(summary)))
    found = [lines for part in parts if (lines := list(part))]
    return [line for lines in found for line in ("", *lines)][1:]


def _heading(summary: Summary) -> Iterator[str]:
    failed = f"; {summary.failed} with errors" if summary.failed else ""
    yield f"{counted(summary.points, 'point')}, {_launches(summary.launches)}{failed}"
    for error in summary.errors:
        yield f"  {_cut(error)}"
    if summary.failed > len(summary.errors):
        yield f"  and {summary.failed - len(summary.errors)} more"


def _cut(line: str) -> str:
    line = " ".join(line.splitlines())
    return line if len(line) <= _WIDTH - 2 else f"{line[: _WIDTH - 3]}…"


def _launches(count: int) -> str:
    return f"{count} launch{'' if count == 1 else 'es'}"


def _table(places: Sequence[Place]) -> Iterator[str]:
    if not places:
        return
    labels = _labels(places)
    width = max(map(len, labels.values()))
    yield f"  {'':<{width}}    GB/s"
    for place in {place.name: place for place in places}.values():
        form = place.witness.removesuffix("_ahead")
        share = "" if place.efficiency is None else f"{place.efficiency:.0%} of {form}"
        yield f"  {_cut(f'{labels[place.name]:<{width}}  {place.gbps:>6.3g}  {share:<16}  {place.short}')}"
    said = {place.witness.removesuffix("_ahead").removesuffix("_nt") for place in places}
    legend = "; ".join(words for form, words in _LEGEND.items() if form in said)
    if legend:
        yield f"  {legend}"


def _labels(places: Sequence[Place]) -> dict[str, str]:
    """By point: it has one line, whatever it stands out in."""
    found: dict[str, str] = {}
    for place in places:
        found[place.name] = f"{found.get(place.name, place.kind)}, {place.rank}"
    return found


def _wrapped(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        yield from textwrap.wrap(sentence, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _noise(summary: Summary) -> Iterator[str]:
    """How wide the intervals over the launches are, for half of the points and for nine of ten."""
    noise = summary.noise
    if noise.gbps is None:
        yield "Noise: unknown, no point has more than one launch"
    else:
        widths = f"GB/s of half of the points spread by up to {noise.gbps:.1%}, of nine in ten by {noise.gbps_most:.1%}"
        if noise.efficiency is not None:
            widths += f"; efficiency by {noise.efficiency:.1%} and {noise.efficiency_most:.1%}"
        yield f"Noise between launches: {widths}"
    if noise.disturbed is not None:
        yield f"{noise.disturbed:.1%} of the samples were disturbed: steal, other threads, page faults, throttling"

"""The gallery: machines by their scores, and the files that hold one."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kvbench.report.page import gallery_page
from kvbench.report.tables import Cell, Sheet
from kvbench.report.words import score as words
from kvbench.report.words.phrases import number
from kvbench.score import WIDTHS, Figure, Score
from kvbench.store import write_text
from kvbench.store.files import writing

_ABOUT = (
    "Tokens per second of attention alone: Llama-3-8B's 32 layers, 4,096 tokens, one sequence, from memory, all cores. "
    "16 bits are exact; 8 and 4 bits are the fastest verified kernel of that width. Tuned: the schedule was chosen by a "
    "measurement on that machine; base: it was not. In brackets the interval, and the share of plain reads of memory in "
    "the same run. Rows may be compared where the version is the same and both are valid or noisy; two whose intervals "
    "overlap are tied. What is open has kernels or a build of its own; what is invalid has no figures, and says why. A "
    "virtual machine stands for itself, not for its host."
)


def write_gallery(page: Path, scores: Sequence[Score], notes: Sequence[str]) -> Path:
    """notes: what could not be read."""
    with writing(page, "then call kvbench report again"):
        write_text(page, gallery_page(sheet(scores), len(scores), notes))
    return page


def sheet(scores: Iterable[Score]) -> Sheet:
    """What counts first, then the faster with 16 bits."""
    ranks = {"valid": 0, "noisy": 0, "open": 1}
    order = sorted(scores, key=lambda each: (ranks.get(each.state, 2), -_first(each)))
    rows = [tuple(_row(each)) for each in order]
    cells = tuple(tuple(cell for _, cell in row) for row in rows)
    heads = tuple(head for head, _ in rows[0]) if rows else ()
    return Sheet("scores", "Machines", _ABOUT, heads, cells, (None,) * len(rows), ({},) * len(rows))


def _first(found: Score) -> float:
    return found.figures[0].tuned.tokens if found.figures else 0.0


def _row(found: Score) -> Iterator[tuple[str, Cell]]:
    own = {} if found.state == "invalid" else {each.bits: each for each in found.figures}
    yield "machine", _text(found.machine)
    yield "state", _text(found.state)
    yield "class", _text("virtual" if words.kind(found).startswith("virtual") else words.kind(found))
    yield "cores", Cell(str(found.threads), found.threads)
    for bits in WIDTHS:
        yield f"{bits} bits, tuned", _rate(own.get(bits))
        base = own[bits].base if bits in own else None
        yield "base", Cell(number(base.tokens), base.tokens) if base else Cell("", "")
    yield "reads, GB/s", Cell(number(found.read_gbps), found.read_gbps) if found.read_gbps else Cell("", "")
    yield "date", _text(found.created[:10])
    yield "version", _text(found.tag)
    yield "kernels", _text(", ".join(words.kernel(each) for each in own.values()))
    yield "why", _text(words.why(found))


def _text(text: str) -> Cell:
    return Cell(text, text)


def _rate(found: Figure | None) -> Cell:
    if found is None:
        return Cell("", "")
    share = f", {found.share:.0%}" if found.share else ""
    rate = found.tuned
    return Cell(f"{number(rate.tokens)} ({number(rate.low)}..{number(rate.high)}{share})", rate.tokens)

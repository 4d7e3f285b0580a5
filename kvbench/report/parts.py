"""The marked parts of pages: tables and screens of the machines in a folder, as Markdown."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kvbench.analysis.means.engines import Engines, of_formats
from kvbench.analysis.means.standings import Standing, standings
from kvbench.errors import one_of
from kvbench.report.ending import short
from kvbench.report.kept import KeptMachine, KeptRun
from kvbench.report.marks import Mark
from kvbench.report.words import paragraphs, said
from kvbench.score import WIDTHS
from kvbench.texts import markdown as plain
from kvbench.texts import markdown_table

_WIDTH = 100  # columns of a page's text
# what would begin a list or a heading, at the beginning of a line
_LIST = re.compile(r"^(\d+)([.)] )|^([-+] )")
_Machines = Sequence[KeptMachine]
_SHORT = "short"


def part(mark: Mark, machines: _Machines, to: str) -> list[str]:
    """The lines of a marked part. `to`: the way from the page to the folder of the machines, which
    begins links; empty or with a slash at its end.
    """
    known(mark)
    return list(_PARTS[mark.name](mark, machines, to))


def known(mark: Mark) -> list[str]:
    """Refuse a mark with an unknown name, before any run is read; return no lines."""
    if mark.name not in _PARTS:
        raise mark.refused(f"{mark.name!r} is not known", one_of(mark.name, _PARTS))
    return []


def _scores(mark: Mark, machines: _Machines, to: str) -> Iterator[str]:
    """All machines, with ranks: virtual machines, then bare metal. Words: `short`, which leaves out
    what cells and ranks are.
    """
    _refuse_words(mark, [word for word in mark.words if word != _SHORT], (_SHORT,))
    found = standings(each.entry for each in machines if each.entry)
    for own in found.lists:
        if own.rows:
            yield from prose(said("standings", own.kind))
            first = ("rank",) if own.ranked else ()
            heads = (*first, "machine", *(f"{bits} bits" for bits in WIDTHS), "from")
            rows = [_standing(each, to)[1 - len(first) :] for each in own.rows]
            yield from ("", *markdown_table(heads, rows), "")
    notes = paragraphs("standings", "notes", found, _SHORT not in mark.words)
    yield from spaced(prose(each) for each in notes)


def _standing(found: Standing, to: str) -> list[str]:
    entry = found.entry
    widths = {each.bits: said("standings", "width", each) for each in entry.widths}
    return [
        "" if found.rank is None else str(found.rank),
        said("standings", "machine", entry, to),
        *(widths.get(bits, "") for bits in WIDTHS),
        said("standings", "origin", entry, to),
    ]


def _engines(mark: Mark, machines: _Machines, to: str) -> Iterator[str]:
    """The table of a run's engines. Words: the run; number formats; and `short`, which leaves out
    the engines' versions.
    """
    machine, run = _run_of(mark, machines, [each for each in _runs(machines) if each[1].engines])
    found, dtypes = run.engines, [word for word in mark.words[1:] if word != _SHORT]
    assert found  # of the runs that may be named, each has engines
    _refuse_words(mark, [dtype for dtype in dtypes if dtype not in found.dtypes], found.dtypes)
    if dtypes:
        found = of_formats(found, dtypes, machine.bits)
    about = said("engines", "about", machine, run, to)
    yield from engine_table(found, run, about, whole=_SHORT not in mark.words)


def engine_table(
    found: Engines, run: KeptRun, about: str = "", whole: bool = True
) -> Iterator[str]:
    """The table, and what must be known to read it. `about`: which run it is of. `whole`: with the
    engines' versions.
    """
    yield from prose(f"{about} {said('engines', 'read', found, run)}".strip())
    yield ""
    formats = [said("engines", "format", each, found) for each in found.formats]
    rows = (
        [
            *map(plain, (row.engine, row.layout)),
            *(said("engines", "cell", each, run) for each in row.means),
        ]
        for row in found.rows
    )
    ours = ["kvbench", "", *(said("engines", "ours", share) for share in found.ours)]
    yield from markdown_table(["engine", "layout", *formats], [ours, *rows])
    names = {row.engine for row in found.rows if whole}
    took_part = [each for each in run.found.beside.engines if each.engine in names]
    notes = paragraphs("engines", "notes", found, took_part)
    yield from (line for each in notes for line in ("", *prose(each)))


def _screen(mark: Mark, machines: _Machines, to: str) -> Iterator[str]:
    """The first screen of a run. Words: the run; and `short`, for the machine, the grade and the
    tables alone.
    """
    _, run = _run_of(mark, machines, list(_runs(machines)))
    _refuse_words(mark, [word for word in mark.words[1:] if word != _SHORT], (_SHORT,))
    yield from code(short(run.found, whole=_SHORT not in mark.words))


def _list(mark: Mark, machines: _Machines, to: str) -> Iterator[str]:
    """All machines with their runs."""
    _refuse_words(mark, mark.words)
    cells = ("link", "cpu", "runs", "grade")
    rows = ([said("kept", cell, each, to) for cell in cells] for each in machines)
    yield from markdown_table(("machine", "CPU", "runs", "grade of `quick`"), rows)


_PARTS: dict[str, Callable[[Mark, _Machines, str], Iterable[str]]] = {
    "scores": _scores,
    "engines": _engines,
    "screen": _screen,
    "machines": _list,
}


# ---- what a mark names ---------------------------------------------------------------------------


def _runs(machines: _Machines) -> Iterator[tuple[KeptMachine, KeptRun]]:
    yield from ((machine, run) for machine in machines for run in machine.runs)


def _run_of(
    mark: Mark, machines: _Machines, known: Sequence[tuple[KeptMachine, KeptRun]]
) -> tuple[KeptMachine, KeptRun]:
    """The run that the first word of a mark names, out of those that it may name."""
    named = {f"{machine.name}/{run.name}": (machine, run) for machine, run in known}
    asked = next(iter(mark.words), "")
    if asked not in named:
        what = f"{mark.name} has no run {asked!r}" if asked else f"{mark.name} names no run"
        raise mark.refused(what, one_of(asked, named))
    return named[asked]


def _refuse_words(mark: Mark, odd: Sequence[str], allowed: Sequence[str] = ()) -> None:
    if odd:
        hint = one_of(odd[0], allowed) if allowed else f"write it without {odd[0]!r}"
        raise mark.refused(f"{mark.name} has no word {odd[0]!r}", hint)


# ---- Markdown ------------------------------------------------------------------------------------


def prose(text: str, first: str = "", rest: str = "") -> list[str]:
    """A paragraph in lines of a page. `first` and `rest` begin its first line and the others."""
    lines = textwrap.wrap(
        text,
        _WIDTH - len(first or rest) - 1,
        break_long_words=False,
        break_on_hyphens=False,
    )
    kept = [_LIST.sub(lambda found: _escaped(found), line) for line in lines]
    return [f"{rest if place else first}{line}" for place, line in enumerate(kept)]


def _escaped(found: Any) -> str:
    return rf"{found[1]}\{found[2]}" if found[1] else rf"\{found[3]}"


def bullets(texts: Iterable[str]) -> Iterator[str]:
    """Texts as items of a list."""
    for text in texts:
        yield from prose(text, "- ", "  ")


def code(lines: Iterable[str]) -> Iterator[str]:
    """Lines as a block of code."""
    yield from (f"    {line}".rstrip() for line in lines)


def spaced(blocks: Iterable[Sequence[str]]) -> Iterator[str]:
    """Join blocks with an empty line between each two."""
    for place, block in enumerate(blocks):
        yield from ["", *block] if place else block

"""A report as files: its pages, and each figure as .svg, .png and the .csv of what it shows."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kvbench.analysis.differs.trend import Past
from kvbench.analysis.means.findings import Findings
from kvbench.errors import Unwritable
from kvbench.report import machines
from kvbench.report.figures import every
from kvbench.report.figures.figure import Figure
from kvbench.report.figures.look import styled, svg
from kvbench.report.figures.trend import trend
from kvbench.report.page import Drawn, history_page, machines_page, page
from kvbench.store import Manifest, write_text
from kvbench.store.files import replacing, writing
from kvbench.texts import table_csv

PAGE, FIGURES = "index.html", "figures"
BESIDE = "report"  # the folder in a run directory
_DPI = 110
_AGAIN = "then call kvbench report again"
_NO_NAME = re.compile(r"[^\w.-]+")  # what no folder or link should have in it


def write(folder: Path, studies: Sequence[tuple[Findings, Manifest]], paths: Sequence[Path] = ()) -> Path:
    """The path of the first page. Of several runs, whose own folders are `paths`, each has a page beside it."""
    if len(studies) == 1:
        return _one(folder, *studies[0])
    places = [f"{number}-{_NO_NAME.sub('-', found.run)}" for number, (found, _) in enumerate(studies, 1)]
    names = machines.names(studies, paths)
    for place, study in zip(places, studies, strict=True):
        _one(folder / place, *study)
    with writing(folder, _AGAIN):
        drawn = list(_drawn(_made(folder), machines.figures(studies, names)))
        write_text(folder / PAGE, machines_page(studies, names, places, drawn))
    return folder / PAGE


def write_history(folder: Path, pasts: Sequence[Past], notes: Sequence[str]) -> Path:
    """The path of the page. Each machine has a figure of families, and one of points."""
    figures, first = [], 0
    for number, past in enumerate(pasts, 1):
        rows = range(first, first := first + len(past.trends))
        end, of = ("", "") if len(pasts) == 1 else (f"-{number}", f": {past.machine}")
        figures += [trend(past, (), f"families{end}", f"Families{of}")] if past.families else []
        figures.append(trend(past, rows, f"trend{end}", f"Points{of}"))
    with writing(folder, "then call kvbench history show again"):
        drawn = list(_drawn(_made(folder), figures))
        write_text(folder / PAGE, history_page(pasts, notes, drawn))
    return folder / PAGE


def _one(folder: Path, found: Findings, manifest: Manifest) -> Path:
    with writing(folder, _AGAIN):
        drawn = list(_drawn(_made(folder), every(found, manifest.created[:10])))
        write_text(folder / PAGE, page(found, manifest, drawn))
    return folder / PAGE


def own(folder: Path) -> Path:
    """A part of a run or of a report, out of which a link would lead."""
    if folder.is_symlink():
        raise Unwritable(f"cannot write {folder}: it is a link", "take it away, or name another folder with --out")
    return folder


def _made(folder: Path) -> Path:
    """Where its figures go."""
    figures = own(folder / FIGURES)
    figures.mkdir(parents=True, exist_ok=True)
    return figures


def _drawn(folder: Path, figures: Sequence[Figure]) -> Iterator[Drawn]:
    for figure in figures:
        data, text = table_csv(figure.table), ""
        if not figure.missing:
            write_text(folder / f"{figure.name}.csv", data)
            text = _pictures(folder, figure)
        yield Drawn(figure, text, data)


def _pictures(folder: Path, figure: Figure) -> str:
    """The .svg, whose text this is, and the .png."""
    canvas = figure.canvas()
    _arrange(canvas)
    text = svg(canvas, figure.name, figure.title)
    write_text(folder / f"{figure.name}.svg", text)
    with replacing(folder / f"{figure.name}.png") as file, styled():
        canvas.savefig(file, format="png", dpi=_DPI)
    return text


def _arrange(canvas: Any) -> None:
    """Once, for it takes as long as drawing does, and each form would do it again. Letters are as wide as on a page."""
    with styled(**{"text.hinting": "no_hinting"}):
        if engine := canvas.get_layout_engine():
            engine.execute(canvas)
            canvas.set_layout_engine("none")

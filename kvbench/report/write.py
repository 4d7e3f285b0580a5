"""Write a report: its pages, and each figure as .svg, .png and a .csv of its numbers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kvbench.analysis.differs.trend import Past
from kvbench.analysis.means.findings import Findings
from kvbench.errors import Unwritable
from kvbench.report import history, machines
from kvbench.report.figures import every
from kvbench.report.figures.look import Figure, styled, svg
from kvbench.report.figures.trend import trend
from kvbench.report.page import Drawn, inline, page, rendered
from kvbench.report.words.first import badge
from kvbench.report.words.gaps import gaps
from kvbench.store import Manifest, write_text
from kvbench.store.files import replacing, writing
from kvbench.texts import table_csv
from kvbench.units import counted

PAGE, FIGURES = "index.html", "figures"
BESIDE = "report"  # the folder in a run directory
_DPI = 110
_AGAIN = "then call kvbench report again"
_NO_NAME = re.compile(r"[^\w.-]+")  # characters that names of folders should not have


def write(folder: Path, studies: Sequence[tuple[Findings, Manifest]]) -> Path:
    """Write the report, and return the path of its first page. Several runs get a page each, and
    one page that compares them.
    """
    if len(studies) == 1:
        found, manifest = studies[0]
        with writing(folder, _AGAIN):
            drawn = list(_drawn(folder, every(found, manifest.created[:10])))
            write_text(folder / PAGE, page(found, manifest, drawn))
        return folder / PAGE
    places = [
        f"{number}-{_NO_NAME.sub('-', found.run)}" for number, (found, _) in enumerate(studies, 1)
    ]
    for place, study in zip(places, studies, strict=True):
        write(folder / place, [study])
    runs = [
        {
            "name": name,
            "place": place,
            "badge": " ".join(badge(found.answers)),
            "missing": gaps(found, manifest),
        }
        for name, place, (found, manifest) in zip(
            machines.names(studies), places, studies, strict=True
        )
    ]
    different = {found.machine.fingerprint for found, _ in studies}
    title = f"Decode attention on {counted(len(different), 'machine')}, {counted(len(runs), 'run')}"
    facts = {
        "title": title,
        "subtitle": "Each run has a page of its own: follow its name.",
        "runs": runs,
    }
    return _written(
        folder,
        "machines.html",
        [machines.figure(studies)],
        table=machines.side_by_side(studies),
        **facts,
    )


def write_history(folder: Path, pasts: Sequence[Past], notes: Sequence[str]) -> Path:
    """Write the page of a history, and return its path. Each machine gets a figure of families and
    a figure of points.
    """
    every = [past.fingerprint + trend.series.point for past in pasts for trend in past.trends]
    places, figures = {name: number for number, name in enumerate(every)}, []
    for number, past in enumerate(pasts, 1):
        rows = {
            each.series.point: places[past.fingerprint + each.series.point] for each in past.trends
        }
        end, of = ("", "") if len(pasts) == 1 else (f"-{number}", f": {past.machine}")
        figures += [trend(past, {}, f"families{end}", f"Families{of}")] if past.families else []
        figures.append(trend(past, rows, f"trend{end}", f"Points{of}"))
    tables = {name: getattr(history, name)(pasts) for name in ("steps", "runs", "accepted")}
    facts = {
        "title": "Decode attention over time",
        "subtitle": "; ".join(
            f"{past.machine}: {counted(len(past.runs), 'run')}" for past in pasts
        ),
        "pasts": [
            f"{past.machine} ({past.fingerprint}): {history.summary(history.of(past))}"
            for past in pasts
        ],
        "notes": history.few(notes),
        "points": history.points(pasts, places),
    }
    return _written(folder, "history.html", figures, **tables, **facts)


def own(folder: Path) -> Path:
    """Return a folder of a run or report, but refuse a link: it would lead outside."""
    if folder.is_symlink():
        raise Unwritable(
            f"cannot write {folder}: it is a link",
            "remove the link, or name another folder with --out",
        )
    return folder


def _written(folder: Path, template: str, figures: Iterable[Figure], **content: object) -> Path:
    with writing(folder, "then write it again"):
        drawn = [inline(each) for each in _drawn(folder, figures)]
        write_text(folder / PAGE, rendered(template, figures=drawn, **content))
    return folder / PAGE


def _drawn(folder: Path, figures: Iterable[Figure]) -> Iterator[Drawn]:
    below = own(folder / FIGURES)
    below.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        data, text = table_csv(figure.table), ""
        if not figure.missing:
            write_text(below / f"{figure.name}.csv", data)
            text = _pictures(below, figure)
        yield Drawn(figure, text, data)


def _pictures(folder: Path, figure: Figure) -> str:
    """Write the .svg and the .png, and return the text of the .svg. The figure is laid out only
    once, because that takes as long as drawing; letters are as wide as on a page.
    """
    canvas = figure.canvas()
    with styled(**{"text.hinting": "no_hinting"}):
        if engine := canvas.get_layout_engine():
            engine.execute(canvas)
            canvas.set_layout_engine("none")
    text = svg(canvas, figure.name, figure.title)
    write_text(folder / f"{figure.name}.svg", text)
    with replacing(folder / f"{figure.name}.png") as file, styled():
        canvas.savefig(file, format="png", dpi=_DPI)
    return text

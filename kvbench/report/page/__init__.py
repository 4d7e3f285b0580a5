"""One HTML file that needs nothing else: no network, no scripts to be readable, no other file."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from kvbench.analysis.differs.trend import Past
from kvbench.analysis.means.findings import Findings
from kvbench.report import history, tables
from kvbench.report.figures.look import COLOURS, FAINT, GRID, INK, PAPER, SHADES
from kvbench.report.gaps import gaps
from kvbench.report.heading import subtitle, title
from kvbench.report.tables import FILTERS
from kvbench.report.words import sentences
from kvbench.report.words.headline import badge, tiles, workload
from kvbench.store import Manifest
from kvbench.texts import shown
from kvbench.units import counted

LARGE = 50_000  # bytes of a figure's data beyond which it is in the file beside the page alone

# What the colours of a figure are called in style.css, which has them for light and for dark.
_NAMES = {INK: "ink", FAINT: "faint", GRID: "grid", PAPER: "paper"}
_NAMES |= {colour: f"colour-{number}" for number, colour in enumerate(COLOURS, 1)}
_NAMES |= {shade: f"shade-{number}" for number, shade in enumerate(SHADES, 1)}
_COLOUR = re.compile("|".join(_NAMES))
_EXTENT = re.compile(r' (?:width|height)="[\d.]+pt"|<(title|metadata)>.*?</\1>', re.DOTALL)
_LOOK, _OFTEN = re.compile(r' style="([^"]+)"'), 10  # a style that so many elements have is named
_TAG, _BETWEEN, _DIGITS = re.compile(r"<[^>]+>"), re.compile(r">\s+<"), re.compile(r"(\.\d\d)\d+")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure as text. `svg` is empty where there is nothing to draw, and `missing` says why."""

    name: str
    title: str
    about: str
    svg: str
    csv: str
    missing: str


def page(found: Findings, manifest: Manifest, drawn: Sequence[Drawn]) -> str:
    """The page of one run."""
    groups = _groups(drawn)
    return _rendered(
        "run.html",
        title=title(found.machine),
        subtitle=subtitle(found, manifest),
        workload=workload(found.headline),
        grade=found.headline.quality.grade,
        badge=badge(found.headline.quality),
        tiles=tiles(found.headline),
        hero=groups.pop("hero"),
        missing=gaps(found, manifest),
        diagnosis=sentences(found.diagnosis),
        fingerprint=found.machine.fingerprint,
        surroundings=found.machine.environment,
        warnings=found.machine.warnings,
        facts=tables.facts(found.machine),
        checks=tables.checks(found.checks),
        filters=_filters(found),
        groups=[group for name, group in groups.items() if name != "noise"],
        noise=groups.get("noise"),
        tables=tables.every(found),
        command=manifest.command,
        provenance=tables.provenance(manifest),
        skips=tables.skips(manifest.skips),
    )


def machines_page(studies: Sequence[tuple[Findings, Manifest]], names: Sequence[str], places: Sequence[str]) -> str:
    """The page of several runs, whose own pages are in the folders `places`."""
    runs = [
        {"name": name, "place": place, "subtitle": subtitle(*study), "missing": gaps(*study)}
        | {"diagnosis": sentences(study[0].diagnosis)}
        for study, name, place in zip(studies, names, places, strict=True)
    ]
    different = {found.machine.fingerprint for found, _ in studies}
    return _rendered(
        "machines.html",
        title=f"Decode attention on {counted(len(different), 'machine')}, {counted(len(runs), 'run')}",
        subtitle="Each beside its own ceilings.",
        runs=runs,
        table=tables.machines([found for found, _ in studies], names),
    )


def history_page(pasts: Sequence[Past], notes: Sequence[str], drawn: Sequence[Drawn]) -> str:
    """`drawn`: a figure for each machine."""
    points = history.points(pasts)
    words = {
        name: sorted({facts[name] for facts in points.facts}) for name in (points.facts[0] if points.facts else ())
    }
    return _rendered(
        "history.html",
        title="Decode attention over time",
        subtitle="; ".join(f"{past.machine}: {counted(len(past.runs), 'run')}" for past in pasts),
        pasts=[{"machine": p.machine, "fingerprint": p.fingerprint, "summary": history.summary(p)} for p in pasts],
        notes=history.few(notes),
        filters={name: each for name, each in words.items() if len(each) > 1},
        figures=[_inline(each) for each in drawn],
        steps=history.steps(pasts),
        points=points,
        runs=history.runs(pasts),
        accepted=history.accepted(pasts),
    )


def gallery_page(table: tables.Sheet, count: int, notes: Sequence[str]) -> str:
    """Scores of many machines."""
    facts = {"title": f"kvbench scores of {counted(count, 'machine')}", "subtitle": "Sort by any column."}
    return _rendered("gallery.html", table=table, notes=notes, **facts)


def _rendered(template: str, **content: Any) -> str:
    facts = {"undefined": StrictUndefined, "finalize": lambda fact: shown(fact) if type(fact) is str else fact}
    environment = Environment(
        loader=FunctionLoader(_text), autoescape=True, trim_blocks=True, lstrip_blocks=True, **facts
    )
    style, script = Markup(_text("style.css")), Markup(_text("script.js"))
    return environment.get_template(template).render(style=style, script=script, **content)


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _filters(found: Findings) -> dict[str, list[str]]:
    """What points can be chosen by: where they differ."""
    words = {name: found.points[name].dropna() for name in FILTERS}
    return {
        name: [str(word) for word in sorted(set(each) - {""})] for name, each in words.items() if each.nunique() > 1
    }


# ---- figures ---------------------------------------------------------------------------------------------------------


def _groups(drawn: Sequence[Drawn]) -> dict[str, dict[str, Any]]:
    """Figures of one kind stand in one place: their names begin with the same word."""
    found: dict[str, dict[str, Any]] = {}
    for each in drawn:
        kind = each.name.partition("-")[0]
        title = each.title.partition(":")[0]
        group = found.setdefault(kind, {"name": kind, "title": title, "missing": each.missing, "figures": []})
        group["figures"].append(_inline(each))
    return found


def _inline(each: Drawn) -> dict[str, Any]:
    data = each.csv.encode()
    link = f"data:text/csv;base64,{b64encode(data).decode()}" if len(data) <= LARGE else f"figures/{each.name}.csv"
    said = Markup('<svg role="img" aria-label="{}" ').format(each.title)
    svg = Markup(themed(each.svg, each.name).replace("<svg ", said, 1))
    facts = {"name": each.name, "title": each.title, "about": each.about, "missing": each.missing}
    return facts | {"svg": svg, "csv": link}


def themed(svg: str, name: str) -> str:
    """Colours by name, so that the page can be light or dark; as wide as the page allows; and no longer than need be."""
    svg = _BETWEEN.sub("><", _EXTENT.sub("", svg, count=4))
    svg = _TAG.sub(lambda tag: _DIGITS.sub(r"\1", tag[0]), svg)  # nobody sees a hundredth of a point
    svg = _COLOUR.sub(lambda match: f"var(--{_NAMES[match[0]]})", svg)
    often = [style for style, times in Counter(_LOOK.findall(svg)).items() if times >= _OFTEN]
    classes = {style: f"{re.sub(r'[^a-z0-9-]', '-', name)}-{number}" for number, style in enumerate(often)}
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    svg = _LOOK.sub(lambda match: f' class="{classes[match[1]]}"' if match[1] in classes else match[0], svg)
    return svg.replace("</style>", f"{rules}</style>", 1)

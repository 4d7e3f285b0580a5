"""A page: one HTML file that can be read without network, scripts or other files."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from kvbench.analysis.means.findings import Findings
from kvbench.report import tables
from kvbench.report.drafts import drafting
from kvbench.report.figures.look import COLOURS, FAINT, GRID, INK, PAPER, SHADES, Figure
from kvbench.report.formats import mixed
from kvbench.report.latency import chases
from kvbench.report.words.findings import Sentence, sentences
from kvbench.report.words.first import (
    badge,
    hardware,
    machine,
    subtitle,
    tiles,
    title,
    workload,
)
from kvbench.report.words.gaps import gaps
from kvbench.store import Manifest
from kvbench.texts import shown

LARGE = 50_000  # bytes: a figure's larger data is not put into the page, only into a file beside it

_SHOWN = {  # by topic of a sentence: its heading, and the figure or table that shows it
    "mixed": ("Formats", "mixed"),
    "scores": ("Scores", "costs"),
    "speculate": ("Drafting", "speculate"),
    "latency": ("Latency", "latency"),
    "serve": ("Padding", "serve"),
    "peers": ("Peers", "peers"),
    "threads": ("Threads", "saturation"),
    "prefetch": ("Prefetching", "schedules"),
    "stores": ("Storing", "stores"),
    "between": ("L3's gain", "between"),
    "step": ("Step", "steps"),
    "fits": ("Fits in L3", "fits"),
    "servers": ("Servers", "servers"),
    "suspect": ("Suspects", "points"),
    "open": ("Not decided", "contrasts"),
    "doubt": ("Trust", "points"),
    "checks": ("Trust", "checks"),
}

# Names of a figure's colours in style.css, which has each of them for light and for dark pages.
_NAMES = {
    INK: "ink",
    FAINT: "faint",
    GRID: "grid",
    PAPER: "paper",
    **{colour: f"colour-{number}" for number, colour in enumerate(COLOURS, 1)},
    **{shade: f"shade-{number}" for number, shade in enumerate(SHADES, 1)},
}
_COLOUR = re.compile("|".join(_NAMES))
_EXTENT = re.compile(r' (?:width|height)="[\d.]+pt"|<(title|metadata)>.*?</\1>', re.DOTALL)
_LOOK, _OFTEN = re.compile(r' style="([^"]+)"'), 10  # a style of this many elements gets a class
_TAG, _BETWEEN, _DIGITS = re.compile(r"<[^>]+>"), re.compile(r">\s+<"), re.compile(r"(\.\d\d)\d+")


class Drawn(NamedTuple):
    """A figure with its picture and its table as text. `svg` is empty if the figure has no rows."""

    figure: Figure
    svg: str
    csv: str


def page(found: Findings, manifest: Manifest, drawn: Sequence[Drawn]) -> str:
    """The page of one run."""
    hero, *others = folded(map(inline, drawn))
    figures, missing = (
        [each for each in others if bool(each["missing"]) is lacks] for lacks in (False, True)
    )
    points, *more = tables.every(found)
    own, dtypes = found.answers, tables.dtypes(found.answers)
    formats, drafted, steps = mixed(own), drafting(own), tables.steps(own)
    chased = chases(own)
    known = (formats, drafted, chased, dtypes, steps, points, *(each for each in more if each.rows))
    linked = {"checks", *(each["name"] for each in figures), *(table.name for table in known)}
    return rendered(
        "run.html",
        title=title(found),
        machine=machine(own),
        hardware=hardware(found.machine, found.checks),
        subtitle=subtitle(found, manifest),
        workload=f"Workload of this page: {workload(own)}",
        grade=own.trust.grade,
        badge=badge(own),
        tiles=tiles(own),
        hero=hero,
        missing=gaps(found, manifest),
        findings=[_finding(each, linked) for each in sentences(found)],
        open=missing,
        formats=formats,
        drafting=drafted,
        chases=chased,
        dtypes=dtypes,
        steps=steps,
        figures=figures,
        filters=_filters(found),
        points=points,
        tables=more,
        of=found.machine,
        facts=tables.facts(found.machine),
        checks=tables.checks(found.checks),
        command=manifest.command,
        provenance=tables.provenance(manifest),
        skips=tables.skips(manifest.skips),
    )


def _finding(sentence: Sentence, linked: set[str]) -> dict[str, str]:
    """A sentence with its heading, and a link to the figure or table that shows it, if the page has
    one.
    """
    topic, link = _SHOWN.get(
        sentence.topic, (sentence.topic.replace("_", " ").capitalize(), "contrasts")
    )
    return {"topic": topic, "link": link if link in linked else "", "text": sentence.text}


def _filters(found: Findings) -> dict[str, list[str]]:
    """Filters of the table of points: facts in which points differ, with their values."""
    words = {name: found.points[name].dropna() for name in tables.FILTERS}
    return {
        name: [str(word) for word in dict.fromkeys(each) if word != ""]
        for name, each in words.items()
        if each.nunique() > 1
    }


def rendered(template: str, **content: Any) -> str:
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda fact: shown(fact) if type(fact) is str else fact,
    )
    style, script = Markup(_text("style.css")), Markup(_text("script.js"))
    return environment.get_template(template).render(style=style, script=script, **content)


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def inline(drawn: Drawn) -> dict[str, Any]:
    each, data = drawn.figure, drawn.csv.encode()
    link = (
        f"data:text/csv;base64,{b64encode(data).decode()}"
        if len(data) <= LARGE
        else f"figures/{each.name}.csv"
    )
    said = Markup('<svg role="img" aria-label="{}" ').format(each.title)
    svg = Markup(themed(drawn.svg, each.name).replace("<svg ", said, 1))
    facts = {name: getattr(each, name) for name in ("name", "title", "about", "missing", "below")}
    return facts | {"svg": svg, "csv": link, "folded": []}


def folded(every: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figures that stand by themselves, each with the figures folded below it."""
    found: dict[str, dict[str, Any]] = {}
    for each in every:
        if each["below"]:
            found[each["below"]]["folded"].append(each)
        else:
            found[each["name"]] = each
    return list(found.values())


def themed(svg: str, name: str) -> str:
    """Adapt an <svg> to a page: colours by name, so that the page can be light or dark; as wide as
    the page allows; and short.
    """
    svg = _BETWEEN.sub("><", _EXTENT.sub("", svg, count=4))
    # more digits than hundredths of a point cannot be seen
    svg = _TAG.sub(lambda tag: _DIGITS.sub(r"\1", tag[0]), svg)
    svg = _COLOUR.sub(lambda match: f"var(--{_NAMES[match[0]]})", svg)
    often = [style for style, times in Counter(_LOOK.findall(svg)).items() if times >= _OFTEN]
    classes = {
        style: f"{re.sub(r'[^a-z0-9-]', '-', name)}-{number}" for number, style in enumerate(often)
    }
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    svg = _LOOK.sub(
        lambda match: f' class="{classes[match[1]]}"' if match[1] in classes else match[0], svg
    )
    return svg.replace("</style>", f"{rules}</style>", 1)

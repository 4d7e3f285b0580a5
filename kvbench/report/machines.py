"""Runs side by side: a table with a column for each run, and a figure with a bar for each."""

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from kvbench.analysis.answers import Answers
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.machines import Rate, rates
from kvbench.analysis.measured.columns import machine_name
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import Figure
from kvbench.report.ruled import Column, ruled
from kvbench.report.sheet import Sheet, plain, sheet
from kvbench.report.words.first import Tile, badge, hardware, machine, tiles, workload
from kvbench.report.words.phrases import listed, number
from kvbench.store import Manifest
from kvbench.texts import wrapped
from kvbench.units import counted

_OPEN = "not measured"
_Study = tuple[Findings, Manifest]
_Rows = Iterator[tuple[str, list[str]]]  # what a row is about, and a text for each run
_READS = "Reads: plain reads of each level by the threads of the workload."
_WIDE = 5  # columns of runs on a terminal


def cells(each: Rate, unit: str = "") -> list[str]:
    """Each value, with its ratio to the first run."""
    return [
        _OPEN
        if value is None
        else f"{number(value)}{unit}" + (f" ({ratio:.2f}x)" if ratio is not None else "")
        for value, ratio in zip(each.values, each.ratios, strict=True)
    ]


def names(studies: Sequence[_Study]) -> list[str]:
    """The machine's name for each run, with a number in front if several have one name."""
    brands = [machine_name(found.machine) for found, _ in studies]
    several = len(set(brands)) < len(brands)
    return [f"{place}: {brand}" if several else brand for place, brand in enumerate(brands, 1)]


def side_by_side(studies: Sequence[_Study]) -> Sheet:
    """The table of runs, with ratios to the first."""
    labels = names(studies)
    about = (
        f"In brackets: the ratio to {labels[0]}. Tokens/s: allowed by the KV cache alone, with the"
        f" fastest kernel of each dtype. {_READS}"
    )
    every = rates([found for found, _ in studies])
    rows = [*_answers(studies), *((each.what, _told(each)) for each in every)]
    told = [dict(zip(("", *labels), (what, *texts), strict=True)) for what, texts in rows]
    return sheet("machines", "Side by side", about, plain("", *labels), told)


def _told(each: Rate) -> list[str]:
    own = cells(each, "x" if each.unit == "times" else f" {each.unit}")
    pairs = zip(own, each.beside or [""] * len(own), strict=True)
    return [f"{cell}; {more}" if more else cell for cell, more in pairs]


def text(studies: Sequence[_Study], labels: Sequence[str] = ()) -> list[str]:
    """The comparison as lines of a terminal: the runs, their rates with ratios to the first run,
    and the answers of each.

    `labels`: names of the runs in the table, by default 1, 2, ...
    """
    labels = labels or [str(place) for place, _ in enumerate(studies, 1)]
    heads = [found.answers for found, _ in studies]
    wide = max(map(len, labels)) + 2
    runs = [f"{label:<{wide}}{_who(*study)}" for label, study in zip(labels, studies, strict=True)]
    every = list(rates([found for found, _ in studies]))
    lines = [*wrapped(runs, hanging=wide), *_workloads(heads, labels)]
    for start in range(0, len(labels), _WIDE):
        lines += ["", *_ruled(every, labels, range(start, min(start + _WIDE, len(labels))))]
    for title, answers in _answered(heads):
        lines += ["", f"  {title}"]
        named = (f"{label:<{wide}}{answer}" for label, answer in zip(labels, answers, strict=True))
        lines += wrapped(named, indent=" " * 4, hanging=wide)
    return lines


def _who(found: Findings, manifest: Manifest) -> str:
    own = found.answers
    made = f"{manifest.suite}, {manifest.created[:10]}, {counted(found.launches, 'launch')}"
    return f"{machine(own)}: {badge(own)[0].lower()}; {found.run} ({made})"


def _workloads(heads: Sequence[Answers], labels: Sequence[str]) -> Iterator[str]:
    """The workload of the tokens/s. If workloads differ, tokens/s have no ratio."""
    asked = [workload(each) for each in heads]
    if len(set(asked)) == 1:
        yield from (
            "",
            *wrapped(
                [f"Decode of {asked[0]}. In brackets: the ratio to {labels[0]}. {_READS}"],
                hanging=0,
            ),
        )
        return
    each = "; ".join(f"{label}: {what}" for label, what in zip(labels, asked, strict=True))
    said = (
        f"The workloads differ, so tokens/s have no ratio ({each}). In brackets: the ratio to"
        f" {labels[0]}. {_READS}"
    )
    yield from ("", *wrapped([said], hanging=0))


def _ruled(every: Iterable[Rate], labels: Sequence[str], places: range) -> list[str]:
    rows = []
    for each in every:
        told, decode = cells(each), "decode " * (each.unit == "tokens/s")
        rows.append([f"{decode}{each.what}", each.unit, *(told[place] for place in places)])
    heads = ["", "unit", *(labels[place] for place in places)]
    # two runs may have one label
    columns = [Column(str(at), head) for at, head in enumerate(heads)]
    table = pd.DataFrame(rows, columns=[column.name for column in columns])
    return [f"  {line}" for line in ruled(table, columns)]


def _answers(studies: Sequence[_Study]) -> _Rows:
    heads = [found.answers for found, _ in studies]
    yield "machine", list(map(machine, heads))
    yield "hardware", [hardware(found.machine, found.checks) for found, _ in studies]
    yield (
        "run",
        [
            f"{found.run}: {of.suite}, {of.created[:10]}, {counted(found.launches, 'launch')}"
            for found, of in studies
        ],
    )
    told = [", ".join(f"{engine.name} {engine.told}" for engine in of.engines) for _, of in studies]
    if len(set(told)) > 1:
        yield "engines", [each or "not known" for each in told]
    yield "quality", [badge(each)[0].lower() for each in heads]
    yield "workload", [workload(each) for each in heads]
    yield from _answered(heads)


def _answered(heads: Sequence[Answers]) -> _Rows:
    told = [tiles(each) for each in heads]
    for place, title in ((0, "fastest decode"), (3, "does L3 help?"), (4, "what limits?")):
        yield title, [_answer(own[place]) for own in told]


def _answer(tile: Tile) -> str:
    """A tile's answer in one text. The value is left out if the detail contains it."""
    return tile.detail if tile.value in tile.detail else f"{tile.value}: {tile.detail}"


def figure(studies: Sequence[_Study]) -> Figure:
    bars = [
        (label, row.dtype, row.layout, row.variant, speed.value, speed.low, speed.high)
        for label, (found, _) in zip(names(studies), studies, strict=True)
        for row in found.answers.decodes.rows
        if (speed := row.speed.figure)
    ]
    table = pd.DataFrame(
        bars, columns=["machine", "dtype", "layout", "variant", "tokens_per_second", "low", "high"]
    )
    panel = Panel(
        "dtype",
        "tokens_per_second",
        "",
        "tokens/s",
        by="machine",
        low="low",
        high="high",
        bars=True,
    )
    asked = listed(dict.fromkeys(workload(found.answers) for found, _ in studies))
    about = f"{asked}, fastest kernel of each dtype. Lines: intervals over launches."
    missing = "No run has a decode of a known model: run kvbench sweep quick."
    return chart(
        "tokens-by-machine", "Which machine decodes faster?", about, table, [panel], missing=missing
    )

"""Runs side by side: a table with a column for each, and a figure with a bar for each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import Headline
from kvbench.analysis.measured.columns import machine_name
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import Figure
from kvbench.report.ruled import Column, ruled
from kvbench.report.sheet import Sheet, known, plain, sheet
from kvbench.report.words.headline import Tile, badge, machine, tiles, workload
from kvbench.report.words.phrases import listed, number
from kvbench.store import Manifest
from kvbench.texts import wrapped
from kvbench.units import counted

_LEVELS = {"L1": "L1", "L2": "L2", "L3": "L3", "DRAM": "memory"}
_OPEN = "not measured"
_Study = tuple[Findings, Manifest]
_Rows = Iterator[tuple[str, list[str]]]  # what a row is about, and a text for each run
_READS = "Reads: the fastest of each level, by all threads."
_WIDE = 5  # runs that stand beside each other on a terminal


@dataclass(frozen=True, slots=True)
class RateRow:
    """One rate of every run, None where a run lacks it. `ratios`: whether those to the first run
    mean something.
    """

    what: str
    unit: str
    values: tuple[float | None, ...]
    ratios: bool = True
    beside: tuple[str, ...] = ()  # what a page says after each

    def cells(self, unit: str = "") -> list[str]:
        """Each value, with its ratio to the first run."""
        first = self.values[0] if self.ratios else None
        texts = []
        for place, value in enumerate(self.values):
            if not known(value):
                texts.append(_OPEN)
                continue
            ratio = f" ({value / first:.2f}x)" if place and known(first) and first else ""
            texts.append(f"{number(value)}{unit}{ratio}")
        return texts


def names(studies: Sequence[_Study]) -> list[str]:
    """The machine's, with a number where several are of one name."""
    brands = [machine_name(found.machine) for found, _ in studies]
    several = len(set(brands)) < len(brands)
    return [f"{place}: {brand}" if several else brand for place, brand in enumerate(brands, 1)]


def side_by_side(studies: Sequence[_Study]) -> Sheet:
    """Ratios are to the first run."""
    labels = names(studies)
    about = (
        f"In brackets: times the rate of {labels[0]}. Tokens/s: what the KV cache alone would"
        f" allow, in the fastest layout of each dtype. {_READS}"
    )
    rows = [*_answers(studies), *((each.what, _told(each)) for each in rates(studies))]
    told = [dict(zip(("", *labels), (what, *texts), strict=True)) for what, texts in rows]
    return sheet("machines", "Side by side", about, plain("", *labels), told)


def _told(each: RateRow) -> list[str]:
    cells = each.cells("x" if each.unit == "times" else f" {each.unit}")
    pairs = zip(cells, each.beside or [""] * len(cells), strict=True)
    return [f"{cell}; {more}" if more else cell for cell, more in pairs]


def text(studies: Sequence[_Study], labels: Sequence[str] = ()) -> list[str]:
    """The same for a terminal: who the runs are, their rates with ratios to the first, and what
    each answers.

    `labels`: what the runs are called in the table, by default 1, 2, ...
    """
    labels = labels or [str(place) for place, _ in enumerate(studies, 1)]
    heads = [found.headline for found, _ in studies]
    wide = max(map(len, labels)) + 2
    runs = [f"{label:<{wide}}{_who(*study)}" for label, study in zip(labels, studies, strict=True)]
    every = list(rates(studies))
    lines = [*wrapped(runs, hanging=wide), *_workloads(heads, labels)]
    for start in range(0, len(labels), _WIDE):
        lines += ["", *_ruled(every, labels, range(start, min(start + _WIDE, len(labels))))]
    for title, answers in _answered(heads):
        lines += ["", f"  {title}"]
        named = (f"{label:<{wide}}{answer}" for label, answer in zip(labels, answers, strict=True))
        lines += wrapped(named, indent=" " * 4, hanging=wide)
    return lines


def _who(found: Findings, manifest: Manifest) -> str:
    head = found.headline
    made = f"{manifest.suite}, {manifest.created[:10]}, {counted(found.launches, 'launch')}"
    return f"{machine(head)}: {badge(head.quality)[0].lower()}; {found.run} ({made})"


def _workloads(heads: Sequence[Headline], labels: Sequence[str]) -> Iterator[str]:
    """What tokens/s are of. Where that differs, they have no ratio."""
    asked = [workload(each) for each in heads]
    if len(set(asked)) == 1:
        yield from (
            "",
            *wrapped(
                [f"Decode of {asked[0]}. In brackets: times {labels[0]}. {_READS}"], hanging=0
            ),
        )
        return
    each = "; ".join(f"{label}: {what}" for label, what in zip(labels, asked, strict=True))
    said = (
        f"Decodes of different workloads, so tokens/s have no ratio ({each}). In brackets: times"
        f" {labels[0]}. {_READS}"
    )
    yield from ("", *wrapped([said], hanging=0))


def _ruled(every: Iterable[RateRow], labels: Sequence[str], places: range) -> list[str]:
    rows = []
    for each in every:
        cells, decode = each.cells(), "decode " * (each.unit == "tokens/s")
        rows.append([f"{decode}{each.what}", each.unit, *(cells[place] for place in places)])
    heads = ["", "unit", *(labels[place] for place in places)]
    # two runs may have one label
    columns = [Column(str(at), head) for at, head in enumerate(heads)]
    table = pd.DataFrame(rows, columns=[column.name for column in columns])
    return [f"  {line}" for line in ruled(table, columns)]


def _answers(studies: Sequence[_Study]) -> _Rows:
    heads = [found.headline for found, _ in studies]
    yield "machine", [f"{each.machine}{' (virtual)' if each.virtual else ''}" for each in heads]
    yield "threads", [f"{each.threads}, {each.isa.upper()}" for each in heads]
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
    yield "quality", [badge(each.quality)[0].lower() for each in heads]
    yield "workload", [workload(each) for each in heads]
    yield from _answered(heads)


def _answered(heads: Sequence[Headline]) -> _Rows:
    told = [tiles(each) for each in heads]
    for place, title in ((0, "fastest decode"), (3, "does L3 help?"), (4, "what limits?")):
        yield title, [_answer(own[place]) for own in told]


def _answer(tile: Tile) -> str:
    """Its detail may begin with its value."""
    return tile.detail if tile.value in tile.detail else f"{tile.value}: {tile.detail}"


def rates(studies: Sequence[_Study]) -> Iterator[RateRow]:
    """Tokens/s by dtype, reads by level, the multiply-add peak."""
    yield from _decodes([found.headline for found, _ in studies])
    yield from _reads(studies)


def _decodes(heads: Sequence[Headline]) -> Iterator[RateRow]:
    """Ratios where the workload is one."""
    alike = len({(each.model, each.context) for each in heads}) == 1
    bars = [{bar.dtype: bar for bar in each.bars} for each in heads]
    for dtype in dict.fromkeys(dtype for own in bars for dtype in own):
        own = [each.get(dtype) for each in bars]
        values = tuple(bar.tokens_per_second.value if bar else None for bar in own)
        beside = tuple(f"{number(bar.gbps)} GB/s" if bar else "" for bar in own)
        yield RateRow(dtype, "tokens/s", values, alike, beside)


def _reads(studies: Sequence[_Study]) -> Iterator[RateRow]:
    table = pd.DataFrame(
        [_best(found) for found, _ in studies], columns=[*_LEVELS, "flops"], dtype=float
    )
    levels = [level for level in _LEVELS if table[level].notna().any()]
    for level in levels:
        yield RateRow(f"{_LEVELS[level]} read", "GB/s", tuple(table[level]))
    beside = (found.headline.l3_reads for found, _ in studies)
    yield RateRow(
        "L3 over memory, side by side",
        "times",
        tuple(each.value if each else None for each in beside),
        ratios=False,
    )
    yield RateRow("multiply-add peak", "GFLOP/s", tuple(table["flops"]))


def _best(found: Findings) -> dict[str, float]:
    """Reads by level and the multiply-add peak, of the largest CPU set."""
    most = max((c.probe.cpus for c in found.ceilings), key=len, default=())
    own = [c for c in found.ceilings if c.probe.cpus == most and c.probe.op in ("read", "flops")]
    return {
        c.level if c.probe.op == "read" else "flops": c.median
        for c in sorted(own, key=lambda c: c.median)
    }


def figure(studies: Sequence[_Study]) -> Figure:
    bars = [
        (label, bar.dtype, bar.layout, rate.value, rate.low, rate.high, bar.gbps)
        for label, (found, _) in zip(names(studies), studies, strict=True)
        for bar in found.headline.bars
        for rate in [bar.tokens_per_second]
    ]
    table = pd.DataFrame(
        bars, columns=["machine", "dtype", "layout", "tokens_per_second", "low", "high", "gbps"]
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
    asked = listed(dict.fromkeys(workload(found.headline) for found, _ in studies))
    about = f"{asked}, fastest layout of each dtype. Lines: intervals over launches."
    missing = "No run has such a rate: run kvbench sweep quick."
    return chart(
        "tokens-by-machine", "Which machine decodes faster?", about, table, [panel], missing=missing
    )

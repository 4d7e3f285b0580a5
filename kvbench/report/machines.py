"""Runs side by side: a table with a column for each, and a figure with a bar for each."""

from collections.abc import Iterator, Sequence

import pandas as pd

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import Headline
from kvbench.analysis.measured.columns import machine_name
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.look import Figure
from kvbench.report.sheet import Sheet, known, plain, sheet
from kvbench.report.words.headline import Tile, badge, tiles, workload
from kvbench.report.words.phrases import listed, number
from kvbench.store import Manifest
from kvbench.units import counted

_LEVELS = {"L1": "L1", "L2": "L2", "L3": "L3", "DRAM": "memory"}
_OPEN = "not measured"
_Study = tuple[Findings, Manifest]
_Rows = Iterator[tuple[str, list[str]]]  # what a row is about, and a text for each run


def names(studies: Sequence[_Study]) -> list[str]:
    """The machine's, with a number where several are of one name."""
    brands = [machine_name(found.machine) for found, _ in studies]
    several = len(set(brands)) < len(brands)
    return [f"{place}: {brand}" if several else brand for place, brand in enumerate(brands, 1)]


def side_by_side(studies: Sequence[_Study]) -> Sheet:
    """Ratios are to the first run."""
    labels = names(studies)
    about = (
        f"In brackets: times the rate of {labels[0]}. Tokens/s: what the KV cache alone would allow, in the fastest layout "
        "of each dtype. Reads: the fastest of each level, by all threads."
    )
    rows = [*_answers(studies), *_decodes([found.headline for found, _ in studies]), *_reads(studies)]
    told = [dict(zip(("", *labels), (what, *texts), strict=True)) for what, texts in rows]
    return sheet("machines", "Side by side", about, plain("", *labels), told)


def _answers(studies: Sequence[_Study]) -> _Rows:
    heads = [found.headline for found, _ in studies]
    yield "machine", [f"{each.machine}{' (virtual)' if each.virtual else ''}" for each in heads]
    yield "threads", [f"{each.threads}, {each.isa.upper()}" for each in heads]
    yield (
        "run",
        [f"{found.run}: {of.suite}, {of.created[:10]}, {counted(found.launches, 'launch')}" for found, of in studies],
    )
    told = [", ".join(f"{engine.name} {engine.told}" for engine in of.engines) for _, of in studies]
    if len(set(told)) > 1:
        yield "engines", [each or "not known" for each in told]
    yield "quality", [badge(each.quality)[0].lower() for each in heads]
    yield "workload", [workload(each) for each in heads]
    told = [tiles(each) for each in heads]
    for place, title in ((0, "fastest decode"), (3, "does L3 help?"), (4, "what limits?")):
        yield title, [_answer(own[place]) for own in told]


def _answer(tile: Tile) -> str:
    """Its detail may begin with its value."""
    return tile.detail if tile.value in tile.detail else f"{tile.value}: {tile.detail}"


def _decodes(heads: Sequence[Headline]) -> _Rows:
    """Ratios where the workload is one."""
    alike = len({(each.model, each.context) for each in heads}) == 1
    bars = [{bar.dtype: bar for bar in each.bars} for each in heads]
    for dtype in dict.fromkeys(dtype for own in bars for dtype in own):
        own = [each.get(dtype) for each in bars]
        rates = _rates([bar and bar.tokens_per_second.value for bar in own], "tokens/s", alike)
        yield dtype, [f"{rate}; {number(bar.gbps)} GB/s" if bar else rate for bar, rate in zip(own, rates, strict=True)]


def _reads(studies: Sequence[_Study]) -> _Rows:
    table = pd.DataFrame([_best(found) for found, _ in studies], columns=[*_LEVELS, "flops"], dtype=float)
    for level, name in _LEVELS.items():
        if table[level].notna().any():
            yield f"{name} read", _rates(table[level].tolist(), "GB/s")
    times = (table["L3"] / table["DRAM"]).tolist()
    yield "L3 over memory", [f"{value:.1f}x" if known(value) else _OPEN for value in times]
    yield "multiply-add peak", _rates(table["flops"].tolist(), "GFLOP/s")


def _best(found: Findings) -> dict[str, float]:
    """Reads by level and the multiply-add peak, of the largest CPU set."""
    most = max((c.probe.cpus for c in found.ceilings), key=len, default=())
    own = [c for c in found.ceilings if c.probe.cpus == most and c.probe.op in ("read", "flops")]
    return {c.level if c.probe.op == "read" else "flops": c.median for c in sorted(own, key=lambda c: c.median)}


def _rates(values: Sequence[float | None], unit: str, ratios: bool = True) -> list[str]:
    """Each with its ratio to the first."""
    first = values[0] if ratios and known(values[0]) else None
    texts = []
    for place, value in enumerate(values):
        ratio = f" ({value / first:.2f}x)" if place and first and known(value) else ""
        texts.append(f"{number(value)} {unit}{ratio}" if known(value) else _OPEN)
    return texts


def figure(studies: Sequence[_Study]) -> Figure:
    bars = [
        (label, bar.dtype, bar.layout, rate.value, rate.low, rate.high, bar.gbps)
        for label, (found, _) in zip(names(studies), studies, strict=True)
        for bar in found.headline.bars
        for rate in [bar.tokens_per_second]
    ]
    table = pd.DataFrame(bars, columns=["machine", "dtype", "layout", "tokens_per_second", "low", "high", "gbps"])
    panel = Panel("dtype", "tokens_per_second", "", "tokens/s", by="machine", low="low", high="high", bars=True)
    asked = listed(dict.fromkeys(workload(found.headline) for found, _ in studies))
    about = f"{asked}, fastest layout of each dtype. Lines: intervals over launches."
    missing = "No run has such a rate: run kvbench sweep quick."
    return chart("tokens-by-machine", "Which machine decodes faster?", about, table, [panel], missing=missing)

"""Runs side by side: a table with a column for each, and figures with a bar for each."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from kvbench.analysis.means import findings
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import Headline
from kvbench.analysis.measured.columns import machine_name
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.sheet import Sheet, known, plain, sheet
from kvbench.report.words.headline import Tile, badge, tiles, workload
from kvbench.report.words.phrases import listed, number
from kvbench.store import Manifest
from kvbench.units import counted

_LEVELS = {"L1": "l1_gbps", "L2": "l2_gbps", "L3": "l3_gbps", "memory": "dram_gbps"}
_OPEN = "not measured"
_Study = tuple[Findings, Manifest]


def names(studies: Sequence[_Study], paths: Sequence[Path]) -> list[str]:
    """The machine's, where all have names of their own; else the parts of the folders that differ, or a number where no
    folder may be named."""
    brands = [machine_name(found.machine) for found, _ in studies]
    if len(set(brands)) == len(brands):
        return brands
    if not paths:
        return [f"{place}: {brand}" for place, brand in enumerate(brands, 1)]
    parts = [list(path.absolute().parts) for path in paths]
    for end in (0, -1):
        while min(map(len, parts)) > 1 and len({own[end] for own in parts}) == 1:
            for own in parts:
                own.pop(end)
    folders = ["/".join(own[-2:]) for own in parts]
    unique = len(set(folders)) == len(folders)
    return folders if unique else [f"{place}: {name}" for place, name in enumerate(folders, 1)]


def side_by_side(studies: Sequence[_Study], labels: Sequence[str]) -> Sheet:
    """Ratios are to the first run."""
    found = [study for study, _ in studies]
    rows = [*_identity(studies), *_answers(found), *_decodes([each.headline for each in found]), *_reads(found)]
    about = (
        f"In brackets: times the rate of {labels[0]}. Tokens/s: what the KV cache alone would allow, in the fastest layout "
        "of each dtype. Reads: the fastest of each level, by all threads."
    )
    return sheet(
        "machines",
        "Side by side",
        about,
        plain("", *labels),
        [dict(zip(("", *labels), (what, *texts), strict=True)) for what, texts in rows],
    )


def _identity(studies: Sequence[_Study]) -> Iterator[tuple[str, list[str]]]:
    heads = [found.headline for found, _ in studies]
    yield "machine", [f"{each.machine}{' (virtual)' if each.virtual else ''}" for each in heads]
    yield "threads", [f"{each.threads}, {each.isa.upper()}" for each in heads]
    yield "run", [f"{manifest.suite}, {manifest.created[:10]}, {counted(found.launches, 'launch')}" for found, manifest in studies]  # fmt: skip
    yield "quality", [badge(each.quality)[0].lower() for each in heads]


def _answers(found: Sequence[Findings]) -> Iterator[tuple[str, list[str]]]:
    yield "workload", [workload(each.headline) for each in found]
    told = [tiles(each.headline) for each in found]
    for place, title in ((0, "fastest decode"), (3, "does L3 help?"), (4, "what limits?")):
        yield title, [_answer(own[place]) for own in told]


def _answer(tile: Tile) -> str:
    """Its detail may begin with its value."""
    return tile.detail if tile.value in tile.detail else f"{tile.value}: {tile.detail}"


def _decodes(heads: Sequence[Headline]) -> Iterator[tuple[str, list[str]]]:
    """Ratios where the workload is one."""
    alike = len({(each.model, each.context) for each in heads}) == 1
    bars = [{bar.dtype: bar for bar in each.bars} for each in heads]
    for dtype in dict.fromkeys(dtype for own in bars for dtype in own):
        own = [each.get(dtype) for each in bars]
        rates = _rates([bar and bar.tokens_per_second.value for bar in own], "tokens/s", alike)
        yield dtype, [f"{rate}; {number(bar.gbps)} GB/s" if bar else rate for bar, rate in zip(own, rates, strict=True)]


def _reads(found: Sequence[Findings]) -> Iterator[tuple[str, list[str]]]:
    table = findings.machines(found)
    for level, column in _LEVELS.items():
        if table[column].notna().any():
            yield f"{level} read", _rates(table[column].tolist(), "GB/s")
    times = (table["l3_gbps"] / table["dram_gbps"]).tolist()
    yield "L3 over memory", [f"{value:.1f}x" if known(value) else _OPEN for value in times]
    yield "multiply-add peak", _rates(table["fma_gflops"].tolist(), "GFLOP/s")


def _rates(values: Sequence[float | None], unit: str, ratios: bool = True) -> list[str]:
    """Each with its ratio to the first."""
    first = values[0] if ratios and known(values[0]) else None
    texts = []
    for place, value in enumerate(values):
        ratio = f" ({value / first:.2f}x)" if place and first and known(value) else ""
        texts.append(f"{number(value)} {unit}{ratio}" if known(value) else _OPEN)
    return texts


# ---- figures ---------------------------------------------------------------------------------------------------------


def figures(studies: Sequence[_Study], labels: Sequence[str]) -> list[Figure]:
    heads, table = [found.headline for found, _ in studies], findings.machines([found for found, _ in studies])
    bars = [
        (label, bar.dtype, bar.layout, rate.value, rate.low, rate.high, bar.gbps)
        for label, head in zip(labels, heads, strict=True)
        for bar in head.bars
        for rate in [bar.tokens_per_second]
    ]
    reads = [
        (label, level, rate)
        for level, column in _LEVELS.items()
        for label, rate in zip(labels, table[column], strict=True)
        if known(rate)
    ]
    tokens = pd.DataFrame(bars, columns=["machine", "dtype", "layout", "tokens_per_second", "low", "high", "gbps"])
    rates = pd.DataFrame(reads, columns=["machine", "level", "gbps"])
    decode = Panel("dtype", "tokens_per_second", "", "tokens/s", by="machine", low="low", high="high", bars=True)
    asked = listed(dict.fromkeys(workload(head) for head in heads))
    about = f"{asked}, fastest layout of each dtype. Lines: intervals over launches."
    missing = "No run has such a rate: run kvbench sweep quick."
    return [
        chart("tokens-by-machine", "Which machine decodes faster?", about, tokens, [decode], missing=missing),
        chart("reads-by-machine", "Which machine reads faster?", "The fastest read of each level, on a logarithmic scale.",
              rates, [Panel("level", "gbps", "", "GB/s", by="machine", bars=True, log="y")], missing=missing),
    ]  # fmt: skip

"""What do blocks cost: their size, their order in memory, the system's pages under them?"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from kvbench.analysis.diagnosis.phrases import listed, number
from kvbench.lab.experiment import Asked, Outcome
from kvbench.lab.measuring import Remembered, bench, beside, enclosed, named, point, refuse_impossible
from kvbench.model import Point
from kvbench.native import pages_given
from kvbench.plan import needs_here
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.units import counted, duration
from kvbench.worker.ground import Ground

_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_CHEAP = 1.05  # times the time without blocks: less than that is asked for
_PLAIN = "head"
_PAGED = "paged"


def experiment(asked: Asked, model: str = "llama-3-8b", context: int = 4096, dtype: str = "f16") -> Outcome:
    plain = point(asked, model, context, dtype=dtype, layout=_PLAIN)
    refuse_impossible(asked, [plain])
    given = pages_given(needs_here([plain], asked.machine)[plain].arena, asked.library)
    rows = [
        row
        for pages in given
        for row in _beside_plain(asked, point(asked, model, context, dtype=dtype, layout=_PLAIN, pages=pages))
    ]
    found = pd.DataFrame(rows).sort_values(["pages", "order", "block_tokens"], ignore_index=True)
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found), _notes(asked, found, given))


def _beside_plain(asked: Asked, plain: Point) -> Iterator[dict[str, Any]]:
    """Every size and order of blocks, each in the same rounds as a cache without blocks."""
    shape, answers = plain.shape, Remembered()
    every = [(blocks, shuffled) for blocks in _BLOCKS for shuffled in (False, True) if blocks <= shape.context]
    random.Random(asked.seed).shuffle(every)
    with (
        Ground(asked.library, asked.machine) as ground,
        Ground(asked.library, asked.machine) as other,
        bench(plain, ground, answers) as without,
    ):
        for blocks, shuffled in every:
            paged = replace(plain, layout=_PAGED, block_tokens=blocks, shuffle=asked.seed if shuffled else None)
            with bench(paged, other, answers) as own:
                programs = [named(_PLAIN, without.own), named(_PAGED, own.own)]
                taken = beside(without.team, programs, asked.seed)
            rate, base = taken.rate(_PAGED), taken.rate(_PLAIN)
            yield {
                "pages": plain.pages,
                "order": "shuffled" if shuffled else "sequential",
                "block_tokens": blocks,
                **enclosed("seconds", taken.seconds(_PAGED)),
                **enclosed("gbps", rate),
                "plain_gbps": base.median,
                **enclosed("share", taken.share(_PAGED, _PLAIN)),
                **enclosed("times", taken.times(_PAGED, _PLAIN)),
                "huge": own.room.memory["huge_bytes"] / max(own.room.memory["resident_bytes"], 1),
                "rounds": rate.launches,
            }


# ---- what is shown ---------------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("pages", "pages"),
    Column("order", "blocks"),
    Column("block_tokens", "tokens each"),
    Column("seconds", "time", duration),
    Column("gbps", "GB/s", number),
    Column("plain_gbps", "without", number),
    Column("share", "of that", "{:.0%}".format),
    Column("times", "times its time", "{:.2f}".format),
    Column("times_low", "low", "{:.2f}".format),
    Column("times_high", "high", "{:.2f}".format),
)


def _notes(asked: Asked, found: pd.DataFrame, given: tuple[str, ...]) -> tuple[str, ...]:
    missing = [pages for pages in asked.library.words("pages") if pages not in given]
    notes = (
        f"without: the same tokens without blocks ({_PLAIN}) in the same rounds; of that: share of those GB/s; low and high "
        f"enclose the median of {found['rounds'].min()} rounds of one process, on the same memory for all of them",
        "blocks of one token lie as far apart as their order has it; the heads of a block lie one behind the other",
    )
    return notes + ((f"the system gives no {listed(missing)} pages now",) if missing else ())


def _figure(found: pd.DataFrame) -> Figure:
    panels = [
        Panel(
            x="block_tokens", y="times", x_label="tokens in a block", y_label="times the time without blocks", by="order",
            low="times_low", high="times_high", where=("pages", pages), log="x", title=f"{pages} pages",
            levels=((_CHEAP, "5% more"),),
        )
        for pages in dict.fromkeys(found["pages"])
    ]  # fmt: skip
    about = (
        "One decode step of one layer from memory, beside one without blocks in the same rounds. Whiskers: intervals."
    )
    return chart("paging", "Blocks", about, found, panels)


def _sentence(found: pd.DataFrame) -> str:
    cheap, dear, doubt = [], [], ""
    for (pages, order), own in found.groupby(["pages", "order"], sort=False):
        where, first = f"{order} on {pages} pages", _first_cheap(own)
        if first is None:
            best = own.loc[own["times"].idxmin()]
            dear.append(f"{where} ({counted(best['block_tokens'], 'token')} nearest, with {_enclosed(best)})")
        else:
            cheap.append(f"from {counted(first['block_tokens'], 'token')} on when {where} ({_enclosed(first)})")
            if first["times_high"] >= _CHEAP:
                doubt = f"; where an interval reaches {_CHEAP}, as far as the noise lets one see"
    less = "less than 5% of the time without them"
    if not cheap:
        return f"Blocks of no size up to {found['block_tokens'].max()} tokens cost {less}: {listed(dear)}."
    never = f"; those of no size do when {listed(dear)}" if dear else ""
    return f"Blocks cost {less} {listed(cheap)}{never}{doubt}."


def _first_cheap(own: pd.DataFrame) -> pd.Series | None:
    """The smallest blocks that cost little, where no larger ones cost more beyond the noise."""
    largest_dear = own["block_tokens"][own["times_low"] >= _CHEAP].max()
    cheap = own[(own["times"] < _CHEAP) & ~(own["block_tokens"] <= largest_dear)]
    return None if cheap.empty else cheap.loc[cheap["block_tokens"].idxmin()]


def _enclosed(row: pd.Series) -> str:
    return f"{row['times']:.2f} times, {row['times_low']:.2f}..{row['times_high']:.2f}"

"""What do blocks cost: their size, their order in memory, the system's pages under them?"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import pandas as pd

from kvbench.analysis.diagnosis.phrases import listed, number
from kvbench.analysis.launches import enclosed
from kvbench.lab.experiment import Asked, Outcome
from kvbench.lab.measuring import (
    BUDGET,
    Remembered,
    affordable,
    bench,
    beside,
    named,
    point,
    refuse_impossible,
)
from kvbench.model import Point
from kvbench.native import pages_given
from kvbench.plan import needs_here
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.units import counted, duration
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground

_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_CHEAP = 1.05  # times the time without blocks: less than that is asked for
_LESS = f"{_CHEAP - 1:.0%}"
_PLAIN = "head"
_PAGED = "paged"


def experiment(asked: Asked, model: str = "llama-3-8b", context: int = 4096, dtype: str = "f16") -> Outcome:
    plain = point(asked, model, context, dtype=dtype, layout=_PLAIN)
    sizes = [blocks for blocks in _BLOCKS if blocks <= context]
    refuse_impossible(asked, [plain], [_paged(plain, blocks) for blocks in sizes])
    given = pages_given(needs_here([plain], asked.machine)[plain].arena, asked.library)
    rows = [
        row for pages in given for row in _beside_plain(asked, replace(plain, pages=pages), sizes, BUDGET / len(given))
    ]
    found = pd.DataFrame(rows).sort_values(["pages", "order", "block_tokens"], ignore_index=True)
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found), _notes(asked, found, given, sizes))


def _paged(plain: Point, blocks: int, shuffle: int | None = None) -> Point:
    return replace(plain, layout=_PAGED, block_tokens=blocks, shuffle=shuffle)


def _beside_plain(asked: Asked, plain: Point, sizes: Sequence[int], seconds: float) -> Iterator[dict[str, Any]]:
    """Every size and order of blocks, each in the same rounds as a cache without blocks; or fewer sizes, where by what the
    first has taken all would take longer than that."""
    answers = Remembered()
    with (
        Ground(asked.library, asked.machine) as ground,
        Ground(asked.library, asked.machine) as other,
        bench(plain, ground, answers) as without,
    ):
        start = perf_counter()
        yield _row(asked, without, other, answers, sizes[-1], False)
        count = affordable(2 * len(sizes), perf_counter() - start, seconds)
        left = [(blocks, shuffled) for blocks in _spread(sizes, -(-count // 2)) for shuffled in (False, True)]
        left.remove((sizes[-1], False))
        for blocks, shuffled in random.Random(asked.seed).sample(left, len(left)):
            yield _row(asked, without, other, answers, blocks, shuffled)


def _spread(sizes: Sequence[int], count: int) -> list[int]:
    """So many of them, far apart: the last one always, and the first one where there are two."""
    steps = max(count - 1, 1)
    return sorted({sizes[-1 - turn * (len(sizes) - 1) // steps] for turn in range(max(count, 1))})


def _row(
    asked: Asked, without: Bench, ground: Ground, answers: Remembered, blocks: int, shuffled: bool
) -> dict[str, Any]:
    paged = _paged(without.point, blocks, asked.seed if shuffled else None)
    with bench(paged, ground, answers) as own:
        programs = [named(_PLAIN, without.own), named(_PAGED, own.own)]
        taken = beside(without.team, programs, asked.seed)
        memory = own.room.memory
    rate, base = taken.rate(_PAGED), taken.rate(_PLAIN)
    return {
        "pages": paged.pages,
        "order": "shuffled" if shuffled else "sequential",
        "block_tokens": blocks,
        **enclosed("seconds", taken.seconds(_PAGED)),
        **enclosed("gbps", rate),
        "plain_gbps": base.median,
        **enclosed("share", taken.share(_PAGED, _PLAIN)),
        **enclosed("times", taken.times(_PAGED, _PLAIN)),
        "huge": memory["huge_bytes"] / max(memory["resident_bytes"], 1),
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


def _notes(asked: Asked, found: pd.DataFrame, given: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    missing = [pages for pages in asked.library.words("pages") if pages not in given]
    notes = (
        f"without: the same tokens without blocks ({_PLAIN}) in the same rounds; of that: share of those GB/s; low and high "
        f"enclose the median of {found['rounds'].min()} rounds of one process, on the same memory for all of them",
        "blocks of one token lie as far apart as their order has it; the heads of a block lie one behind the other",
    )
    rows = 2 * len(sizes) * len(given)
    few = f"{len(found)} sizes and orders of {rows}, for one takes too long here to try them all"
    return (
        *notes,
        *([few] if len(found) < rows else []),
        *([f"the system gives no {listed(missing)} pages now"] if missing else []),
    )


def _figure(found: pd.DataFrame) -> Figure:
    panels = [
        Panel(
            x="block_tokens", y="times", x_label="tokens in a block", y_label="times the time without blocks", by="order",
            low="times_low", high="times_high", where=("pages", pages), log="x", title=f"{pages} pages",
            levels=((_CHEAP, f"{_LESS} more"),),
        )
        for pages in dict.fromkeys(found["pages"])
    ]  # fmt: skip
    about = (
        "One decode step of one layer from memory, beside one without blocks in the same rounds. Whiskers: intervals."
    )
    return chart("paging", "Blocks", about, found, panels)


def _sentence(found: pd.DataFrame) -> str:
    cheap, dear = [], []
    for (pages, order), own in found.groupby(["pages", "order"], sort=False):
        where, first = f"{order} on {pages} pages", _first_cheap(own)
        last = own.loc[own["block_tokens"].idxmax()]
        if first is None:
            unsure = ", as far as the noise lets one see" if last["times_low"] < _CHEAP else ""
            dear.append(f"{where} ({_sized(last)}{unsure})")
        else:
            beyond = own[own["block_tokens"] >= first["block_tokens"]]
            from_there = f"from {counted(first['block_tokens'], 'token')} on when {where} ({_enclosed(first)}"
            cheap.append(f"{from_there}{_doubt(beyond, first)})")
    less = f"less than {_LESS} of the time without them"
    if not cheap:
        return f"Blocks cost {less} from no size up to {found['block_tokens'].max()} tokens on: {listed(dear)}."
    never = f"; from no size on when {listed(dear)}" if dear else ""
    return f"Blocks cost {less} {listed(cheap)}{never}."


def _first_cheap(own: pd.DataFrame) -> pd.Series | None:
    """The smallest blocks that cost little, as all larger ones do."""
    largest_dear = own["block_tokens"][own["times"] >= _CHEAP].max()
    cheap = own[~(own["block_tokens"] <= largest_dear)]
    return None if cheap.empty else cheap.loc[cheap["block_tokens"].idxmin()]


def _doubt(beyond: pd.DataFrame, first: pd.Series) -> str:
    """Of the sizes from the first one on, the one that may cost most."""
    most = beyond.loc[beyond["times_high"].idxmax()]
    if most["times_high"] < _CHEAP:
        return ""
    other = "" if most["block_tokens"] == first["block_tokens"] else f"; {_sized(most)}"
    return f"{other}, as far as the noise lets one see"


def _sized(row: pd.Series) -> str:
    return f"{counted(row['block_tokens'], 'token')}: {_enclosed(row)}"


def _enclosed(row: pd.Series) -> str:
    return f"{row['times']:.2f} times, {row['times_low']:.2f}..{row['times_high']:.2f}"

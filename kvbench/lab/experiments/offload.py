"""What does it cost to keep a share of the cache elsewhere, in memory or in a file, and when is recomputing cheaper?"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.measured.launches import interval
from kvbench.errors import BadArgument, WrongAnswer
from kvbench.lab.experiment import Outcome, Setup, refuse_too_large
from kvbench.lab.measuring import point, refuse_impossible
from kvbench.lab.tiers import FileTier, MemoryTier, Tier
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import Model
from kvbench.suite import model as geometry
from kvbench.units import GB, counted, duration, size
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Caller, Program, rounds
from kvbench.worker.room import Room, near_threads
from kvbench.worker.tuning import Tuner

_SHARES = (0.05, 0.10, 0.25, 0.50, 1.0)
_BLOCK = 16  # tokens of a page
_ROUNDS = 6  # beside an untimed one: their ends hold a median with 97 %
_TIMES = 50  # passes of the FMA probe: to wake the threads must be no part of it
WARM, FMA, AGAIN = "nothing elsewhere", "flops", "recomputed, at least"
BACK, STEP = "all back", "step"

Times = Mapping[str, Sequence[float]]  # seconds in each round; of FMA, of one FLOP


def experiment(setup: Setup, model: str = "qwen3-0.6b", context: int = 2048, cold: float | None = None) -> Outcome:
    known, shares = geometry(model), _SHARES if cold is None else (cold,)
    if not all(0 < share <= 1 for share in shares):
        raise BadArgument(f"cold is {cold:.0%}", "a share of the pages, over 0% and up to 100%")
    held = point(setup, model, context, layout="paged", block_tokens=_BLOCK, layers=known.layers)
    refuse_impossible(setup, held)
    with ExitStack() as owned:
        ground = owned.enter_context(Ground(setup.library, setup.machine))
        room = owned.enter_context(Room(held, ground))
        bench = owned.enter_context(Bench(held, room, Answers()))
        Tuner(setup.machine, {}).choose(bench)
        bench.verify()
        pages = room.arena.view()[: room.layers * room.slice_bytes].reshape(known.layers, 2, -(-context // _BLOCK), -1)
        refuse_too_large(pages.nbytes)  # once more
        pool = owned.enter_context(near_threads(setup.cpus))
        tiers = (
            owned.enter_context(MemoryTier(pages, setup.library, pool)),
            owned.enter_context(FileTier(pages, setup.folder, pool)),
        )
        facts = Facts(known, pages.shape[2], pages.nbytes // pages.shape[2])
        for tier in tiers:
            _there_and_back(tier, pages)
        times = _timed(bench, tiers, facts, shares, setup.seed)
    table, even = tabled(times, facts, [tier.name for tier in tiers], shares), facts.even(times)
    notes = (*_notes(facts, times), *(tier.about for tier in tiers))
    return Outcome(table, _COLUMNS, _figure(table, even), sentence(table, even), notes)


@dataclass(frozen=True, slots=True)
class Facts:
    model: Model
    pages: int
    page_bytes: int

    def cold(self, shares: Sequence[float]) -> list[int]:
        """Pages, at least one: as near to the shares as whole pages are, each number once."""
        return sorted({max(1, round(share * self.pages)) for share in shares})

    def again(self, pages: int, times: Times) -> float:
        """Seconds to project so many pages' tokens to K and V once more, in every layer, at the rate of the FMA probe; NaN
        where the hidden size is not known."""
        known = self.model
        flops = 2.0 * known.hidden * 2 * known.kv_heads * known.head_dim * _BLOCK * known.layers
        return pages * flops * float(np.median(times[FMA])) if flops else float("nan")

    def even(self, times: Times) -> float:
        """GB/s of a tier that brings a page back as fast as it can be recomputed."""
        return self.page_bytes / self.again(1, times) / GB


def _there_and_back(tier: Tier, pages: np.ndarray) -> None:
    """What comes back is what went."""
    before, every = zlib.crc32(pages), range(pages.shape[2])
    tier.put(every)
    pages[:] = 0
    tier.fetch(every)
    if zlib.crc32(pages) != before:
        raise WrongAnswer(f"{tier.name}: pages came back with other bytes", "try another --out")


def _timed(bench: Bench, tiers: Sequence[Tier], facts: Facts, shares: Sequence[float], seed: int) -> Times:
    """After a round that does not count."""
    tasks, fma = bench.own.tasks, bench.computed(FMA)

    def step(tier: Tier | None = None, count: int = 0) -> None:
        if tier:
            tier.fetch(range(count))  # the oldest
        bench.team.run(*tasks, passes=len(tasks))

    calls: dict[str, Callable[[], object]] = {WARM: step}
    for tier in tiers:
        calls[f"{tier.name} {BACK}"] = partial(tier.fetch, range(facts.pages))
        calls |= {f"{tier.name} {count}": partial(step, tier, count) for count in facts.cold(shares)}
    programs = [fma, *(Program(name, Caller(), (call,), warm=False) for name, call in calls.items())]
    taken: dict[str, list[float]] = {program.name: [] for program in programs}
    for sample in rounds(programs, 1 + _ROUNDS, 1.0, seed, passes=dict.fromkeys(calls, 1) | {FMA: _TIMES}):
        if sample.round:
            work = sample.passes * fma.traffic().flops if sample.program == FMA else 1.0
            taken[sample.program].append(sample.seconds / work)
    return taken


# ---- what was found --------------------------------------------------------------------------------------------------


def tabled(times: Times, facts: Facts, tiers: Sequence[str], shares: Sequence[float]) -> pd.DataFrame:
    """A row for all pages of each tier, and for each step: by what lay elsewhere, and where."""
    table = pd.DataFrame(_rows(times, facts, tiers, facts.cold(shares)))
    back = table["does"] == BACK
    table["times"] = (table["seconds"] / float(np.median(times[WARM]))).where(~back)
    for name, end in {"gbps": "seconds", "gbps_low": "high", "gbps_high": "low"}.items():
        table[name] = (table["moved"] / table[end] / GB).where(back)
    return table


def _rows(times: Times, facts: Facts, tiers: Sequence[str], counts: Sequence[int]) -> Iterator[dict[str, Any]]:
    def row(tier: str, does: str, pages: int, moved: int, taken: Sequence[float]) -> dict[str, Any]:
        low, high = interval(taken, 0.95)
        ends = {"seconds": float(np.median(taken)), "low": low, "high": high}
        return {"tier": tier, "does": does, "cold": pages / facts.pages, "moved": moved * facts.page_bytes, **ends}

    yield from (row(tier, BACK, facts.pages, facts.pages, times[f"{tier} {BACK}"]) for tier in tiers)
    yield row(WARM, STEP, 0, 0, times[WARM])
    for count in counts:
        yield from (row(tier, STEP, count, count, times[f"{tier} {count}"]) for tier in tiers)
        if facts.model.hidden:
            yield row(AGAIN, STEP, count, 0, [facts.again(count, times) + seconds for seconds in times[WARM]])


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


_COLUMNS = (
    Column("tier", "cold pages"),
    Column("does", "what"),
    Column("cold", "share", _percent),
    Column("moved", "moved", size),
    Column("seconds", "time", duration),
    Column("low", "between", duration),
    Column("high", "and", duration),
    Column("gbps", "GB/s", "{:.3g}".format),
    Column("times", "of a warm step", "{:.2f}x".format),
)


def sentence(table: pd.DataFrame, even: float) -> str:
    """Of the share in the middle."""
    steps, warm = table[table["does"] == STEP], table[table["tier"] == WARM].iloc[0]
    shares = sorted(set(steps["cold"]) - {0.0})
    own = steps[(steps["cold"] == shares[len(shares) // 2]) & (steps["tier"] != AGAIN)]
    slower = " and ".join(_slower(row, warm) for _, row in own.iterrows())
    first = f"A decode step with {_percent(own['cold'].iloc[0])} of the pages elsewhere takes {slower}."
    if np.isnan(even):
        return f"{first} The model's hidden size is not known, and so neither what recomputing takes."
    rates = " and ".join(_beside(row, even) for _, row in table[table["does"] == BACK].iterrows())
    return f"{first} Fetching a page beats recomputing it above {even:.2g} GB/s: {rates}."


def _slower(row: pd.Series, warm: pd.Series) -> str:
    apart = row["low"] > warm["high"] or row["high"] < warm["low"]
    return f"{row['times']:.3g}x as long from {row['tier']}" if apart else f"as long from {row['tier']} (within noise)"


def _beside(row: pd.Series, even: float) -> str:
    word = "more" if row["gbps_low"] > even else "less" if row["gbps_high"] < even else "about that"
    return f"{row['tier']} gives {word} ({row['gbps']:.3g} GB/s)"


def _figure(table: pd.DataFrame, even: float) -> Figure:
    shown = table.assign(percent=100 * table["cold"])
    shown = shown.assign(**{f"ms_{name}": 1e3 * table[name] for name in ("seconds", "low", "high")})
    rates = Panel("does", "gbps", "all pages", "GB/s", "Bringing pages back", by="tier", bars=True, log="y", low="gbps_low",
                  high="gbps_high", levels=() if np.isnan(even) else ((even, "as fast as recomputing"),))  # fmt: skip
    steps = Panel("percent", "ms_seconds", "% of the pages elsewhere before the step", "ms for a token", "A decode step",
                  where=("does", STEP), by="tier", log="y", low="ms_low", high="ms_high", text="{:.0f}".format)  # fmt: skip
    about = "Left: all pages at once. Right: a step that first brings cold pages back. Medians and intervals."
    return chart("offload", "Pages of the cache elsewhere", about, shown, (rates, steps))


def _notes(facts: Facts, times: Times) -> tuple[str, ...]:
    pages = f"{counted(facts.pages, 'page')} of {_BLOCK} tokens in {facts.model.layers} layers, {size(facts.page_bytes)} each"
    rate = 1 / float(np.median(times[FMA])) / GB
    return (
        f"{pages}, f16; medians of {len(times[WARM])} rounds, between the ends that hold them with 95 %",
        f"recomputing: the projections to K and V alone, at the {rate:.3g} GFLOP/s of the FMA probe; it really costs more",
    )

"""What does it cost to keep a share of the cache elsewhere, in memory or in a file, and when is recomputing cheaper?"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.measured.launches import held, interval
from kvbench.errors import BadArgument, WrongAnswer
from kvbench.lab.experiment import Outcome, Setup, refuse_too_large
from kvbench.lab.measuring import point, tuned
from kvbench.lab.tiers import FileTier, MemoryTier, Tier
from kvbench.native import Arena, Cache, Task, Team, decode_task, probe_task
from kvbench.oracle import attention, tolerance
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import Model
from kvbench.suite import model as geometry
from kvbench.units import GB, counted, duration, gbps, size
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Caller, Program, rounds
from kvbench.worker.owner import Owner
from kvbench.worker.probing import ROUNDS
from kvbench.worker.room import Room, near_threads

_SHARES = (0.05, 0.10, 0.25, 0.50, 1.0)
_BLOCK = 16  # tokens of a page
_SECONDS, _LEAST, _MOST = 25.0, 2, 15  # of all rounds, with an untimed one before them, and how many there may be
_SURE = 0.95  # with which intervals hold a median
_TIMES = 50  # passes of the FMA probe: to wake the threads must be no part of it
WARM, FMA, AGAIN = "nothing elsewhere", "fma", "recomputed, at least"
OUT, BACK, STEP = "out", "back", "step"

Times = Mapping[str, Sequence[float]]


def experiment(setup: Setup, model: str = "qwen3-0.6b", context: int = 2048, cold: float | None = None) -> Outcome:
    known, shares = geometry(model), _SHARES if cold is None else (cold,)
    if not all(0 < share <= 1 for share in shares):
        raise BadArgument(f"cold is {cold:.0%}", "a share of the pages, over 0% and up to 100%")
    with ExitStack() as owned:
        decoder = owned.enter_context(PagedDecoder(setup, model, context))
        pool = owned.enter_context(near_threads(setup.cpus))
        memory = owned.enter_context(MemoryTier(decoder.pages, setup.library, pool))
        file = owned.enter_context(FileTier(decoder.pages, setup.folder, pool))
        tiers = (memory, file)
        facts = Facts(known, decoder.count, decoder.pages.nbytes // decoder.count, decoder.fma_flops)
        counts = facts.cold(shares)
        seconds = sum(_there_and_back(tier, decoder, counts) for tier in tiers)
        count = min(_MOST, max(_LEAST, int(_SECONDS / seconds) - 1))
        times = _timed(_calls(decoder, tiers, counts), count, setup.seed)
    table, even = tabled(times, facts, [tier.name for tier in tiers], counts), facts.even(times)
    notes = (*_notes(facts, count, times), *(tier.about for tier in tiers))
    return Outcome(table, _COLUMNS, _figure(table, even), sentence(table, even), notes)


@dataclass(frozen=True, slots=True)
class Facts:
    """`flops`: what a call of the FMA probe computes."""

    model: Model
    pages: int
    page_bytes: int
    flops: float

    def cold(self, shares: Sequence[float]) -> list[int]:
        """Pages, at least one: as near to the shares as whole pages are, each number once."""
        return sorted({max(1, round(share * self.pages)) for share in shares})

    @property
    def page_flops(self) -> float:
        """To project a page's tokens to K and V once more, in every layer; 0 where the hidden size is not known."""
        known = self.model
        return 2.0 * known.hidden * 2 * known.kv_heads * known.head_dim * _BLOCK * known.layers

    def again(self, pages: int, times: Times) -> float:
        """Seconds that the projections of so many pages take at the rate of the FMA probe."""
        return pages * self.page_flops * float(np.median(times[FMA])) / self.flops

    def even(self, times: Times) -> float:
        """GB/s of a tier that brings a page back as fast as it can be recomputed; NaN where that is not known."""
        return gbps(self.page_bytes, self.again(1, times)) if self.page_flops else float("nan")


class PagedDecoder(Owner):
    """A paged cache for each layer, side by side in one arena, and the tasks that decode a token with all of them.

    `pages` is all of it as [layers, K and V, pages, bytes].
    """

    def __init__(self, setup: Setup, model: str, context: int) -> None:
        known = geometry(model)
        self._setup, self._model, self._known, self._context = setup, model, known, context
        self._facts = {"layout": "paged", "dtype": "f16", "block_tokens": _BLOCK, "library": setup.library}
        self._shape = (known.kv_heads, known.head_dim, context)
        self._bytes = Cache.size_of(*self._shape, **self._facts)
        refuse_too_large(2 * known.layers * self._bytes)  # cache and copy
        super().__init__()

    def _prepare(self) -> None:
        setup, known, own = self._setup, self._known, self._owned.enter_context
        self._arena = own(Arena(known.layers * self._bytes, library=setup.library))
        self._team = own(Team(len(setup.cpus), setup.cpus, setup.library))
        self.count = -(-self._context // _BLOCK)
        self.pages = self._arena.view().reshape(known.layers, 2, self.count, -1)
        shape = (known.layers, 1, known.q_heads, known.head_dim)
        self._q = np.random.default_rng(setup.seed).standard_normal(shape, dtype=np.float32)
        self._out = np.zeros_like(self._q)
        self._schedule = self._tuned()
        self._tasks = [own(self._layer(layer)) for layer in range(known.layers)]
        self._fma = own(probe_task(setup.library, "flops", self._team.threads, isa=setup.isa, steps=ROUNDS))
        self.fma_flops = _TIMES * self._fma.traffic().flops

    def _tuned(self) -> str:
        setup = self._setup
        facts = {"layout": "paged", "block_tokens": _BLOCK, "layers": self._known.layers}
        alike = point(setup, self._model, self._context, **facts)
        with Ground(setup.library, setup.machine) as ground, Room(alike, ground) as room:
            return tuned(room)

    def _layer(self, layer: int) -> Task:
        """Its cache is filled; the first one's answer is checked."""
        cache = Cache(*self._shape, **self._facts, arena=self._arena, offset=layer * self._bytes)
        cache.lengths[:] = self._context
        args = (cache, self._q[layer], self._out[layer], self._team.threads)
        with decode_task("fill", *args, isa=self._setup.isa, seed=self._setup.seed + layer) as fill:
            self._team.run(fill)
        task = decode_task("decode", *args, isa=self._setup.isa, schedule=self._schedule)
        if layer == 0:
            self._team.run(task)
            self._check(cache)
        return task

    def _check(self, cache: Cache) -> None:
        largest = float(np.abs(cache.numpy()[1]).max())
        off = float(np.abs(attention(self._q[0], cache.rows, cache.lengths) - self._out[0]).max())
        if not off <= tolerance(largest, self._context):
            raise WrongAnswer(f"decode is off by {off:.3g}", "run kvbench verify")

    def step(self) -> None:
        self._team.run(*self._tasks, passes=len(self._tasks))

    def multiply(self) -> None:
        self._team.run(self._fma, passes=_TIMES)

    def digest(self) -> int:
        """A checksum of all bytes of the cache."""
        return zlib.crc32(self.pages)


def _there_and_back(tier: Tier, decoder: PagedDecoder, counts: Sequence[int]) -> float:
    """What comes back is what went. Seconds that the tier will take of a round, about."""
    before = decoder.digest()
    out = _took(partial(tier.put, range(decoder.count)))
    decoder.pages[:] = 0
    back = _took(partial(tier.fetch, range(decoder.count)))
    if decoder.digest() != before:
        raise WrongAnswer(f"{tier.name}: pages came back with other bytes", "try another --out")
    return out + back * (1 + sum(counts) / decoder.count) + _took(decoder.step) * len(counts)


def _took(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _calls(decoder: PagedDecoder, tiers: Sequence[Tier], counts: Sequence[int]) -> dict[str, Callable[[], object]]:
    def fetched(tier: Tier, count: int) -> None:
        tier.fetch(range(count))  # the oldest
        decoder.step()

    calls: dict[str, Callable[[], object]] = {WARM: decoder.step, FMA: decoder.multiply}
    for tier in tiers:
        calls[f"{tier.name} {OUT}"] = partial(tier.put, range(decoder.count))
        calls[f"{tier.name} {BACK}"] = partial(tier.fetch, range(decoder.count))
        calls |= {f"{tier.name} {count}": partial(fetched, tier, count) for count in counts}
    return calls


def _timed(calls: Mapping[str, Callable[[], object]], count: int, seed: int) -> dict[str, list[float]]:
    """Seconds of each call in every round, after a round that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    programs = [Program(name, Caller(), (call,), warm=False) for name, call in calls.items()]
    for sample in rounds(programs, 1 + count, _SECONDS, seed, passes=dict.fromkeys(calls, 1)):
        if sample.round:
            taken[sample.program].append(sample.seconds)
    return taken


# ---- what was found --------------------------------------------------------------------------------------------------


def tabled(times: Times, facts: Facts, tiers: Sequence[str], counts: Sequence[int]) -> pd.DataFrame:
    """A row for each way of a tier, and for each step: by what lay elsewhere, and where. `counts`: pages."""
    rows = list(_rows(times, facts, tiers, counts))
    table = pd.DataFrame(rows)
    warm = table.loc[table["tier"] == WARM, "seconds"].iloc[0]
    steps, moves = table["does"] == STEP, table["does"] != STEP
    table["times"] = (table["seconds"] / warm).where(steps)
    for name, end in {"gbps": "seconds", "gbps_low": "high", "gbps_high": "low"}.items():
        table[name] = (table["moved"] / table[end] / GB).where(moves)
    return table


def _rows(times: Times, facts: Facts, tiers: Sequence[str], counts: Sequence[int]) -> Iterator[dict[str, Any]]:
    def row(tier: str, does: str, pages: int, moves: bool, taken: Sequence[float]) -> dict[str, Any]:
        (low, high), seconds = interval(taken, _SURE), float(np.median(taken))
        cold, moved = pages / facts.pages, pages * facts.page_bytes if moves else 0
        return {"tier": tier, "does": does, "cold": cold, "moved": moved, "seconds": seconds, "low": low, "high": high}

    for tier in tiers:
        for does in (OUT, BACK):
            yield row(tier, does, facts.pages, True, times[f"{tier} {does}"])
    yield row(WARM, STEP, 0, False, times[WARM])
    for count in counts:
        for tier in tiers:
            yield row(tier, STEP, count, True, times[f"{tier} {count}"])
        if facts.page_flops:
            again = facts.again(count, times)
            yield row(AGAIN, STEP, count, False, [again + seconds for seconds in times[WARM]])


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
    steps = table[(table["does"] == STEP) & (table["tier"] != WARM)]
    shares = sorted(set(steps["cold"]))
    share = shares[len(shares) // 2]
    warm = table[table["tier"] == WARM].iloc[0]
    own = steps[(steps["cold"] == share) & (steps["tier"] != AGAIN)]
    slower = " and ".join(_slower(row, warm) for _, row in own.iterrows())
    first = (
        f"Beside one that finds all pages in the cache, a decode step with {_percent(share)} of them elsewhere takes "
        f"{slower}"
    )
    if np.isnan(even):
        return f"{first}; what recomputing would take is not known without the model's hidden size."
    return f"{first}; {_cheaper(table[table['does'] == BACK], even)}."


def _slower(row: pd.Series, warm: pd.Series) -> str:
    apart = row["low"] > warm["high"] or row["high"] < warm["low"]
    factor = f"{row['times']:.3g} times as long" if apart else "as long, as far as the noise lets it be told,"
    return f"{factor} from {row['tier']}"


def _cheaper(back: pd.DataFrame, even: float) -> str:
    """The rate is the most that can be asked of a tier: recomputing takes longer than its projections alone."""
    words = []
    for _, row in back.iterrows():
        does = (
            "gives more" if row["gbps_low"] > even else "gives less" if row["gbps_high"] < even else "gives about that"
        )
        words.append(f"{row['tier']} {does} ({row['gbps']:.3g} GB/s)")
    return f"bringing a page back beats recomputing it from {even:.2g} GB/s on, at the latest: {' and '.join(words)}"


def _figure(table: pd.DataFrame, even: float) -> Figure:
    rates = Panel(
        x="does", y="gbps", x_label="all pages", y_label="GB/s", title="Moving pages", by="tier", bars=True, log="y",
        low="gbps_low", high="gbps_high", levels=() if np.isnan(even) else ((even, "as fast as recomputing"),),
    )  # fmt: skip
    shown = table.assign(percent=100 * table["cold"])
    shown = shown.assign(**{f"ms_{name}": 1e3 * table[name] for name in ("seconds", "low", "high")})
    steps = Panel(
        x="percent", y="ms_seconds", x_label="% of the pages elsewhere before the step", y_label="ms for a token",
        title="A decode step", where=("does", STEP), by="tier", log="y", low="ms_low", high="ms_high",
        text="{:.0f}".format,
    )  # fmt: skip
    about = "Left: rates of all pages at once. Right: a step that first brings cold pages back. Medians and intervals."
    return chart("offload", "Pages of the cache elsewhere", about, shown, (rates, steps))


def _notes(facts: Facts, rounds: int, times: Times) -> tuple[str, ...]:
    known, rate = facts.model, facts.flops / float(np.median(times[FMA])) / 1e9
    pages = (
        f"{counted(facts.pages, 'page')} of {_BLOCK} tokens in all {known.layers} layers, {size(facts.page_bytes)} each"
    )
    again = (
        f"recomputing: 2 x {known.hidden} x 2 x {known.kv_heads} x {known.head_dim} FLOP for a token and layer, at the "
        f"{rate:.3g} GFLOP/s of the FMA probe beside; the projections alone, without the layers that lead to their "
        "inputs: what it really costs is more"
    )
    return (
        f"{pages}, f16; medians of {counted(rounds, 'round')}, between times that hold them with "
        f"{held(rounds, _SURE):.0%}",
        "a step brings the oldest pages back, then decodes layer after layer: nothing of it overlaps; shares are those "
        "of whole pages",
        *([again] if facts.page_flops else []),
    )

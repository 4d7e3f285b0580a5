"""What does it cost that the sequences of a batch are not equally long?"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.diagnosis.phrases import listed, number
from kvbench.analysis.launches import enclosed
from kvbench.errors import Refused
from kvbench.lab.experiment import Asked, Outcome
from kvbench.lab.measuring import beside, refuse_crumbs, refuse_wrong
from kvbench.machine import available_memory
from kvbench.model import AUTO
from kvbench.native import Arena, Cache, Team, decode_task
from kvbench.plan.needs import PROCESS
from kvbench.regime import far_bytes
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import model as geometry
from kvbench.units import duration, size
from kvbench.worker.loop import Program
from kvbench.worker.owner import Owner

_SEQUENCES = 8
_SHORT = 8  # times shorter than the long sequence are all others


def experiment(
    asked: Asked, model: str = "llama-3-8b", context: int = 4096, dtype: str = "f16", layout: str = "head"
) -> Outcome:
    batches = _batches(context, asked.seed)
    with _Batches(asked, model, context, {"dtype": dtype, "layout": layout}, batches) as made:
        found = pd.DataFrame(_measured(asked, made, batches))
    lengths = pd.DataFrame(
        {"batch": name, "sequence": place, "length": length}
        for name, own in batches.items()
        for place, length in enumerate(own, start=1)
    )
    return Outcome(found, _COLUMNS, _figure(found, lengths), _sentence(found), _notes(found))


def _batches(context: int, seed: int) -> dict[str, np.ndarray]:
    """Lengths of the sequences, the longest first."""
    drawn = np.random.default_rng(seed)
    most = {
        "uniform": drawn.integers(1, context, _SEQUENCES, endpoint=True),
        "long-tailed": np.clip(np.exp(drawn.normal(math.log(context / 8), 1.0, _SEQUENCES)), 1, context),
        "one long": np.array([context, *[max(1, context // _SHORT)] * (_SEQUENCES - 1)]),
    }
    return {name: np.sort(lengths.astype(np.int64))[::-1] for name, lengths in most.items()}


def _even(lengths: np.ndarray) -> np.ndarray:
    """As many tokens, on sequences that differ by one at most."""
    each, more = divmod(int(lengths.sum()), len(lengths))
    return np.array([each + (place < more) for place in range(len(lengths))], dtype=np.int64)


def _padded(lengths: np.ndarray) -> np.ndarray:
    return np.full_like(lengths, lengths.max())


_WAYS = {"as it is": lambda lengths: lengths, "even": _even, "padded": _padded}


class _Batches(Owner):
    """The memory of all batches: slices that together are more than the caches hold, whichever batch walks them."""

    def __init__(
        self, asked: Asked, model: str, context: int, facts: dict[str, Any], batches: Mapping[str, np.ndarray]
    ) -> None:
        self._asked, self._batches = asked, batches
        self._facts = facts | {"batch": _SEQUENCES, "library": asked.library}
        known = geometry(model)
        self._shape = (known.kv_heads, known.head_dim, context)
        drawn = np.random.default_rng(asked.seed)
        self._q = drawn.standard_normal((_SEQUENCES, known.q_heads, known.head_dim), dtype=np.float32)
        super().__init__()

    def _prepare(self) -> None:
        asked = self._asked
        self._slice = Cache.size_of(*self._shape, **self._facts)
        walked = Cache.size_of(*self._shape, **self._facts, pad=0) / (_SEQUENCES * self._shape[2])  # of each token
        least = walked * min(int(lengths.sum()) for lengths in self._batches.values())
        self._layers = math.ceil(far_bytes(asked.machine, asked.cpus) / least)
        refuse_crumbs(self._shape[2], self._layers)
        wanted, free = self._layers * self._slice + PROCESS, available_memory()
        if wanted > free:
            raise Refused(
                f"the batches need {size(wanted)} of memory, {size(free)} are free", "a smaller --model or --context"
            )
        self.team = self._owned.enter_context(Team(len(asked.cpus), asked.cpus, asked.library))
        self._arena = self._owned.enter_context(Arena(self._layers * self._slice, library=asked.library))
        self._fill()

    def _fill(self) -> None:
        most = np.full(_SEQUENCES, max(int(lengths.max()) for lengths in self._batches.values()))
        for layer in range(self._layers):
            with self._task("fill", self._cache(layer, most), self._q, seed=self._asked.seed + layer) as task:
                self.team.run(task)

    def programs(self, lengths: np.ndarray) -> list[Program]:
        """One for each way, by its name."""
        return [self._program(way, make(lengths)) for way, make in _WAYS.items()]

    def _program(self, name: str, lengths: np.ndarray) -> Program:
        out = np.zeros_like(self._q)
        caches = [self._cache(layer, lengths) for layer in range(self._layers)]
        tasks = [self._owned.enter_context(self._task("decode", cache, out, schedule=AUTO)) for cache in caches]
        self.team.run(tasks[0])
        refuse_wrong(caches[0], self._q, out)
        return Program(name, tuple(tasks), warm=False)

    def _cache(self, layer: int, lengths: np.ndarray) -> Cache:
        place = {"arena": self._arena, "offset": layer * self._slice}
        cache = self._owned.enter_context(Cache(*self._shape, **self._facts, **place))
        cache.lengths[:] = lengths
        return cache

    def _task(self, op: str, cache: Cache, out: np.ndarray, **facts: Any) -> Any:
        return decode_task(op, cache, self._q, out, self.team.threads, isa=self._asked.isa, **facts)


def _measured(asked: Asked, made: _Batches, batches: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    for batch, lengths in batches.items():
        programs = made.programs(lengths)
        own, even, padded = (program.name for program in programs)
        taken = beside(made.team, programs, asked.seed)
        yield {
            "batch": batch,
            "sequences": len(lengths),
            "tokens": int(lengths.sum()),
            "longest": int(lengths.max()),
            "shortest": int(lengths.min()),
            "lengths": " ".join(map(str, lengths)),
            "bytes": taken.moved[own],
            **enclosed("seconds", taken.seconds(own)),
            **enclosed("gbps", taken.rate(own)),
            "even_gbps": taken.rate(even).median,
            **enclosed("efficiency", taken.share(own, even)),
            "skew": taken.skew(own),
            "even_skew": taken.skew(even),
            "padded_bytes": taken.moved[padded] / taken.moved[own],
            "padded_seconds": taken.seconds(padded).median,
            **enclosed("padded_times", taken.times(padded, own)),
            "threads": made.team.threads,
            "rounds": taken.seconds(own).launches,
        }


# ---- what is shown ---------------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("batch", "lengths"),
    Column("tokens", "tokens"),
    Column("longest", "longest"),
    Column("shortest", "shortest"),
    Column("bytes", "bytes", size),
    Column("seconds", "time", duration),
    Column("gbps", "GB/s", number),
    Column("even_gbps", "even GB/s", number),
    Column("efficiency", "of even", "{:.0%}".format),
    Column("skew", "skew", "{:.1%}".format),
    Column("padded_bytes", "padded: bytes", "{:.2f} times".format),
    Column("padded_times", "time", "{:.2f} times".format),
)


def _notes(found: pd.DataFrame) -> tuple[str, ...]:
    return (
        f"{found['sequences'].iloc[0]} sequences, a decode step of one layer from memory; even: a batch of as many tokens and "
        "equally long sequences, in the same rounds; of even: share of its GB/s, which is how efficiently the work is dealt "
        "out to threads",
        f"skew: how much longer the slowest of {found['threads'].iloc[0]} threads works than the mean, in % of the mean",
        "padded: every sequence computed up to the longest one's end, over the batch as it is. Medians of "
        f"{found['rounds'].min()} rounds",
    )


def _figure(found: pd.DataFrame, lengths: pd.DataFrame) -> Figure:
    shares = found.assign(
        share=100 * found["efficiency"],
        low=100 * found["efficiency_low"],
        high=100 * found["efficiency_high"],
        what="time",
    )
    padded = pd.concat(
        found[["batch"]].assign(padded=found[column], what=what)
        for column, what in (("padded_bytes", "bytes"), ("padded_times", "time"))
    )
    table = pd.concat(
        [lengths.assign(series=lengths["batch"]), shares, padded.assign(series=padded["what"])], ignore_index=True
    )
    panels = (
        Panel("sequence", "length", "sequence of the batch", "tokens", "Lengths", by="series", text="{:.0f}".format),
        Panel("batch", "share", "", "% of an even batch's GB/s", "Efficiency", low="low", high="high", bars=True,
              levels=((100.0, "even"),)),
        Panel("batch", "padded", "", "times the batch as it is", "Padded to the longest", by="series", bars=True),
    )  # fmt: skip
    about = "A decode step of one layer and a batch from memory. Whiskers: intervals over rounds."
    return chart("users", "Batches of uneven lengths", about, table, panels)


def _sentence(found: pd.DataFrame) -> str:
    waste = found.loc[found["padded_times"].idxmax()]
    shares = listed(f"{row['efficiency']:.0%} ({row['batch']})" for _, row in found.iterrows())
    return (
        f"A batch of uneven lengths is read at {shares} of the GB/s of an even batch of as many bytes: {_judged(found)}; padded "
        f"to its longest sequence, the batch that suffers most ({waste['batch']}) moves {waste['padded_bytes']:.2f} times the "
        f"bytes and takes {waste['padded_times']:.2f} times as long ({waste['padded_times_low']:.2f}.."
        f"{waste['padded_times_high']:.2f})."
    )


def _judged(found: pd.DataFrame) -> str:
    clear = found[found["efficiency_high"] < 1]
    if clear.empty:
        least = found.loc[found["efficiency"].idxmin()]
        return f"no batch loses time beyond the noise, {_between(least)} coming nearest"
    lost = [_between(row) for _, row in clear.iterrows()]
    return f"beyond the noise, time is lost by {listed(lost)}"


def _between(row: pd.Series) -> str:
    return f"{row['batch']} ({row['efficiency_low']:.0%} to {row['efficiency_high']:.0%} of them)"

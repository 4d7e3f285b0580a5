"""What does it cost that the sequences of a batch are not equally long?"""

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.measured.launches import enclosed
from kvbench.lab.experiment import Outcome, Setup
from kvbench.lab.measuring import beside, point, refuse_impossible, refuse_wrong, tuned
from kvbench.native import decode_task
from kvbench.plan.needs import slice_of
from kvbench.regime import far_bytes
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.report.words.phrases import listed, number
from kvbench.units import size
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program
from kvbench.worker.room import Room

_SEQUENCES = 8
_SHORT = 8  # times shorter than the long sequence are all others


def experiment(
    setup: Setup, model: str = "llama-3-8b", context: int = 4096, dtype: str = "f16", layout: str = "head"
) -> Outcome:
    batches = _batches(context, setup.seed)
    facts = {"batch": _SEQUENCES, "dtype": dtype, "layout": layout}
    token = slice_of(point(setup, model, context, pad=0, **facts)) / (_SEQUENCES * context)
    least = token * min(int(lengths.sum()) for lengths in batches.values())  # bytes that a batch walks of a slice
    held = point(setup, model, context, layers=math.ceil(far_bytes(setup.machine, setup.cpus) / least), **facts)
    refuse_impossible(setup, held)
    with Ground(setup.library, setup.machine) as ground, Room(held, ground) as room:
        found = pd.DataFrame(_measured(setup, room, batches))
    return Outcome(found, _COLUMNS, _figure(found), _sentence(found), _NOTES)


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


def _measured(setup: Setup, room: Room, batches: Mapping[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    schedule, (own, even, padded) = tuned(room), _WAYS
    for batch, lengths in batches.items():
        with _programs(setup, room, schedule, lengths) as programs:
            taken = beside(programs, setup.seed)
        yield {
            "batch": batch,
            "tokens": int(lengths.sum()),
            "lengths": " ".join(map(str, lengths)),
            "bytes": taken.moved[own],
            "gbps": taken.rate(own),
            "even_gbps": taken.rate(even),
            **enclosed("efficiency", taken.share(own, even)),
            "skew": taken.skew(own),
            "padded_bytes": taken.moved[padded] / taken.moved[own],
            **enclosed("padded_times", taken.times(padded, own)),
        }


@contextmanager
def _programs(setup: Setup, room: Room, schedule: str, lengths: np.ndarray) -> Iterator[list[Program]]:
    """One for each way, by its name; all on the same memory."""
    shape, team = room.point.shape, room.team(setup.cpus)
    dims = (shape.batch, shape.q_heads, shape.head_dim)
    q = np.random.default_rng(setup.seed).standard_normal(dims, dtype=np.float32)
    facts = {"isa": setup.isa, "schedule": schedule}
    with ExitStack() as owned:
        programs = []
        for way, make in _WAYS.items():
            caches, out = [owned.enter_context(room.cache(layer)) for layer in range(room.layers)], np.zeros_like(q)
            for cache in caches:
                cache.lengths[:] = make(lengths)
            tasks = [owned.enter_context(decode_task("decode", each, q, out, team.threads, **facts)) for each in caches]
            team.run(tasks[0])
            refuse_wrong(caches[0], q, out)
            programs.append(Program(way, team, tuple(tasks), warm=False))
        yield programs


# ---- what is shown ---------------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("batch", "lengths"),
    Column("tokens", "tokens"),
    Column("bytes", "bytes", size),
    Column("gbps", "GB/s", number),
    Column("even_gbps", "even GB/s", number),
    Column("efficiency", "of even", "{:.0%}".format),
    Column("skew", "skew", "{:.1%}".format),
    Column("padded_bytes", "padded: bytes", "{:.2f} times".format),
    Column("padded_times", "time", "{:.2f} times".format),
)
_NOTES = (
    f"{_SEQUENCES} sequences, a decode step of one layer from memory; even: as many tokens in sequences of one length, timed "
    "in the same rounds",
    "skew: how much longer the slowest thread works than the mean; padded: every sequence computed to the longest one's end",
)


def _figure(found: pd.DataFrame) -> Figure:
    shares = found.assign(share=100 * found["efficiency"], what="time")
    shares = shares.assign(low=100 * found["efficiency_low"], high=100 * found["efficiency_high"])
    padded = pd.concat(
        found[["batch"]].assign(padded=found[f"padded_{what}"], what=what) for what in ("bytes", "times")
    )
    panels = (
        Panel("batch", "share", "", "% of an even batch's GB/s", "Efficiency", low="low", high="high", bars=True,
              levels=((100.0, "even"),)),
        Panel("batch", "padded", "", "times the batch as it is", "Padded to the longest", by="what", bars=True),
    )  # fmt: skip
    about = "A decode step of one layer and a batch from memory. Whiskers: intervals over rounds."
    return chart("users", "Batches of uneven lengths", about, pd.concat([shares, padded], ignore_index=True), panels)


def _sentence(found: pd.DataFrame) -> str:
    shares = listed(f"{_between(row)}" for _, row in found.iterrows())
    slow = list(found.loc[found["efficiency_high"] < 1, "batch"])
    lost = f"{listed(slow)} {'is' if len(slow) == 1 else 'are'} slower" if slow else "none is slower beyond the noise"
    waste = found.loc[found["padded_times"].idxmax()]
    return (
        f"Beside an even batch of as many tokens, uneven ones read at {shares}: {lost}. Padded to its longest sequence, the "
        f"worst batch ({waste['batch']}) moves {waste['padded_bytes']:.2f} times the bytes and takes "
        f"{waste['padded_times']:.2f} times as long."
    )


def _between(row: pd.Series) -> str:
    ends = f"{row['efficiency_low']:.0%} to {row['efficiency_high']:.0%}"
    return f"{row['efficiency']:.0%} ({row['batch']}, {ends})"

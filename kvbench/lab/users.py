"""What does it cost that the sequences of a batch are not equally long?"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.measured.estimates import Estimate, enclosed
from kvbench.checkpoint import find
from kvbench.errors import BadArgument, Refused, WrongAnswer
from kvbench.lab.experiment import Outcome, Setup
from kvbench.machine import available_memory
from kvbench.model import AUTO, DEFAULTS, HEADS, Point, Sample, quotients
from kvbench.native import Cache, decode_task
from kvbench.oracle import attention, tolerance, whole
from kvbench.plan import Site, only_point
from kvbench.plan.needs import needs_here, slice_bytes
from kvbench.regime import far_bytes
from kvbench.report.ruled import Column
from kvbench.report.words.phrases import listed, number
from kvbench.units import GB, counted, size
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room

_SEQUENCES = 8
_SHORT = 8  # times shorter than the long sequence are all others
_SLICES = 4096  # in rotation, at most
_ROUNDS, _SECONDS = 24, 0.005  # of a sample


def experiment(
    setup: Setup,
    model: str = "llama-3-8b",
    context: int = 4096,
    dtype: str = "f16",
    layout: str = "head",
) -> Outcome:
    batches = _batches(context, setup.seed)
    held = _point(setup, batches, model=model, context=context, dtype=dtype, layout=layout)
    needed = needs_here([held], setup.machine)[held]
    with Ground(setup.library, setup.machine) as ground, Room(held, needed, ground) as room:
        found = pd.DataFrame(
            _found(setup, room, name, lengths) for name, lengths in batches.items()
        )
    return Outcome(found, _COLUMNS, _sentence(found), _NOTES)


def _batches(context: int, seed: int) -> dict[str, np.ndarray]:
    """Lengths of the sequences, the longest first."""
    drawn = np.random.default_rng(seed)
    most = {
        "uniform": drawn.integers(1, context, _SEQUENCES, endpoint=True),
        "long-tailed": np.clip(
            np.exp(drawn.normal(math.log(context / 8), 1.0, _SEQUENCES)), 1, context
        ),
        "one long": np.array([context, *[max(1, context // _SHORT)] * (_SEQUENCES - 1)]),
    }
    return {name: np.sort(lengths.astype(np.int64))[::-1] for name, lengths in most.items()}


def _point(setup: Setup, batches: dict[str, np.ndarray], **facts: Any) -> Point:
    """With so many layers that even the smallest batch leaves the caches behind."""
    known, context = find(facts["model"], "--model")[1], facts["context"]
    cache = {"dtype": facts["dtype"], "layout": facts["layout"], "pad": 0}
    token = slice_bytes(known.kv_heads, known.head_dim, context, _SEQUENCES, **cache) / (
        _SEQUENCES * context
    )
    # bytes that a batch walks of a slice
    least = token * min(int(lengths.sum()) for lengths in batches.values())
    layers = math.ceil(far_bytes(setup.machine, setup.cpus) / least)
    if layers > _SLICES:
        raise BadArgument(
            f"{counted(context, 'token')}: {layers:,} layers of that size would be needed to exceed"
            " the caches, which takes too long",
            "more --context, or a larger --model",
        )
    site = Site(setup.machine, available_memory(), setup.isa, library=setup.library)
    own = {"op": "decode", "isa": setup.isa, "batch": _SEQUENCES, "layers": layers}
    heads = {"model": None} | {name: getattr(known, name) for name in HEADS}
    return only_point(DEFAULTS | facts | heads | own, setup.cpus, site)


def _even(lengths: np.ndarray) -> np.ndarray:
    """As many tokens, on sequences that differ by one at most."""
    each, more = divmod(int(lengths.sum()), len(lengths))
    return np.array([each + (place < more) for place in range(len(lengths))], dtype=np.int64)


_padded = lambda lengths: np.full_like(lengths, lengths.max())
_WAYS = {"as it is": lambda lengths: lengths, "even": _even, "padded": _padded}


def _found(setup: Setup, room: Room, batch: str, lengths: np.ndarray) -> dict[str, Any]:
    """Timed in the same rounds: what slows a round down slows all alike, so that ratios tell more
    than times.
    """
    with _programs(setup, room, lengths) as programs:
        taken: dict[str, list[Sample]] = {program.name: [] for program in programs}
        moved = {program.name: program.traffic().bytes_compulsory for program in programs}
        for sample in rounds(programs, _ROUNDS, _SECONDS, setup.seed):
            taken[sample.program].append(sample)
    own, even, padded = _WAYS
    rates = {
        name: moved[name] / median(sample.seconds / sample.passes for sample in samples) / GB
        for name, samples in taken.items()
    }
    return {
        "batch": batch,
        "tokens": int(lengths.sum()),
        "lengths": " ".join(map(str, lengths)),
        "bytes": moved[own],
        "gbps": rates[own],
        "even_gbps": rates[even],
        **enclosed("efficiency", times(taken[even], taken[own], moved[own] / moved[even])),
        "skew": median(sample.skew for sample in taken[own]),
        "padded_bytes": moved[padded] / moved[own],
        **enclosed("padded_times", times(taken[padded], taken[own])),
    }


def times(samples: Sequence[Sample], others: Sequence[Sample], per: float = 1.0) -> Estimate:
    """How many times as long as the others' they take, over the rounds."""
    if found := quotients(samples, others):
        return Estimate.of([per * ratio for ratio in found])
    raise Refused(
        "no round has two samples of the wanted length", "stop what else runs on this machine"
    )


@contextmanager
def _programs(setup: Setup, room: Room, lengths: np.ndarray) -> Iterator[list[Program]]:
    """One for each way, by its name; all on the same memory."""
    shape, team = room.point.shape, room.team(setup.cpus)
    dims = (shape.batch, shape.q_heads, shape.head_dim)
    q = np.random.default_rng(setup.seed).standard_normal(dims, dtype=np.float32)
    facts = {"isa": setup.isa, "schedule": AUTO}
    with ExitStack() as owned:
        programs = []
        for way, make in _WAYS.items():
            caches, out = (
                [owned.enter_context(room.cache(layer)) for layer in range(room.slices)],
                np.zeros_like(q),
            )
            for cache in caches:
                cache.lengths[:] = make(lengths)
            tasks = [
                owned.enter_context(decode_task("decode", each, q, out, team.threads, **facts))
                for each in caches
            ]
            team.run(tasks[0])
            refuse_wrong(caches[0], q, out)
            programs.append(Program(way, team, tuple(tasks), warm=False))
        yield programs


def refuse_wrong(cache: Cache, q: np.ndarray, out: np.ndarray) -> None:
    """`out`: what a kernel has made of q and all tokens that the cache holds."""
    held = cache.lengths
    k, v = cache.rows(0, int(held.max()), cache.library.isas()[0])
    error = float(np.abs(out - attention(q, whole(k, v), held)).max())
    if not error <= tolerance(float(np.abs(v).max()), int(held.max())):
        raise WrongAnswer(
            f"a {cache.layout} {cache.dtype} cache is decoded off by {error:.3g}",
            "run kvbench verify",
        )


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
    (
        f"{_SEQUENCES} sequences, a decode step of one layer from memory; even: as many tokens in"
        " sequences of one length, timed in the same rounds"
    ),
    (
        "skew: how much longer the slowest thread works than the mean; padded: every sequence"
        " computed to the longest one's end"
    ),
)


def _sentence(found: pd.DataFrame) -> str:
    shares = listed(f"{_between(row)}" for _, row in found.iterrows())
    slow = list(found.loc[found["efficiency_high"] < 1, "batch"])
    lost = (
        f"{listed(slow)} {'is' if len(slow) == 1 else 'are'} slower"
        if slow
        else "none is slower beyond the noise"
    )
    waste = found.loc[found["padded_times"].idxmax()]
    return (
        f"Beside an even batch of as many tokens, uneven ones read at {shares}: {lost}. Padded to"
        f" its longest sequence, the worst batch ({waste['batch']}) moves"
        f" {waste['padded_bytes']:.2f} times the bytes and takes {waste['padded_times']:.2f} times"
        " as long."
    )


def _between(row: pd.Series) -> str:
    ends = f"{row['efficiency_low']:.0%} to {row['efficiency_high']:.0%}"
    return f"{row['efficiency']:.0%} ({row['batch']}, {ends})"

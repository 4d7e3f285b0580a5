"""What remains of a cache's place in L3 when a layer's weights are read before each of its slices, as in serving?"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pandas as pd

from kvbench.analysis.launches import held, interval
from kvbench.errors import Refused
from kvbench.lab.experiment import Outcome, Setup
from kvbench.lab.measuring import point, refuse_impossible
from kvbench.model import Machine, Point, Sample
from kvbench.native import Part, Task
from kvbench.plan.needs import SIZED_BY, slice_of, tokens_in
from kvbench.regime import far_bytes, suggestion, windows
from kvbench.report.figures.chart import Panel, chart
from kvbench.report.figures.figure import Figure
from kvbench.report.ruled import Column
from kvbench.suite import model as geometry
from kvbench.suite import stated
from kvbench.units import MIB, counted, gbps, size
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room

_WEIGHTS = (0, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB)
_BYTES = 2  # of a weight, as models are served
_ROUNDS, _LEAST = 17, 5
_SECONDS = 40.0  # that all rounds may take
_TIMED = 6  # decodes of a sample
_SURE = 0.99  # with which intervals hold a median
_ONE, _SOME, _ALL, _MEMORY = "one", "some", "all", "memory"  # which slices are walked


def experiment(setup: Setup, model: str = "qwen3-0.6b", dtype: str = "f32") -> Outcome:
    served = _BYTES * _layer_parameters(model)
    scene = _scene(setup, model, dtype)
    refuse_impossible(setup, scene.point)
    samples = _samples(setup, scene, sorted({*_WEIGHTS, served}))
    found, rounds = _table(samples, scene), samples["round"].nunique()
    notes = _notes(setup, scene, model, served, rounds)
    return Outcome(found, _COLUMNS, _figure(found, model, served), _sentence(found, model, served), notes)


def _layer_parameters(model: str) -> int:
    """Weights of one layer: the projections of attention, in and out, and a gated feed-forward."""
    known = stated(model, "hidden", "intermediate")
    heads = 2 * known.q_heads + 2 * known.kv_heads
    return known.hidden * (heads * known.head_dim + 3 * known.intermediate)


# ---- slices that fit, and slices that do not -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scene:
    """The first `layers` slices of the point fit L3 together, and no private cache holds one. The others, behind them,
    fit none. `far`: bytes that no cache helps with."""

    point: Point
    layers: int
    slice_bytes: int
    far: int

    def rotations(self) -> dict[str, int]:
        """How many slices take turns in each."""
        inside = {_ONE: 1, _SOME: self.layers // 4, _ALL: self.layers}
        far = {_MEMORY: self.point.shape.layers - self.layers}
        return {name: count for name, count in inside.items() if count > 1 or name == _ONE} | far

    def slices(self, rotation: str) -> Sequence[int]:
        """In the order of a walk, which is no shorter than one over all layers that fit."""
        count = self.rotations()[rotation]
        if rotation == _MEMORY:
            return range(self.layers, self.layers + count)
        return [turn % count for turn in range(-(-self.layers // count) * count)]


def _scene(setup: Setup, model: str, dtype: str) -> _Scene:
    low, high = _room(setup.machine, setup.cpus)
    small = point(setup, model, 1, dtype=dtype)
    facts = {name: getattr(small, name) for name in SIZED_BY}
    context = tokens_in(low, True, small.shape.kv_heads, small.shape.head_dim, 1, **facts)
    each = slice_of(point(setup, model, context, dtype=dtype))
    layers = max(1, min(geometry(model).layers, int(high // each)))
    far = far_bytes(setup.machine, setup.cpus)
    whole = point(setup, model, context, dtype=dtype, layers=layers + math.ceil(far / each))
    return _Scene(whole, layers, each, far)


def _room(machine: Machine, cpus: Sequence[int]) -> tuple[float, float]:
    """From the fewest bytes that are too many for the private caches to the most that L3 holds of all threads."""
    if why := suggestion(machine, cpus):
        what, _, hint = why.partition("; ")
        raise Refused(f"no slice lives in L3: {what}", hint or "kvbench machine tells what is known of the caches")
    found, threads = windows(machine, cpus), len(cpus)
    shares = [(window.low / window.threads, window.high / window.threads) for window in found]
    return threads * max(low for low, _ in shares), threads * min(high for _, high in shares)


# ---- measuring -------------------------------------------------------------------------------------------------------


def _samples(setup: Setup, scene: _Scene, weights: Sequence[int]) -> pd.DataFrame:
    """GB/s of the decodes and of the reads before them, by rotation, weights and round."""
    with (
        Ground(setup.library, setup.machine) as ground,
        Room(scene.point, ground) as room,
        Bench(scene.point, room, Answers()) as bench,
    ):
        bench.verify()
        keys = {f"{rotation} {count}": (rotation, count) for count in weights for rotation in scene.rotations()}
        reads = {count: _reads(bench, scene, count) for count in weights}
        programs = [
            Program(name, bench.team, _pairs(bench, reads[count], scene.slices(rotation)), warm=False)
            for name, (rotation, count) in keys.items()
        ]
        passes = {name: 2 * (_untimed(scene, count) + _TIMED) for name, (_, count) in keys.items()}
        moved = bench.own.traffic().compulsory
        rows = []
        taken = rounds(programs, _ROUNDS, 0.0, setup.seed, passes)
        for sample in _in_time(taken):
            rotation, count = keys[sample.program]
            read, decoded = _parted(sample.pass_seconds)
            rates = {"gbps": gbps(moved, decoded), "weights_gbps": gbps(count, read)}
            rows.append({"rotation": rotation, "weights": count, "round": sample.round, **rates})
        bench.verify()
        return pd.DataFrame(rows)


def _in_time(samples: Iterable[Sample]) -> Iterator[Sample]:
    """All of them, or as many rounds as there is time for by what the first has taken."""
    start, count = perf_counter(), _ROUNDS
    for sample in samples:
        if sample.round == 0:
            count = max(_LEAST, int(_SECONDS / (perf_counter() - start)))
        elif sample.round >= count:
            return
        yield sample


def _reads(bench: Bench, scene: _Scene, count: int) -> list[Task]:
    """Reads of each layer's weights. They lie apart, unless so many are gone when they are read again."""
    steps = -(-count // scene.far) or 1
    each = max(count // steps // 64, bench.team.threads) * 64  # at least a line for each thread: passes begin alike
    apart = max(1, min(scene.layers, scene.far // each))
    parts = [Part(bench.far.base + place * each, each) for place in range(apart)]
    return [bench.probe("read", to=part, size=each, steps=steps) for part in parts]


def _pairs(bench: Bench, reads: Sequence[Task], slices: Sequence[int]) -> tuple[Task, ...]:
    """Weights, decode, weights, decode, ..."""
    decodes = bench.own.tasks
    return tuple(task for turn, place in enumerate(slices) for task in (reads[turn % len(reads)], decodes[place]))


def _untimed(scene: _Scene, count: int) -> int:
    """Decodes until the caches hold what this walk leaves there, and nothing older."""
    return min(scene.layers, math.ceil(scene.far / count)) if count else scene.layers


def _parted(seconds: Sequence[float]) -> tuple[float, float]:
    """Seconds of a read, and of the decode behind it: the lower quartile, which stalls do not reach."""
    read, decoded = np.quantile(np.reshape(seconds[-2 * _TIMED :], (_TIMED, 2)), 0.25, axis=0)
    return float(read), float(decoded)


# ---- what follows from it --------------------------------------------------------------------------------------------


def _table(samples: pd.DataFrame, scene: _Scene) -> pd.DataFrame:
    """A row for each rotation and number of bytes between: medians over rounds. `over`: times the rate of slices that
    come from memory with as many bytes between, in the same round."""
    rates = samples.pivot(index="round", columns=["rotation", "weights"], values="gbps")
    reads = samples.groupby(["rotation", "weights"])["weights_gbps"].median()
    rows = []
    for rotation, turns in scene.rotations().items():
        walked = turns * scene.slice_bytes
        for count in sorted(set(samples["weights"])):
            own, memory = rates[rotation, count], rates[_MEMORY, count]
            row = {"rotation": rotation, "slices": f"{counted(turns, 'slice')}, {size(walked)}", "turns": turns}
            row |= {"walked": walked, "weights": count, "mib": f"{count / MIB:.4g}"}
            row |= _spread("gbps", own) | {"weights_gbps": reads[rotation, count] if count else math.nan}
            rows.append(row | (_spread("over", own / memory) if rotation != _MEMORY else {}))
    return pd.DataFrame(rows)


def _spread(name: str, values: pd.Series) -> dict[str, float]:
    low, high = interval(values, _SURE)
    return {name: float(values.median()), f"{name}_low": low, f"{name}_high": high}


# ---- what is said of it ----------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("slices", "K and V in rotation"),
    Column("weights", "weights between", size),
    Column("weights_gbps", "read at GB/s", "{:.3g}".format),
    Column("gbps", "decode GB/s", "{:.3g}".format),
    Column("gbps_low", "from", "{:.3g}".format),
    Column("gbps_high", "to", "{:.3g}".format),
    Column("over", "times memory", "{:.2f}".format),
    Column("over_low", "from", "{:.2f}".format),
    Column("over_high", "to", "{:.2f}".format),
)


def _notes(setup: Setup, scene: _Scene, model: str, served: int, rounds: int) -> tuple[str, ...]:
    memory = scene.rotations()[_MEMORY] * scene.slice_bytes
    shape, threads = scene.point.shape, counted(len(setup.cpus), "thread")
    notes = [
        f"slices of one layer with the heads of {model}: {shape.context} tokens in {scene.point.dtype}, "
        f"{size(scene.slice_bytes)} each, more than private caches hold of it; {counted(scene.layers, 'slice')} fit L3 "
        "together",
        f"between: plain reads by the same {threads}, timed apart; each layer has weights of its own, as far as "
        f"{size(scene.far)} go round; GB/s of the decodes alone: compulsory bytes over time, the lower quartile of "
        f"{_TIMED} in a sample",
        f"{size(served)}: the projections and the feed-forward of one layer of {model}, {_BYTES} bytes for each weight",
        f"times memory: of the rate of slices that come from memory ({size(memory)} in rotation) with as many "
        f"weights between, in the same round; from, to: {held(rounds, _SURE):.1%} intervals over {rounds} rounds",
    ]
    if rounds < _ROUNDS:
        notes.append(f"{rounds} rounds in place of {_ROUNDS}: one takes too long here for more of them")
    doubt = setup.machine.facts.get("l3")
    if doubt is not None and doubt.confidence == "low":
        notes.append(f"the size of L3 is in doubt: {doubt.note or doubt.source}")
    return tuple(notes)


def _figure(found: pd.DataFrame, model: str, served: int) -> Figure:
    label = f"MiB of weights between ({served / MIB:.4g}: a layer of {model})"
    shared = {"x": "mib", "x_label": label, "by": "slices"}
    rate = Panel(y="gbps", y_label="GB/s of the decode alone", low="gbps_low", high="gbps_high", title="Rate", **shared)
    times = {"y": "over", "y_label": "times the rate from memory", "low": "over_low", "high": "over_high"}
    over = Panel(title="Beside slices from memory", levels=((1.0, ""),), **times, **shared)
    about = (
        "Decode of slices that fit L3 and of slices that come from memory, with weights read before each of them. Thin "
        "lines are intervals."
    )
    return chart("interference", "Weights between layers", about, found, (rate, over))


def _sentence(found: pd.DataFrame, model: str, served: int) -> str:
    rows = {(row["rotation"], row["weights"]): row for _, row in found.iterrows()}
    hot, memory = rows[_ONE, 0], rows[_MEMORY, 0]
    if not hot["over_low"] > 1:
        apart = f"slower, beyond noise: {_times(hot)}" if hot["over_high"] < 1 else "no more than noise apart"
        return (
            f"One slice that fits L3 is decoded again and again at {hot['gbps']:.3g} GB/s, slices from memory at "
            f"{memory['gbps']:.3g}: {apart}, so that L3 brings nothing that weights could take away."
        )
    inside = found[found["rotation"] != _MEMORY]
    ends = "; ".join(map(_end, (own for _, own in inside.groupby("turns"))))
    most = rows[inside["rotation"].iloc[-1], served]
    return (
        f"A slice that fits L3 is decoded again and again at {hot['gbps']:.3g} GB/s, slices from memory at "
        f"{memory['gbps']:.3g}; weights read between leave {ends}; the {size(served)} of a layer of {model} leave "
        f"{_turns(most)} at {_times(most)}."
    )


def _end(own: pd.DataFrame) -> str:
    """From how many bytes between on nothing is left, which is: not told from what memory gives."""
    own = own.sort_values("weights")
    left, who = own["over_low"] > 1, _turns(own.iloc[0])
    if not left.any():
        return f"{who} with nothing beyond noise, even where there are none"
    last = own[left].iloc[-1]
    at = f"at {size(last['weights'])} of them" if last["weights"] else "where there are none"
    if left.iloc[-1]:
        return f"{who} with {_times(last)} even {at}, the most that was tried"
    gone = own[own["weights"] > last["weights"]]["weights"].iloc[0]
    return f"{who} with {_times(last)} {at} and with nothing beyond noise from {size(gone)} on"


def _turns(row: pd.Series) -> str:
    return "1 slice" if row["turns"] == 1 else f"{row['turns']} in turn ({size(row['walked'])})"


def _times(row: pd.Series) -> str:
    return f"{row['over']:.2f} times memory's rate ({row['over_low']:.2f}..{row['over_high']:.2f})"

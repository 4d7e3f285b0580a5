"""Facts on a machine: its caches, and, if it was measured, the rates of its reads and decodes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from kvbench.analysis.answers.pairs import QUERIES
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.families import undisturbed, usual
from kvbench.analysis.measured.plateaus import Capacity, corrections
from kvbench.errors import BadRun
from kvbench.machine import describe
from kvbench.machine.placement import place
from kvbench.model import DEFAULTS, OURS, PLAIN, Ceiling, Machine, Probe
from kvbench.model.masks import CHAIN
from kvbench.model.planes import is_pair
from kvbench.model.point import COMPUTE, FLOPS
from kvbench.model.shape import EVEN
from kvbench.model.size import Bound, Decoder
from kvbench.regime import NO_LEVEL, Regime, classify, corrected
from kvbench.results import load
from kvbench.sizing.decoder import streamed_bytes
from kvbench.store.files import read_json, reading
from kvbench.store.names import MACHINE, MANIFEST
from kvbench.store.values import read
from kvbench.units import GB, counted, cpu_text, size

_HINT = "name a run directory, or a file that kvbench machine --json has printed"
_DRAM, _NOTHING = "DRAM", "nothing was measured: name a run with --machine"
_SHAPE = ("group", "head_dim", "context")  # columns to find the nearest point by, in this order
_PROBE, _CEILING = ([field.name for field in fields(kind)] for kind in (Probe, Ceiling))


@dataclass(frozen=True, slots=True)
class KnownMachine:
    """A machine with one thread on each of `cpus`. `reads`: rates of these threads on one kind of
    pages; empty if nothing was measured.
    """

    name: str
    machine: Machine
    cpus: tuple[int, ...]
    reads: tuple[Ceiling, ...] = ()
    gflops: float | None = None  # GFLOP/s of their multiply-adds
    narrow: float | None = None  # GFLOP/s of their products of bytes or bf16
    decodes: pd.DataFrame | None = None  # the points of a run that these threads have decoded
    queries: pd.DataFrame | None = None  # those with several queries, beside the same with one
    peers: pd.DataFrame | None = None  # those that they have decoded in other engines

    def regime(self, footprint: float) -> Regime:
        return classify(self.machine, self.cpus, footprint)

    def best_read(self, level: str) -> Ceiling | None:
        """The fastest read of the level, in any form."""
        own = (ceiling for ceiling in self.reads if ceiling.level == level)
        return max(own, key=lambda each: each.median, default=None)

    def plain_read(self, level: str = _DRAM) -> Ceiling | None:
        """The plain read of memory, or of a cache level."""
        own = (each for each in self.reads if (each.level, each.form) == (level, PLAIN))
        return max(own, key=lambda each: each.median, default=None)

    def decoded(self, decoder: Decoder, count: int) -> Bound | None:
        """Tokens per second at the rate of a measured decode: the fastest of this format, layout
        and group from the level where `count` bytes lie, at the nearest context. None if there is
        no such decode.
        """
        level = self.regime(count).word
        best = (
            None
            if level in NO_LEVEL or not count
            else self._best(decoder, level, ("layout", "group"), ("context",))
        )
        if best is None:
            return None
        rates = (float(best[f"kv_gbps{end}"]) for end in ("", "_low", "_high"))
        tokens, low, high = (decoder.batch * rate * GB / count for rate in rates)
        footprint, gbps = int(best["footprint"]), float(best["gbps"])
        return Bound(count, level, footprint, gbps, tokens, low, high, decode=best["short"])

    def fastest(self, decoder: Decoder) -> pd.Series | None:
        """The fastest decode of this format from memory at the nearest shape, in any layout. If the
        report's answer is among these points, it is that point.
        """
        return self._best(decoder, _DRAM, (), _SHAPE)

    def with_queries(self, decoder: Decoder) -> pd.DataFrame:
        """Decodes of this format from memory that were also timed with several queries, at the
        nearest shape.
        """
        if self.queries is None:
            return pd.DataFrame()
        alike = self.queries["dtype"] == decoder.dtype
        return nearest(self.queries[alike & (self.queries["regime"] == _DRAM)], decoder, _SHAPE)

    def core_rate(self, decoder: Decoder) -> tuple[float, float] | None:
        """GB/s of K, V and scales that one core decodes from a private cache, for the point of
        fastest(); and the ratio of all its bytes, with query and output, to these. At least the
        rate from memory. None if its core speed was not timed.
        """
        best = self.fastest(decoder)
        if best is None or pd.isna(best["core_fraction"]):
            return None
        core = float(best["kv_gbps"] / min(1.0, best["core_fraction"]))
        return core / len(self.cpus), float(best["gbps"] / best["kv_gbps"])

    def _best(
        self, decoder: Decoder, level: str, alike: Sequence[str], near: Sequence[str]
    ) -> pd.Series | None:
        if self.decodes is None:
            return None
        own = self.decodes[
            (self.decodes["dtype"] == decoder.dtype) & (self.decodes["regime"] == level)
        ]
        for column in alike:
            own = own[own[column] == getattr(decoder, column)]
        own = nearest(own, decoder, near)
        if not alike and own["answer"].any():
            own = own[own["answer"]]
        return own.loc[own["gbps"].idxmax()] if len(own) else None

    def bound(self, count: int, sequences: int) -> Bound:
        """Tokens per second at most, by reads, if a step reads `count` bytes and gives each
        sequence a token.
        """
        if not count:
            return Bound(0, "", reason="nothing is read")
        level = self.regime(count).word
        reads = [
            ceiling for ceiling in self.reads if ceiling.level == level and level not in NO_LEVEL
        ]
        if not reads:  # the next smaller footprint is an upper bound: larger reads are slower
            smaller = [ceiling for ceiling in self.reads if ceiling.probe.bytes <= count]
            most = max((ceiling.probe.bytes for ceiling in smaller), default=0)
            reads = [ceiling for ceiling in smaller if ceiling.probe.bytes == most]
        if not reads:
            lacking = (
                f"nothing as small as {size(count)} was read by {counted(len(self.cpus), 'thread')}"
            )
            return Bound(count, level, reason=lacking if self.reads else _NOTHING)
        best = max(reads, key=lambda ceiling: ceiling.median)
        rates = (best.median, best.low, best.high)
        tokens, low, high = (sequences * rate * GB / count for rate in rates)
        return Bound(count, level, best.probe.bytes, best.median, tokens, low, high)


def nearest(points: pd.DataFrame, decoder: Decoder, near: Sequence[str]) -> pd.DataFrame:
    """The points nearest in shape: first in the first column, then in the next, and so on."""
    for column in near if len(points) else ():
        far = (points[column] / getattr(decoder, column)).map(lambda ratio: abs(math.log(ratio)))
        points = points[far == far.min()]
    return points


def here() -> KnownMachine:
    """This machine, without measured rates."""
    machine = describe()
    return KnownMachine("this machine", machine, place(machine, None, "all"))


def known(path: Path) -> KnownMachine:
    """Load a run directory, or a file of kvbench machine --json. Of several numbers of threads that
    read from DRAM, the largest is used.
    """
    file = path / MACHINE if path.is_dir() else path
    try:
        with reading(file):
            found = _known(str(path), read(dict[str, Any], read_json(file, follow=file is path)))
        return _of_run(found, path) if (path / MANIFEST).is_file() else found
    except BadRun as error:
        raise BadRun(error.args[0], _HINT) from None


def _of_run(found: KnownMachine, path: Path) -> KnownMachine:
    """The machine with the decodes and plain reads of memory that the run's report shows."""
    run = load(path).findings()
    cpus = cpu_text(found.cpus)
    memory, reads = run.answers.reads.memory.figure, found.reads
    if memory and run.answers.workload.threads == len(found.cpus):
        reads = tuple(
            replace(each, median=memory.value, low=memory.low, high=memory.high)
            if (each.level, each.form) == (_DRAM, PLAIN)
            else each
            for each in reads
        )
    decodes, peers = measured_decodes(run, cpus), _measured_peers(run, cpus)
    queries = _measured_queries(run, decodes)
    return replace(found, decodes=decodes, queries=queries, peers=peers, reads=reads)


def _decoded(run: Findings, cpus: str) -> pd.DataFrame:
    """Decodes by these threads: sequences of one length, without other reads between passes."""
    points = run.points[run.points["gbps"].notna() & (run.points["cpus"] == cpus)]
    points = points[(points["op"] == "decode") & (points["lengths"] == EVEN)]
    points = undisturbed(points)
    return points.loc[[*usual(points).index, *_pairs(points).index]]


def _pairs(points: pd.DataFrame) -> pd.DataFrame:
    """Decodes with a pair of dtypes that are usual in all other ways."""
    pairs = points[points["dtype"].map(is_pair).astype(bool)]
    return pairs.loc[usual(pairs.assign(dtype=DEFAULTS["dtype"])).index]


def _measured_queries(run: Findings, decodes: pd.DataFrame) -> pd.DataFrame:
    """Decodes compared with the same decode with several queries: a row for each number of queries.
    `times`: how many times as long they take, in the same rounds. With only one launch, the
    interval is 1 to the number of queries.
    """
    asked = run.contrasts[run.contrasts["factor"] == QUERIES]
    counts = run.points.set_index("name")[["q_len", "mask"]]
    found = asked[["base_name"]].join(counts, asked["other_name"])
    for end, other in (("", ""), ("_low", "_high"), ("_high", "_low")):
        found[f"times{end}"] = 1 / asked[f"ratio{other}"]
    several = asked["launches"] > 1
    found["times_low"] = found["times_low"].where(several, 1.0)
    found["times_high"] = found["times_high"].where(several, found["q_len"].astype(float))
    ones = decodes.drop(columns=["q_len", "mask"])
    return found[found["mask"] == CHAIN].merge(ones, left_on="base_name", right_on="name")


def _measured_peers(run: Findings, cpus: str) -> pd.DataFrame:
    """Other engines' decodes of one whole sequence from memory."""
    points = _decoded(run, cpus)
    whole = (points["batch"] == 1) & (points["window"] == 0) & (points["regime"] == _DRAM)
    return points[whole & (points["engine"] != OURS)]


def measured_decodes(run: Findings, cpus: str) -> pd.DataFrame:
    """Decodes by our kernels. Points of the report's answers have the rates of the answers.
    `answer`: the point is one of these. `kv_gbps`: as gbps, for K, V and scales alone.
    """
    answers = {row.point: row for row in run.answers.decodes.rows}
    points = _decoded(run, cpus)
    points = points[points["engine"] == OURS]
    points = points.assign(answer=points["name"].isin(answers))
    shares = [_kv_bytes(row) / row["bytes_compulsory"] for row in points.to_dict("records")]
    for end, at in (("", "value"), ("_low", "low"), ("_high", "high")):
        own = {n: getattr(row.rate.figure, at) for n, row in answers.items() if row.rate.figure}
        rates = points["name"].map(own).astype(float).fillna(points[f"gbps{end}"])
        points = points.assign(**{f"gbps{end}": rates, f"kv_gbps{end}": rates * shares})
    cores = {n: row.core.figure.value for n, row in answers.items() if row.core.figure}
    shares = points["name"].map(cores).astype(float)
    return points.assign(core_fraction=shares.where(points["answer"], points["core_fraction"]))


def _kv_bytes(point: Mapping[str, Any]) -> int:
    """Bytes of K, V and scales that a pass reads."""
    facts = {field.name: point[field.name] for field in fields(Decoder) if field.name in point}
    return streamed_bytes(Decoder(**facts | {"model": "", "layers": 1, "capacity": None}))


def _known(name: str, facts: Mapping[str, Any]) -> KnownMachine:
    """The machine that a parsed file describes. Raises ValueError if it describes none."""
    machine = read(Machine, facts.get("topology"))
    lines = read(tuple[dict[str, Any], ...], facts.get("ceilings", ()))
    reads = [_ceiling(line) for line in lines if line.get("op") == "read"]
    machine = corrected(
        machine, corrections(read(tuple[Capacity, ...], facts.get("capacities", ())))
    )
    far = [ceiling for ceiling in reads if ceiling.level == _DRAM]
    if not far:
        return KnownMachine(name, machine, _threads(machine))
    most = max(far, key=lambda ceiling: (len(ceiling.probe.cpus), ceiling.median))
    own = [_ceiling(line) for line in lines if line.get("op") in COMPUTE]
    own = [each for each in own if each.probe.cpus == most.probe.cpus]
    gflops, narrow = (
        max((each.median for each in own if (each.probe.op == FLOPS) is whole), default=None)
        for whole in (True, False)
    )
    near = tuple(each for each in reads if _alike(each) == _alike(most))
    return KnownMachine(name, machine, most.probe.cpus, near, gflops, narrow)


def _ceiling(line: dict[str, Any]) -> Ceiling:
    """Read a ceiling; older files lack some fields."""
    probe, own = (
        {name: line[name] for name in names if name in line} for names in (_PROBE, _CEILING)
    )
    found = read(Ceiling, own | {"probe": probe})
    if not found.probe.cpus or not 0 < found.low <= found.median <= found.high:
        raise ValueError("ceilings: an entry has no CPUs, or no rate")
    return found


def _alike(ceiling: Ceiling) -> tuple[Any, ...]:
    probe = ceiling.probe
    return ceiling.run, probe.cpus, probe.isa, probe.pages


def _threads(machine: Machine) -> tuple[int, ...]:
    try:
        return place(machine, None, "all")
    except (KeyError, ZeroDivisionError):
        raise ValueError("topology: facts or CPUs are missing") from None

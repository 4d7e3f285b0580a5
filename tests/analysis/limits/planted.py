"""Made-up runs on hosts whose truth is known: verdicts must find what is planted here.

A host serves a walk from its caches by a smooth law, cores take their own time, launches differ,
and neighbours disturb. Only the content of a run directory is passed on: records, and a machine as
it declares itself. Nothing here knows how these are judged, so that a verdict is compared with the
truth and not with itself.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from kvbench.model import Machine, Point, Probe, Record, Sample, Shape, Traffic
from tests import made_run
from tests.made_run import DECODE

KIB, MIB, GIGA = 1 << 10, 1 << 20, 10**9
RUN, ROUNDS, AHEAD, GRAIN = "planted", 3, 2048, 6 * 64
START = 3e-6  # seconds until all threads walk, in each pass


@dataclass(frozen=True, slots=True)
class Host:
    """The truth.

    Rates are GB/s of one thread from each level alone; `most`: of all threads together. serves:
    bytes of L3 that the threads really get, if not what it declares. core: the rate that a decode's
    own arithmetic allows a thread, by dtype. walk: share of a level's rate that the decode's order
    of addresses gets, relative to a plain read. noise: of a launch, as the standard deviation of
    the logarithm of a rate. neighbours, luck: how often, and how many times slower: neighbours slow
    all programs of a visit; luck slows the slices of a launch, in all programs.
    """

    threads: int = 4
    l1: int = 32 * KIB
    l2: int = MIB
    l3: int = 32 * MIB
    serves: int | None = None
    declared: tuple[int, ...] = (1, 2, 3)
    each: tuple[float, ...] = (90.0, 45.0, 22.0, 9.0)  # L1, L2, L3, DRAM
    most: tuple[float, ...] = (math.inf, math.inf, 80.0, 25.0)
    core: dict[str, float] = field(default_factory=lambda: {"f32": 40.0, "i8": 12.0})
    walk: float = 1.0
    noise: float = 0.02
    neighbours: tuple[float, float] = (0.0, 1.0)
    luck: tuple[float, float] = (0.0, 1.0)

    def read(self, footprint: float) -> float:
        """GB/s of all threads: bytes that a level holds come from it, the rest from the next
        level.
        """
        share = footprint / self.threads
        holds = [
            _held(share, self.l1),
            _held(share, self.l2),
            _held(footprint, self.serves or self.l3),
            1.0,
        ]
        found, time = 0.0, 0.0
        for held, each, most in zip(holds, self.each, self.most, strict=True):
            time += max(0.0, held - found) / _saturated(self.threads * each, most)
            found = max(found, held)
        return 1 / time

    def decode(self, dtype: str, footprint: float) -> float:
        """GB/s: memory and core work side by side, and the slower one dominates."""
        return _saturated(self.walk * self.read(footprint), self.threads * self.core[dtype])


def _held(footprint: float, capacity: float) -> float:
    """The share of a cyclic walk that a cache serves: nearly all of a footprint that fits, nearly
    nothing of one that does not.
    """
    return 1 / (1 + (footprint / capacity) ** 8)


def _saturated(rate: float, most: float) -> float:
    return (rate**-6 + most**-6) ** (-1 / 6)


def machine(host: Host) -> Machine:
    found = made_run.machine(host.threads, l1=host.l1, l2=host.l2, l3=host.l3)
    return replace(
        found, caches=tuple(cache for cache in found.caches if cache.level in host.declared)
    )


# ---- what is measured ----------------------------------------------------------------------------


def point(host: Host, footprint: float, dtype: str = "f32", hot: bool = True) -> Point:
    """A decode of about this many bytes: one slice if hot, otherwise several in rotation."""
    kv_heads, head_dim, layers = 8, 128, 1 if hot else 16
    row = head_dim * {"f32": 4, "i8": 1}[dtype]
    context = max(1, round(footprint / layers / (2 * kv_heads * row)))
    shape = Shape(1, kv_heads, kv_heads, head_dim, context, context, 0, layers)
    cpus, residency = tuple(range(host.threads)), "hot" if hot else "rotate"
    return replace(DECODE, dtype=dtype, shape=shape, cpus=cpus, pages="base", residency=residency)


def traffic(of: Point) -> Traffic:
    """What a pass over one slice moves."""
    shape, scaled = of.shape, of.dtype == "i8"
    rows = 2 * shape.kv_heads * shape.context
    kv, scales = rows * shape.head_dim * (1 if scaled else 4), rows * 4 * scaled
    ends, flops = 2 * shape.q_heads * shape.head_dim * 4, 2 * rows * shape.head_dim * shape.group
    moved = kv + scales + ends
    return Traffic(
        flops,
        moved,
        bytes_issued=moved,
        bytes_line=moved,
        bytes_kv=kv,
        bytes_scales=scales,
        bytes_table=0,
        ai=flops / moved,
    )


def walked(of: Point) -> float:
    return of.shape.layers * traffic(of).bytes_line


def probes(host: Host, points: list[Point]) -> list[Probe]:
    """Reads near each footprint and far from every cache, with and without software prefetch; FMA
    peak and clock.
    """
    far = max(256 * MIB, 4 * host.l3)
    # larger ones are all alike
    known = 4 * {3: host.l3, 2: host.threads * host.l2}.get(max(host.declared, default=0), 0)
    sizes = {
        2.0 ** (round(math.log2(walked(of)) * 4) / 4) for of in points if walked(of) < known
    } | {far}
    grain, cpus = GRAIN * host.threads, points[0].cpus
    reads = [
        Probe(
            "read",
            "scalar",
            cpus,
            "base",
            int((size if size < far else size + grain - 1) // grain) * grain,
        )
        for size in sorted(sizes)
    ]
    return [
        *reads,
        Probe("flops", "scalar", cpus, "base", 0),
        Probe("clock", "scalar", cpus, "base", 0),
    ]


# ---- measuring it --------------------------------------------------------------------------------


def records(host: Host, points: list[Point], launches: int = 10, seed: int = 1) -> list[Record]:
    """A run: every launch visits all points and probes in its own random order."""
    rng = np.random.default_rng(seed)
    every, found = [*points, *probes(host, points)], []
    for launch in range(launches):
        for place in rng.permutation(len(every)):
            found.append(_visit(host, every[place], launch, rng))
    return found


def _visit(host: Host, of: Point | Probe, launch: int, rng: np.random.Generator) -> Record:
    """Neighbours and a launch's noise slow a whole visit, luck slows walks over slices, and each
    sample has a little noise.
    """
    pace = math.exp(rng.normal(0, host.noise)) / (
        host.neighbours[1] if rng.random() < host.neighbours[0] else 1.0
    )
    placed = 1 / host.luck[1] if rng.random() < host.luck[0] else 1.0
    rates = _probed(host, of) if isinstance(of, Probe) else _decoded(host, of, placed)
    samples, moved = [], {}
    for name, (rate, counted) in rates.items():
        moved[name] = counted
        layers = 1 if isinstance(of, Probe) else of.shape.layers
        work = counted.bytes_compulsory or counted.flops or GIGA
        for number in range(ROUNDS):
            passes = layers * max(1, round(0.03 * rate * GIGA / (work * layers)))
            each = work / (rate * pace * math.exp(rng.normal(0, 0.005)) * GIGA) + START
            samples.append(
                Sample(name, number, passes, each * passes, (), abs(rng.normal(0, 0.01)), 0, 0)
            )
    facts = (
        {}
        if isinstance(of, Probe)
        else {"slices": of.shape.layers, "slice_bytes": int(moved["point"].bytes_line)}
        | {"footprint": float(walked(of))}
    )
    facts |= {"steps": GIGA} if of.op == "clock" else {}
    return Record(launch, of, tuple(samples), moved, {}, run=RUN, **facts)


def _probed(host: Host, probe: Probe) -> dict[str, tuple[float, Traffic]]:
    """GFLOP/s and GHz are treated as GB/s here."""
    if probe.op == "flops":
        return {"point": (30.0 * host.threads, Traffic(1e8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))}
    if probe.op == "clock":
        return {"point": (3.0, Traffic(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))}
    count = float(probe.bytes)
    rate, moved = host.read(count), Traffic(0.0, count, count, count, 0.0, 0.0, 0.0, 0.0)
    return {"point": (rate, moved), "ahead": (0.97 * rate, moved)}


def _decoded(host: Host, of: Point, placed: float) -> dict[str, tuple[float, Traffic]]:
    moved = traffic(of)
    rows = replace(moved, flops=0.0, ai=0.0, bytes_compulsory=moved.bytes_kv + moved.bytes_scales)
    unlucky = replace(host, walk=host.walk * placed)
    twin = unlucky.walk * host.read(walked(of))
    far = max(256 * MIB, 4 * host.l3)
    read = Traffic(0.0, far, far, far, 0.0, 0.0, 0.0, 0.0)
    near = {} if of.residency != "hot" else {
        "slice": (host.read(walked(of)), replace(read, bytes_compulsory=walked(of))),
        "memory": (host.read(far), read),
        "rotated": (unlucky.decode(of.dtype, far), moved),
    }  # fmt: skip
    return near | {
        "point": (unlucky.decode(of.dtype, walked(of)), moved),
        "twin": (twin, rows),
        "twin_ahead": (twin * 0.98, rows),
        "core": (host.threads * host.core[of.dtype], moved),
    }


# ---- what is planted -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plant:
    """A host, the footprints and the dtype of its points, and the true word for each. `allowed`:
    other honest words if noise may hide the truth. `never`: the opposite of the truth.
    """

    host: Host
    footprints: tuple[float, ...]
    word: str
    dtype: str = "f32"
    allowed: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    @property
    def points(self) -> list[Point]:
        """Hot points with these footprints, and two rotating points that exceed the caches."""
        hot = [point(self.host, footprint, self.dtype) for footprint in self.footprints]
        return [
            *hot,
            *(point(self.host, far, self.dtype, hot=False) for far in (400 * MIB, 600 * MIB)),
        ]

    def records(self, seed: int, launches: int = 10) -> list[Record]:
        return records(self.host, self.points, launches, seed)

    def held(self) -> Iterator[Point]:
        yield from self.points[: len(self.footprints)]


_INSIDE = (10 * MIB, 14 * MIB, 18 * MIB)
_QUIET, _NEIGHBOURS, _DOUBLE = (
    Host(),
    Host(neighbours=(0.2, 1.4), noise=0.05),
    Host(noise=math.log(2) / 2),
)
# this order of addresses gets a ninth of any level's rate, so L3 looks slower than DRAM
_BAD_WALK = {"walk": 0.11}
_SLOW_CORE = {"core": {"f32": 40.0, "i8": 4.0}}

PLANTS = {
    "confirmed": Plant(_QUIET, _INSIDE, "confirmed", never=("refuted",)),
    "confirmed beside neighbours": Plant(
        _NEIGHBOURS, _INSIDE, "confirmed", allowed=("unstable",), never=("refuted",)
    ),
    "confirmed, 2x noise": Plant(
        _DOUBLE, _INSIDE, "confirmed", allowed=("unstable",), never=("refuted",)
    ),
    "refuted": Plant(replace(_QUIET, **_BAD_WALK), _INSIDE, "refuted", never=("confirmed",)),
    "core-bound": Plant(
        replace(_QUIET, **_SLOW_CORE), _INSIDE, "core-bound", "i8", never=("confirmed", "refuted")
    ),
    "private cache": Plant(
        _QUIET, (MIB, 2 * MIB, 3 * MIB), "private-cache", never=("confirmed", "refuted")
    ),
    "lying L3": Plant(
        replace(_QUIET, serves=6 * MIB),
        (14 * MIB, 18 * MIB, 21 * MIB),
        "not testable",
        never=("confirmed", "refuted"),
    ),
    "unstable": Plant(
        replace(_QUIET, luck=(0.5, 4.0)),
        _INSIDE,
        "unstable",
        allowed=("confirmed",),
        never=("refuted",),
    ),
    "private caches hold more than L3": Plant(
        Host(threads=8, l2=2 * MIB, l3=16 * MIB),
        (20 * MIB, 24 * MIB),
        "",
        never=("confirmed", "refuted"),
    ),
    "L3 unknown": Plant(Host(declared=(1, 2)), _INSIDE, "", never=("confirmed", "refuted")),
    "no cache known": Plant(
        Host(declared=()), _INSIDE, "not testable", never=("confirmed", "refuted")
    ),
}

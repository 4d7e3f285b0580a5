"""Records of points with a chase, with planted latencies and rates."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from kvbench.model import Sample
from kvbench.model.chases import LOADS, OWN, SHARES, Chase, loaded
from tests.made_run import DECODE, MIB, traffic, visit

CHASED = replace(DECODE, cpus=(0, 1, 2), chase="node")
CHASE = Chase(3, 256 * MIB, 0, 4096)
ALONE = 40.0  # GB/s of the point without a chase
TAIL = 1.5  # 95th percentile of a step's latency, as a multiple of the median


def line(ns, each):
    """Latency beside a load: `ns`, plus `each` for every GB/s of load and chase together. The chase
    moves 64 / latency.
    """

    def at(load):
        flat = ns + each * load
        return (flat + math.sqrt(flat * flat + 4 * each * 64)) / 2

    return at


STEEP, FLAT = line(100.0, 3.0), line(150.0, 0.0)


@dataclass
class Host:
    """The truth. `latency`: by load, ns at a given GB/s. `most`: GB/s that it moves without waits.
    `drift`: of the idle latency within a round.
    """

    latency: dict = field(default_factory=lambda: dict.fromkeys(LOADS, STEEP))
    most: dict = field(default_factory=lambda: {"read": 40.0, "copy": 36.0, OWN: 38.0})
    idle: float = STEEP(0.0)
    spin: float = 105.0
    drift: float = 1.0

    def programs(self, ns, own):
        """For each program: ns per load of the chase, and GB/s of the load. `ns`, `own`: factors of
        this round for latency and for the point's rate.
        """
        ends = {"idle": self.idle, "spin": self.spin}
        ends |= {f"{name}_after": self.drift * each for name, each in ends.items()}
        found = {name: (ns * each, 0.0) for name, each in ends.items()}
        for load in LOADS:
            for share in SHARES:
                moved = self.most[load] * share / 100
                faster = own if load == OWN else 1.0
                found[loaded(load, share)] = ns * self.latency[load](moved), faster * moved
        return found


def records(host=None, launches=10, rounds=3, point=CHASED, ns=None, own=None, **facts):
    """Records with planted launches. `ns`, `own`: for each launch, the factors of latency and of
    the point's rate.
    """
    ns, own = (np.ones(launches) if each is None else each for each in (ns, own))
    return [
        one(host or Host(), launch, rounds, point, float(ns[launch]), float(own[launch]), **facts)
        for launch in range(launches)
    ]


def one(host, launch, rounds, point, ns=1.0, own=1.0, **facts):
    rates = {"point": [ALONE] * rounds, "twin": [41.0] * rounds, "memory": [42.0] * rounds}
    found = visit(launch, rates | {"core": [80.0] * rounds}, point, flops=1e9)
    programs = host.programs(ns, own)
    taken = [
        _sample(name, number, *each) for name, each in programs.items() for number in range(rounds)
    ]
    return replace(
        found,
        samples=(*found.samples, *taken),
        traffic=found.traffic | dict.fromkeys(programs, traffic(0.0)),
        chase=CHASE,
        **facts,
    )


def _sample(name, number, ns, load):
    seconds = ns * 1e-9
    steps = (seconds, TAIL * seconds)
    whole = seconds * CHASE.loads * 50
    return Sample(name, number, 50, whole, (), 0.0, 0, 0, load=load, latency=steps)


def changed(found, program, **facts):
    """The same records, with other values in one program's samples."""

    def own(sample):
        return replace(sample, **facts) if sample.program == program else sample

    return [replace(each, samples=tuple(map(own, each.samples))) for each in found]


def without(record, program, number=None):
    """The same records, without the samples of a program, in one round or in all."""
    kept = (s for s in record.samples if s.program != program or number not in (None, s.round))
    return replace(record, samples=tuple(kept))

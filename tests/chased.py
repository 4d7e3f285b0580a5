"""Made-up visits of points with a chase. A load takes 100 ns, and 3 ns more for each GB/s that
others move.
"""

from dataclasses import replace

from kvbench.model import Sample
from kvbench.model.chases import AFTER, IDLE, LOADS, SHARES, SPIN, Chase, loaded
from tests.made_run import MIB, traffic, visit

IDLE_NS, EACH_NS = 100.0, 3.0
MOST = {"read": 20.0, "copy": 10.0, "point": 15.0}  # GB/s without waits, beside a chase
ALONE = 16.0  # GB/s of the point without a chase
CHASE = Chase(cpu=1, bytes=512 * MIB, huge_bytes=256 * MIB, loads=4096)


def record(launch, point, rounds=2):
    made = visit(launch, {"point": [ALONE] * rounds, "twin": [18.0] * rounds}, point)
    rates = dict.fromkeys((IDLE, SPIN, f"{IDLE}_{AFTER}", f"{SPIN}_{AFTER}"), 0.0)
    rates |= {loaded(load, share): MOST[load] * share / 100 for load in LOADS for share in SHARES}
    samples = [
        _sample(name, number, rate) for number in range(rounds) for name, rate in rates.items()
    ]
    moved = made.traffic | {name: traffic(0.0) for name in rates}
    return replace(made, samples=(*made.samples, *samples), traffic=moved, chase=CHASE)


def _sample(name, number, rate):
    seconds = 1e-9 * (IDLE_NS + EACH_NS * rate)
    latency = seconds, 1.5 * seconds
    return Sample(name, number, 50, 50 * 4096 * seconds, (), 0.0, 0, 0, load=rate, latency=latency)

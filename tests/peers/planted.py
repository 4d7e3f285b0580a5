"""Engines with one planted fault, and whether profile --engine finds it on this machine.

    python -m tests.peers.planted [--samples 24]

even    no fault: nothing but what the others have, too
sleeps  sleeps for 5 ms at the start of each call: the start must be the largest part
twice   reads K and V twice, the second time those of another layer: the rest must be the largest
single  uses one thread, whatever it is given: threads must be the largest

Run it on an idle machine of two CPUs or more. Exit code 1: a fault was not found.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from kvbench.peers.interface import Peer, stated
from tests.peers.outside import register

HERE = Path(__file__).parent
SLEEP = 0.005  # seconds
# Sums may be made in any order. With -ffast-math gcc would link code that makes the whole process
# take small numbers for zero.
ANY_ORDER = ["-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"]
FLAGS = ["-O3", "-march=native", *ANY_ORDER, "-fPIC", "-shared", "-pthread"]
LARGEST = {"sleeps": "start", "twice": "rest", "single": "threads"}
_MOST = 8  # threads: each takes whole KV heads
_SIZES = ["--q-heads", "8", "--kv-heads", "8", "--head-dim", "128", "--context", "16384"]


class Even(Peer):
    formats = stated("f32 1e-4")
    function = "planted_step"
    mode = 0

    def setup(self, shape, k, v):
        self._lib = ctypes.CDLL(self.path)
        self._lib.planted_begin.restype = ctypes.c_void_p
        self._dims = shape.q_heads, shape.head_dim
        sizes = shape.q_heads, shape.kv_heads, shape.context, shape.head_dim
        self._engine = self._lib.planted_begin(
            self.mode, ctypes.c_long(int(SLEEP * 1e9)), self.threads, *sizes
        )
        self._layers = [
            [np.ascontiguousarray(side[layer], np.float32) for side in (k, v)]
            for layer in range(len(k))
        ]
        self._out = np.empty(self._dims, np.float32)

    def ask(self, q):
        self._q = np.ascontiguousarray(q, np.float32)

    def step(self, layer):
        count = len(self._layers)
        # the one that was walked longest ago but for those that come next
        again = self._layers[(layer + count // 2) % count]
        arrays = self._q[layer], *self._layers[layer], *again, self._out
        self._lib.planted_step(
            ctypes.c_void_p(self._engine),
            *(ctypes.c_void_p(array.ctypes.data) for array in arrays),
        )

    def output(self, layer):
        return self._out

    def flags(self):
        return f"planted: {type(self).__name__.lower()}"


class Sleeps(Even):
    mode = 1


class Twice(Even):
    mode = 2


class Single(Even):
    mode = 3


KINDS = (Even, Sleeps, Twice, Single)


def build(folder):
    """The library."""
    to = Path(folder) / "planted.so"
    subprocess.run(["cc", *FLAGS, HERE / "planted.c", "-o", to, "-lm"], check=True)
    return to


def profiled(folder, library, engine, *more):
    """What profile --engine says of one of them."""
    path = os.pathsep.join((str(folder), str(HERE.parents[1])))
    command = [sys.executable, "-m", "kvbench.cli", "profile", "decode", "--json", "--dtype", "f32"]
    done = subprocess.run(
        [*command, "--engine", f"{engine}={library}", *more],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def _row(engine, facts):
    shares = [
        f"{own['share']['value']:6.1%} ({own['share']['low']:.1%} to {own['share']['high']:.1%})"
        for own in facts["parts"]
        if own["share"]
    ]
    return f"{engine:<7} {facts['largest'] or '-':<8} " + "  ".join(
        f"{each:<25}" for each in shares
    )


def _found(engine, facts):
    """The planted part is the largest; of what sleeps it is as long as that, within the sum of all
    intervals.
    """
    if engine not in LARGEST:
        return True
    shares = {own["part"]: own["share"] for own in facts["parts"]}
    wide = sum(share["high"] - share["low"] for share in shares.values())
    off = abs(shares["start"]["value"] - SLEEP / facts["seconds"])
    return facts["largest"] == LARGEST[engine] and (engine != "sleeps" or off <= wide)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", default="24")
    samples = parser.parse_args(arguments).samples
    threads = min(_MOST, len(os.sched_getaffinity(0)))
    more = [*_SIZES, "--threads", str(threads), "--samples", samples]
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        names = [kind.__name__ for kind in KINDS]
        points = [f"{name.lower()} = {__spec__.name}:{name}" for name in names]
        register(folder, "planted", points)
        print(f"{'engine':<7} {'largest':<8} read, start, core, threads, rest: of a pass")
        for engine in (kind.__name__.lower() for kind in KINDS):
            facts = profiled(folder, library, engine, *more)
            print(_row(engine, facts), flush=True)
            missed += [] if _found(engine, facts) else [engine]
    print(f"not found: {', '.join(missed)}" if missed else "all that was planted is found")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

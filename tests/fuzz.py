"""Random cases for every tier that runs here: `python -m tests.fuzz --cases 20000`.

A failing case prints the command that repeats it. A case that kills its process (a guard page) is a failure too.
"""

import argparse
import multiprocessing as mp
import os
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path

from tests import casefile, cases, trial
from tests.raw import Raw

SHOWN = 20


def check_isas(raw: Raw, isa: str | None) -> list[str]:
    tiers = raw.tiers()
    if isa is not None and isa not in tiers:
        sys.exit(f"--isa {isa} does not run here; these do: {', '.join(tiers)}")
    return [isa] if isa else tiers


def run_one(bench: trial.Bench, seed: int, index: int, isas: list[str]) -> list[str]:
    try:
        return trial.failures(bench, cases.make(bench.words, seed, index), isas)
    except Exception as error:  # any surprise of one case is that case's failure
        return [f"{type(error).__name__}: {error}"]


def work(pipe, at, seed: int, indices: range, isas: list[str]) -> None:
    bench = trial.Bench()
    for index in indices:
        at.value = index
        found = run_one(bench, seed, index, isas)
        if found:
            pipe.send((index, found))
    pipe.send(None)
    bench.close()


class Worker:
    """A process over its share of the cases, started again behind a case that killed it."""

    def __init__(self, context, seed: int, indices: range, isas: list[str]):
        self.context, self.seed, self.isas = context, seed, isas
        self.start(indices)

    def start(self, indices: range) -> None:
        self.indices, self.at, self.done = indices, self.context.Value("q", indices[0], lock=False), False
        self.pipe, theirs = self.context.Pipe(duplex=False)
        self.process = self.context.Process(target=work, args=(theirs, self.at, self.seed, indices, self.isas))
        self.process.start()
        theirs.close()

    def receive(self) -> tuple[int, list[str]] | None:
        try:
            found = self.pipe.recv()
        except EOFError:
            return self.died()
        self.done = found is None
        return found

    def died(self) -> tuple[int, list[str]]:
        self.process.join()
        index, step = self.at.value, self.indices.step
        rest = range(index + step, self.indices.stop, step)
        code = self.process.exitcode
        self.done = not rest
        if rest:
            self.start(rest)
        return index, [f"the process died (exit code {code})"]


def run(seed: int, count: int, isas: list[str], jobs: int) -> list[int]:
    """Indices of the cases that failed."""
    context, begin, failed = mp.get_context("spawn"), time.monotonic(), []
    jobs = min(jobs, count)
    workers = [Worker(context, seed, range(job, count, jobs), isas) for job in range(jobs)]
    while busy := {worker.pipe: worker for worker in workers if not worker.done}:
        for pipe in wait(list(busy)):
            found = busy[pipe].receive()
            if found:
                failed.append(found[0])
                if len(failed) <= SHOWN:
                    report(seed, *found)
    for worker in workers:
        worker.process.join()
    seconds = time.monotonic() - begin
    print(f"{count - len(failed)} passed, {len(failed)} failed: tiers {' '.join(isas)}, seed {seed}, {seconds:.0f} s")
    return failed


def report(seed: int, index: int, lines: list[str]) -> None:
    print(f"FAILED python -m tests.fuzz --case {seed}:{index}", flush=True)
    for line in lines[:4]:
        print(f"  {line}", flush=True)


def run_case(name: str, isas: list[str]) -> bool:
    seed, index = map(int, name.split(":"))
    bench = trial.Bench()
    case = cases.make(bench.words, seed, index)
    print(case)
    found = run_one(bench, seed, index, isas)
    report(seed, index, found) if found else print("passed")
    return not found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isa", help="one tier instead of all that run here")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--case", metavar="SEED:INDEX", help="repeat one case")
    parser.add_argument("--write", metavar="DIR", type=Path, help="write the cases for the C checker; run nothing")
    options = parser.parse_args()
    raw = Raw()
    if options.write:
        print(casefile.write(raw, options.write, options.seed, options.cases))
        return 0
    isas = check_isas(raw, options.isa)
    if options.case:
        return 0 if run_case(options.case, isas) else 1
    return 1 if run(options.seed, options.cases, isas, options.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())

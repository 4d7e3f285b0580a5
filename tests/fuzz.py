"""Random cases for every tier that runs here: `python -m tests.fuzz --cases 20000`.

A failing case prints the command that repeats it. If a case kills its process (at a guard page),
all cases that it may have been are named.
"""

import argparse
import multiprocessing as mp
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from pathlib import Path

from tests import casefile, cases, trial
from tests.raw import Raw

SHOWN, CHUNK = 20, 16


def check_isas(raw: Raw, isa: str | None) -> list[str]:
    tiers = raw.tiers()
    if isa is not None and isa not in tiers:
        sys.exit(f"--isa {isa} does not run here; these do: {', '.join(tiers)}")
    return [isa] if isa else tiers


bench = cache(trial.Bench)  # of this process


def run_one(seed: int, isas: list[str], index: int) -> list[str]:
    try:
        return trial.failures(bench(), cases.make(bench().words, seed, index), isas)
    except Exception as error:  # any exception in a case is a failure of that case
        return [f"{type(error).__name__}: {error}"]


def run(seed: int, count: int, isas: list[str], jobs: int) -> list[int]:
    """The indices of the cases that failed."""
    begin, failed, done = time.monotonic(), [], 0
    with ProcessPoolExecutor(min(jobs, count), mp.get_context("spawn")) as pool:
        try:
            for index, found in enumerate(
                pool.map(partial(run_one, seed, isas), range(count), chunksize=CHUNK)
            ):
                done += 1
                if found:
                    failed.append(index)
                    if len(failed) <= SHOWN:
                        report(seed, index, found)
        except BrokenProcessPool:
            failed.append(done)
            report(seed, done, [f"a process died, in this case or one of the next {CHUNK * jobs}"])
    seconds = time.monotonic() - begin
    print(
        f"{done - len(failed)} passed, {len(failed)} failed: tiers {' '.join(isas)}, seed {seed},"
        f" {seconds:.0f} s"
    )
    return failed


def report(seed: int, index: int, lines: list[str]) -> None:
    print(f"FAILED python -m tests.fuzz --case {seed}:{index}", flush=True)
    for line in lines[:4]:
        print(f"  {line}", flush=True)


def run_case(name: str, isas: list[str]) -> bool:
    seed, index = map(int, name.split(":"))
    print(cases.make(bench().words, seed, index))
    found = run_one(seed, isas, index)
    report(seed, index, found) if found else print("passed")
    return not found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--isa", help="one tier instead of all that run here")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--case", metavar="SEED:INDEX", help="repeat one case")
    parser.add_argument(
        "--write", metavar="DIR", type=Path, help="write the cases for the C checker; run nothing"
    )
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

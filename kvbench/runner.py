"""Runs a plan: one fresh process for each launch, records as they come. It knows no files."""

import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO

from kvbench.model import Plan, Point, Probe, Record
from kvbench.store import plain, record

Execute = Callable[[Plan, int], Iterator[Record]]


def run(plan: Plan, execute: Execute | None = None) -> Iterator[Record]:
    """Every point once in every launch. `execute` does one launch; tests give one that replays recorded times."""
    for number in range(plan.launches):
        for found in (execute or launch)(plan, number):
            yield replace(found, run=plan.run)


def new_run() -> str:
    """A name that sorts by time, and that two runs of one second do not share."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def launch(plan: Plan, number: int, program: tuple[str, ...] = ("-m", "kvbench.worker")) -> Iterator[Record]:
    """The records of one worker process. What it leaves out when it dies becomes error records."""
    left, strange, done = list(plan.points), "", False
    with tempfile.TemporaryFile("w+") as complaints:
        worker = subprocess.Popen(
            [sys.executable, "-P", *program],  # -P: no module of the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            errors="replace",
        )
        with worker:
            try:
                for line in _answers(worker, _job(plan, number)):
                    found = _understood(line, left)
                    if found is None:
                        strange = f"the worker said {line[:60]!r}, which is no record of a point"
                        break
                    left.remove(found.point)
                    yield found
                done = not strange
            finally:
                if not done:
                    worker.kill()
        error = strange or _end(worker.returncode, complaints)
    yield from (Record(number, point, (), {}, {}, error=error) for point in left)


def _job(plan: Plan, number: int) -> str:
    points = [plain(point) for point in plan.points]
    facts = {"samples": plan.samples, "seconds": plan.seconds, "seed": plan.seed}
    return json.dumps({"launch": number, "points": points} | facts)


def _answers(worker: "subprocess.Popen[str]", job: str) -> Iterator[str]:
    try:
        worker.stdin.write(job)
        worker.stdin.close()
    except BrokenPipeError:
        return  # it is dead: its end says why
    yield from worker.stdout


def _understood(line: str, asked: list[Point | Probe]) -> Record | None:
    """The record in a line; None where it holds none of those asked for."""
    try:
        found = record(json.loads(line))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if found.point in asked else None


def _end(code: int, complaints: IO[str]) -> str:
    """How a worker ended, and its last words."""
    complaints.seek(0)
    last = complaints.read().strip().splitlines()[-1:]
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the worker ended with {how}: {''.join(last) or 'it said nothing'}"

"""Compute the numbers that pages state from their sources: suites, kept runs, tables, files."""

import csv
import json
import math
import tomllib
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from kvbench.analysis.differs import trend
from kvbench.plan.needs import PROCESS
from kvbench.regime import FAR_BYTES, THRESHOLDS
from kvbench.score import definition
from kvbench.units import GIB, MIB
from tests.analysis.differs.test_trend import following, series
from tests.raw import ROOT
from tests.repo.scan import WORDS

RESULTS, SUITES = ROOT / "results", ROOT / "suites"


def percent(share: float) -> str:
    """Return a share as pages write it before "%"."""
    return f"{100 * share:.3g}"


def word(number: int) -> str:
    """Return a number up to twenty as a word."""
    return WORDS[number - 1]


@cache
def suite(name: str) -> dict[str, Any]:
    """The file of a suite."""
    return tomllib.loads((SUITES / f"{name}.toml").read_text())


@cache
def measured(name: str) -> dict[str, Any]:
    """A time that was measured by hand, and how."""
    return tomllib.loads((RESULTS / "measured.toml").read_text())[name]


@cache
def table(name: str) -> list[dict[str, str]]:
    """The lines of a CSV table of results/."""
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def cores(machine: str) -> int:
    """How many CPUs a kept run of the suite quick saw."""
    path = RESULTS / machine / "quick" / "machine.json"
    return len(json.loads(path.read_text())["topology"]["cpus"])


def same_cores() -> int:
    """How many CPUs each machine of results/ has: all have as many."""
    (found,) = {cores(path.parts[-3]) for path in RESULTS.glob("*/quick/machine.json")}
    return found


def red(name: str, least: str = "", **wanted: str) -> tuple[int, int]:
    """Of the gates in a table with these words: how many said REGRESSION, and how many there are.
    `least`: the column whose last line says which lines count.
    """
    rows = table(name)
    own = [
        row
        for row in rows
        if (not least or row[least] == rows[-1][least])
        and all(row[key].endswith(value) for key, value in wanted.items())
    ]
    return sum(row["verdict"] == "REGRESSION" for row in own), len(own)


GATES, ENGINES = "zen3-kvm-2/gate/runs.csv", "zen5-kvm-2/engine-gate.csv"


def selftest(exercise: str, *cases: str) -> tuple[int, int]:
    """Of the gates of kernels, as red()."""
    counts = [red(GATES, exercise=exercise, case=case) for case in cases or ("",)]
    return sum(count[0] for count in counts), sum(count[1] for count in counts)


def engines(exercise: str, case: str) -> tuple[int, int]:
    """Of the gates of ggml, as red(): those of the newest commit."""
    return red(ENGINES, "commit", exercise=exercise, case=case)


def engine_seconds(exercise: str, case: str) -> int:
    """The median time of these gates."""
    newest = table(ENGINES)[-1]["commit"]
    return int(
        median(
            float(row["seconds"])
            for row in table(ENGINES)
            if (row["commit"], row["exercise"], row["case"]) == (newest, exercise, case)
        )
    )


def engine_row(exercise: str, case: str) -> tuple[int, int, int]:
    """Numbers of a row of the table of engine gates."""
    return *engines(exercise, case), engine_seconds(exercise, case)


def first_step(points: int) -> tuple[int, int]:
    """When a history of so many points shows a step at the earliest: the number of runs; and, later
    on, of runs since the step. By the exact chance of the clearest order of ranks, times the number
    of runs and of points.
    """
    limits = trend.LIMITS

    def clear(before: int, after: int) -> bool:
        chance = 2 * (before + after) / math.comb(before + after, after)
        return chance * points <= limits.rate

    runs = next(runs for runs in range(2, 200) if clear(runs // 2, runs - runs // 2))
    since = next(after for after in range(1, 200) if clear(limits.window, after))
    return runs, since


@cache
def false_steps(like: float, runs: int) -> str:
    """Percent of simulated points without a step that show one in so many runs. `like`: the
    correlation of consecutive runs.
    """
    chance = np.random.default_rng(1)
    made = [series(following(chance, runs, like=like)) for _ in range(1000)]
    found = trend.trends(made)
    return f"{100 * sum(bool(each.steps) for each in found) / len(found):.0f}"


def model() -> dict[str, int]:
    """The model of the score: its numbers."""
    known = tomllib.loads((SUITES / "models.toml").read_text())
    return known[suite("score")["axes"]["model"]]


def workload() -> tuple[Any, ...]:
    """Numbers of the score's workload."""
    own, context = model(), suite("score")["axes"]["context"]
    heads = own["q_heads"], own["kv_heads"], own["head_dim"]
    return own["layers"], *heads, f"{context:,}", word(1)


def longer() -> tuple[Any, ...]:
    """Numbers of the score's line of more tokens."""
    (many, context), (one, long) = definition.LONGER
    return many, f"{context:,}", word(one), f"{long:,}", definition.LONGER_LAUNCHES


def engine_memory() -> tuple[str, int, int]:
    """What a gate of engines needs: GiB; or how many times the last-level caches, if these have
    more MiB. There are four copies: the library's room, the values, and a store of each side.
    """
    copies = 4
    times = copies * THRESHOLDS.dram
    return (
        f"{(copies * FAR_BYTES + PROCESS) / GIB:.1f}",
        int(times),
        int(FAR_BYTES / THRESHOLDS.dram / MIB),
    )


def score_workload() -> list[Any]:
    """Tokens and sequences of a score."""
    _, tokens, sequences = definition.workload()
    return [tokens, word(sequences)]


def versions() -> list[str]:
    """The version of kvbench, and that of its score."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [project["version"], definition.VERSION]


def python() -> list[str]:
    """The oldest Python that works."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [project["requires-python"].removeprefix(">=")]

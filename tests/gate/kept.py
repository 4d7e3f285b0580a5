"""Shared by the gate's self-tests: a table of gates whose right answer is known. Each gate is one
line, and none is made twice. Next comes a gate of the exercise that lacks most.
"""

import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Exercise:
    """An exercise with a name of two words, of which `wanted` gates are made."""

    name: str
    case: str
    wanted: int

    def of(self, rows: Sequence[Row]) -> list[Row]:
        own = self.name, self.case
        return [row for row in rows if (row["exercise"], row["case"]) == own]


@dataclass(frozen=True, slots=True)
class Table:
    """The table in a CSV file. `counts`: whether a line counts; all other lines are kept too."""

    path: Path
    columns: tuple[str, ...]
    counts: Callable[[Row], bool] = lambda row: True

    def lines(self) -> list[Row]:
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            return list(csv.DictReader(file))

    def rows(self) -> list[Row]:
        """Return the lines that count."""
        return [*filter(self.counts, self.lines())]

    def append(self, row: dict[str, Any]) -> None:
        fresh = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.columns)
            if fresh:
                writer.writeheader()
            writer.writerow(row)

    def fill(
        self,
        exercises: Sequence[Any],
        run: Callable[[Any, int], dict[str, Any]],
        minutes: float,
    ) -> None:
        """Run gates with (exercise, number) until none is missing or time is up."""
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end and (todo := _next(exercises, self.rows())):
            row = run(*todo)
            self.append(row)
            told = ("exercise", "case", "number", "verdict", "seconds")
            print(", ".join(f"{name} {row[name]}" for name in told), flush=True)


def _next(exercises: Sequence[Any], rows: Sequence[Row]) -> tuple[Any, int] | None:
    """Return the exercise of which the largest share is missing, and the number of its next gate.
    """
    made = {each: len(each.of(rows)) for each in exercises}
    left = [each for each in exercises if made[each] < each.wanted]
    least = min(left, key=lambda each: made[each] / each.wanted, default=None)
    return least and (least, made[least])


def seed_of(*facts: Any) -> int:
    """Return the gate's own seed, so that no two gates share their coins, and each can be repeated.
    """
    return int.from_bytes(random.Random("".join(map(str, facts))).randbytes(3), "big")


@dataclass(frozen=True, slots=True)
class Held:
    """A finished gate. `said`: its JSON. `pairs`: what pairs_of() returns."""

    said: dict[str, Any]
    pairs: dict[str, float]
    seconds: float
    code: int


def held(*options: str) -> Held:
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kvbench.cli", "gate", *options]
        command += ["--every", "--out", folder, "--json"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if not done.stdout:
            last = done.stderr.strip().rpartition("\n")[2]
            raise SystemExit(f"the gate ended with {done.returncode}: {last}: {' '.join(command)}")
        pairs = pairs_of(Path(folder, "pairs.csv"))
    return Held(json.loads(done.stdout), pairs, time.monotonic() - start, done.returncode)


def pairs_of(path: Path) -> dict[str, float]:
    """Return facts of the screening: the noise of a pair (from half of the pairs, about the median
    of their launch), the share of pairs that the system disturbed, and the numbers of launches.
    """
    import pandas as pd

    pairs = pd.read_csv(path)
    screen = pairs[pairs.stage == "screen"]
    effect = np.log(screen.head_s / screen.base_s)
    apart = effect - effect.groupby([screen.launch, screen.point]).transform("median")
    noise = apart.groupby(screen.point).apply(
        lambda own: np.subtract(*np.quantile(own, (0.75, 0.25))) / 1.349
    )
    return {
        "noise": float(noise.median()),
        "disturbed": float(((screen.switches > 0) | (screen.steal_s > 0)).mean()),
        "launches": screen.launch.nunique(),
        "confirm": pairs[pairs.stage == "confirm"].launch.nunique(),
    }


def bound(seen: int, runs: int) -> float:
    """Return Clopper and Pearson's upper bound, at 95 %, of a share that was seen this often."""
    from scipy.stats import beta

    return float(beta.ppf(0.95, seen + 1, runs - seen)) if seen < runs else 1.0

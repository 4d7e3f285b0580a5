"""What self-tests of the gate share: a table of gates whose right answer is known. Each gate is a
line of it, and none is made twice. The next one is of the exercise that lacks most.
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
    """`wanted` gates, by a name of two words."""

    name: str
    case: str
    wanted: int

    def of(self, rows: Sequence[Row]) -> list[Row]:
        own = self.name, self.case
        return [row for row in rows if (row["exercise"], row["case"]) == own]


@dataclass(frozen=True, slots=True)
class Table:
    """`counts`: whether a line does; those that do not are kept."""

    path: Path
    columns: tuple[str, ...]
    counts: Callable[[Row], bool] = lambda row: True

    def lines(self) -> list[Row]:
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            return list(csv.DictReader(file))

    def rows(self) -> list[Row]:
        """The lines that count."""
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
        """Runs an exercise and the number of its gate, until none is left, or time."""
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end and (todo := _next(exercises, self.rows())):
            row = run(*todo)
            self.append(row)
            told = ("exercise", "case", "number", "verdict", "seconds")
            print(", ".join(f"{name} {row[name]}" for name in told), flush=True)


def _next(exercises: Sequence[Any], rows: Sequence[Row]) -> tuple[Any, int] | None:
    """The exercise of which the largest share is missing, and the number of its next gate."""
    made = {each: len(each.of(rows)) for each in exercises}
    left = [each for each in exercises if made[each] < each.wanted]
    least = min(left, key=lambda each: made[each] / each.wanted, default=None)
    return least and (least, made[least])


def seed_of(*facts: Any) -> int:
    """The gate's own, so that no two share their coins; and known, so that one can be repeated."""
    return int.from_bytes(random.Random("".join(map(str, facts))).randbytes(3), "big")


@dataclass(frozen=True, slots=True)
class Held:
    """A gate that was held. `said`: its JSON. `pairs`: as pairs_of() has them."""

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
    """From the screening, the noise of a pair (as half of them lie about the median of their
    launch) and the share that the system disturbed; and how many launches there were.
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
    """Clopper and Pearson's upper one, at 95 %: of the share that is seen so often."""
    from scipy.stats import beta

    return float(beta.ppf(0.95, seen + 1, runs - seen)) if seen < runs else 1.0

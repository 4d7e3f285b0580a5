"""A history of 1,000 runs of 200 points: what is planted is found, nothing else is, and how long that takes.

As a program it says what it measured: python -m tests.history.test_thousand
"""

import json
import math
import sys
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from tests.history import made
from tests.test_cli import call

RUNS, POINTS, STEP = 1000, 200, 0.05
NOISE = 0.025  # of a launch; a run is the median of three


def planted(chance):
    """Efficiencies; and by the name of a point the first run after its step, and which way it leads."""
    shares, steps = made.flat(RUNS, POINTS), {}
    for point in chance.choice(POINTS, POINTS // 10, replace=False):
        at, sign = int(chance.integers(50, RUNS - 50)), int(chance.choice([-1, 1]))
        shares[at:, point] *= 1 + sign * STEP
        steps[made.points(POINTS)[point].name] = at, sign
    return shares, steps


def show(root, *more):
    """What it printed, and the seconds that it took."""
    out, began = StringIO(), time.perf_counter()
    with redirect_stdout(out):
        assert call("history", "show", "--json", "--root", str(root), *more) == 0
    return json.loads(out.getvalue()), time.perf_counter() - began


def found(facts):
    """By the name of a point: the runs where it steps, and the way."""
    (machine,) = facts["machines"]
    return {
        point["point"]: [
            (int(step["run"].removeprefix("run-")), math.copysign(1, step["effect"])) for step in point["steps"]
        ]
        for point in machine["points"]
        if point["steps"]
    }


def measured(folder):
    """Seconds without a page and with it; and what was planted and what found."""
    shares, steps = planted(np.random.default_rng(2026))
    made.write(folder / "runs", shares, NOISE)
    facts, judged = show(folder / "runs")
    again, page = show(folder / "runs", "--report", str(folder / "page"))
    assert again == facts and (folder / "page" / "index.html").stat().st_size < 5_000_000
    return judged, page, steps, found(facts)


@pytest.mark.full
def test_a_thousand_runs(tmp_path):
    _, _, steps, seen = measured(tmp_path)
    assert seen.keys() == steps.keys()
    for name, (at, sign) in steps.items():
        ((run, way),) = seen[name]
        assert way == sign
        assert abs(run - at) <= 1, f"{name}: planted at {at}, found at {run}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        judged, page, steps, seen = measured(Path(folder))
    near = sum(
        any(abs(run - at) <= 1 and way == sign for run, way in seen.get(name, [])) for name, (at, sign) in steps.items()
    )
    print(
        f"{RUNS} runs of {POINTS} points: read and judged in {judged:.1f} s, with a page in {page:.1f} s",
        file=sys.stderr,
    )
    print(
        f"{near} of {len(steps)} steps within a run; {len(seen.keys() - steps.keys())} points with none have one",
        file=sys.stderr,
    )

"""A run of 100,000 samples: what its report takes of memory and of the disk."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report import made

CONTEXTS = [1024 * (1 + number) for number in range(26)]
VARIANTS = [f"way{number}" for number in range(4)]
LAUNCHES, ROUNDS = 10, 1


def write(path: Path) -> int:
    """The number of its samples."""
    os.fsync = lambda file: None  # nobody will switch this machine off
    points = [*made.decodes(CONTEXTS, VARIANTS), *made.stores(), *made.PROBES]
    records = [made.measured(launch, point, ROUNDS) for launch in range(LAUNCHES) for point in points]
    made.directory(path, records, points, LAUNCHES, samples=ROUNDS)
    return sum(len(record.samples) for record in records)


@pytest.mark.full
def test_a_large_run(tmp_path, capsys):
    run, out = tmp_path / "run", tmp_path / "report"
    code = f"from tests.report.test_large import *; print(write(Path({str(run)!r})))"
    assert int(subprocess.check_output([sys.executable, "-c", code])) >= 100_000
    limits = subprocess.run(
        [sys.executable, "-m", "tests.report.test_large", str(run), str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(limits.stdout.splitlines()[-1])
    with capsys.disabled():
        print(f"\n{told}, page of {(out / 'index.html').stat().st_size / 2**20:.2f} MiB")
    assert told["peak_mib"] <= 1024
    assert (out / "index.html").stat().st_size <= 5 * 2**20
    assert sum(path.stat().st_size for path in (out / "figures").iterdir()) <= 50 * 2**20


if __name__ == "__main__":
    from kvbench.cli import main

    try:
        main(["report", sys.argv[1], "-o", sys.argv[2]])
    finally:
        used = resource.getrusage(resource.RUSAGE_SELF)
        status = Path("/proc/self/status").read_text()  # ru_maxrss would begin with what this process was forked from
        peak = int(status.partition("VmHWM:")[2].split()[0])
        print(json.dumps({"seconds": round(used.ru_utime + used.ru_stime, 1), "peak_mib": round(peak / 1024)}))

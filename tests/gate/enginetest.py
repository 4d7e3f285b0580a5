"""Does the gate of engines tell the truth on this machine? Runs gates whose right answer is known,
and keeps a table of what they said.

    python -m tests.gate.enginetest results/<machine>/engine-gate.csv [--minutes 60]

same  base and head are two copies of one build of ggml: nothing may be found
slow  each call of head takes a stated share longer: that must be found

Both sides are called through forward.c, which spins for that share of the time that the call has
taken. Every gate is one line, and none is ever taken out. A line names the last commit that changed
what measures or judges; those of earlier commits are kept, and do not count.
"""

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from kvbench.model.verdict import EQUIVALENT, IMPROVEMENT, REGRESSION
from kvbench.peers.ggml import Ggml
from kvbench.peers.known import known
from tests.gate import kept
from tests.gate.kept import Held, Row, Table, bound, held, seed_of
from tests.raw import ROOT

ENGINE, CALL = "ggml", "ggml_backend_graph_compute"
BUDGET = "4m"
_OWN = ("enginetest.py", "forward.c", "kept.py")
# What a line's commit is of: not the words that show what was found.
_OF = ("kernels", "kvbench", "suites", *(f"tests/gate/{name}" for name in _OWN))
_NOT = (":!*.md", *(f":!kvbench/{name}" for name in ("cli", "exports", "report")))
COLUMNS = (
    "commit",
    "engine",
    "version",
    "exercise",
    "case",
    "number",
    "seed",
    "date",
    "verdict",
    "effect",
    "low",
    "high",
    "points",
    "launches",
    "confirmed_launches",
    "detectable",
    "noise",
    "seconds",
    "code",
)


@dataclass(frozen=True, slots=True)
class Exercise(kept.Exercise):
    """`share` of its time by which a call of head takes longer."""

    share: float


EXERCISES = (
    Exercise("same", "-", 10, 0.0),
    Exercise("slow", "3%", 10, 0.03),
    Exercise("slow", "10%", 5, 0.1),
)


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("table", type=Path)
    asked.add_argument("--minutes", type=float, default=60.0, help="begin no gate after so long")
    asked = asked.parse_args()
    found = known(ENGINE)
    if found.lacking:
        raise SystemExit(f"{ENGINE}: {found.lacking}")
    facts = {"commit": commit(), "engine": ENGINE, "version": found.version}
    table = Table(asked.table, COLUMNS, lambda row: row["commit"] == facts["commit"])
    table.fill(EXERCISES, lambda exercise, number: _run(exercise, number, facts), asked.minutes)
    print("\n".join(summary(table.lines(), facts["commit"])))


def commit() -> str:
    """The last one that changed what measures or judges; what is not committed makes it dirty."""
    dirty = "-dirty" if _git("status", "--porcelain") else ""
    return _git("log", "-1", "--format=%h", "--abbrev=12") + dirty


def _git(*words: str) -> str:
    command = ["git", "-C", ROOT, *words, "--", *_OF, *_NOT]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def summary(lines: list[Row], of: str) -> Iterator[str]:
    """What the lines of that commit prove, by exercise and case."""
    rows = [row for row in lines if row["commit"] == of]
    yield f"of commit {of}: {len(rows)} gates; of earlier ones, which do not count:" + (
        f" {len(lines) - len(rows)}"
    )
    for exercise in EXERCISES:
        if not (own := exercise.of(rows)):
            continue
        words = [row["verdict"] for row in own]
        begin = f"{exercise.name} {exercise.case}: {len(own)} gates of {exercise.wanted}"
        if exercise.share:
            red = words.count(REGRESSION)
            least = 1 - bound(len(own) - red, len(own))
            proves = f"{red} {REGRESSION}; with 95 % confidence more than {least:.1%} of such gates"
        else:
            moved = words.count(REGRESSION) + words.count(IMPROVEMENT)
            most = bound(moved, len(own))
            proves = (
                f"{words.count(EQUIVALENT)} {EQUIVALENT}, {moved} {REGRESSION} or {IMPROVEMENT}"
            )
            proves += f"; with 95 % confidence fewer than {most:.1%} of such gates find a change"
        yield f"{begin}, {proves}"


# ---- one gate ------------------------------------------------------------------------------------


def _run(exercise: Exercise, number: int, facts: dict[str, str]) -> dict[str, Any]:
    """Its line."""
    seed = seed_of(exercise, number, facts["commit"])
    with tempfile.TemporaryDirectory() as folder:
        sides = [
            word
            for side, share in (("base", 0.0), ("head", exercise.share))
            for word in (f"--{side}", str(forwarded(Path(folder, side), share)))
        ]
        how = "--engine", ENGINE, "--budget", BUDGET, "--seed", str(seed)
        return facts | _row(exercise, number, seed, held(*sides, *how))


def forwarded(folder: Path, share: float) -> Path:
    """A library in front of a copy of the engine's, both in that new folder."""
    library = Ggml.library("")
    for file in metadata.files(Ggml.package) or ():
        if ".so" in file.name:
            to = folder / file
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), to)
            if str(file.locate()) == library:
                engine = to
    return forwarder(folder / "forward.so", engine, CALL, share)


def forwarder(to: Path, engine: Path, call: str, share: float, *definitions: str) -> Path:
    """It names the engine's library by its whole path, and the dynamic linker loads both."""
    source = Path(__file__).with_name("forward.c")
    defined = [f"-D{each}" for each in (f"CALL={call}", f"SHARE={share}", *definitions)]
    flags = "-shared", "-fPIC", "-O2", "-Wall", "-Werror", *defined
    linked = "-Wl,--no-as-needed", engine, f"-Wl,-rpath,{engine.parent}", "-ldl"
    subprocess.run(["cc", *flags, source, "-o", to, *linked], check=True)
    return to


def _row(exercise: Exercise, number: int, seed: int, gate: Held) -> dict[str, Any]:
    said, pairs = gate.said, gate.pairs
    widest = _widest(said)
    seen = [row["detectable"] for row in said["points"] if row["detectable"] is not None]
    return {
        "exercise": exercise.name,
        "case": exercise.case,
        "number": number,
        "seed": seed,
        "date": said["created"],
        "verdict": said["verdict"],
        **{name: _share(widest.get(name)) for name in ("effect", "low", "high")},
        "points": len(said["points"]),
        "launches": pairs["launches"],
        "confirmed_launches": pairs["confirm"],
        "detectable": _share(np.median(seen) if seen else None),
        "noise": _share(pairs["noise"]),
        "seconds": round(gate.seconds),
        "code": gate.code,
    }


def _widest(said: dict[str, Any]) -> dict[str, Any]:
    """The family of most points."""

    def size(family: dict[str, Any]) -> int:
        name = family["family"]
        return sum(
            point["family"] == name or fnmatchcase(point["point"], name) for point in said["points"]
        )

    return max(said["families"], key=size, default={})


def _share(value: float | None) -> str:
    return "" if value is None or np.isnan(value) else f"{value:.4f}"


if __name__ == "__main__":
    main()

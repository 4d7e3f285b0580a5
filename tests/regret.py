"""What is lost by the schedules that tuning chooses: python -m tests.regret OUT.csv [--times N] [--only PATTERN]

Each cell is tuned as a launch tunes it, N times afresh. Then all presets are timed in turn on the same memory, beside a
plain read of it by the same threads. Cells that were measured already are not measured again. Cells of `apart` are those
that a class lumps together with others: they take the choice that was made for the cell which stands for their class.

Printed: the time of the choice over the best preset's, how far N tunings lie apart, and shares of the plain read.
"""

import argparse
import csv
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean, median

from kvbench.machine import describe
from kvbench.model import Point
from kvbench.native import default_library
from kvbench.plan import Site, expand, needs_here
from kvbench.plan.classes import class_of
from kvbench.suite import load
from kvbench.worker import room
from kvbench.worker.answers import Answers
from kvbench.worker.foreign import bench_of
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program, rounds
from kvbench.worker.tuning import Tuner

AXES = """
question = "Which schedule?"
[axes]
kv_heads = 8
head_dim = 128
q_heads = [8, 16, 32, 64]
threads = [1, "all"]
order = "shuffled"
dtype = ["f32", "f16", "bf16", "i8", "q8_0"]
layout = ["head", "position", "paged", "blockt"]
"""
PLACES = '\n[[grid]]\nresidency = "hot"\ncontext = "0.25xL3"\n[[grid]]\nresidency = "rotate"\ncontext = 4096\n'
FEW = AXES.replace("[8, 16, 32, 64]", "[8, 32]").replace('["f32", "f16", "bf16", "i8", "q8_0"]', '["f16", "i8"]')
FEW = FEW.replace('[1, "all"]', '"all"')
APART = {
    "d64": FEW.replace("= 128", "= 64"),
    "d96": FEW.replace("= 128", "= 96"),
    "d256": FEW.replace("= 128", "= 256"),
    "block128": FEW.replace('["head", "position", "paged", "blockt"]', '"paged"') + "block_tokens = 128\n",
    "base": FEW + 'pages = "base"\n',
    "batch4": FEW + "batch = 4\n",
}
ROUNDS, SECONDS = 11, 0.012
READ = "read"


def cells() -> Iterator[tuple[str, Point]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"": AXES, **APART}.items():
            file = Path(folder, "regret.toml")
            file.write_text(text + PLACES)
            yield from ((name, point) for point in expand(load(file), Site(describe(), 1 << 40)).points)


def measured(every: Sequence[tuple[str, Point]], known: dict[str, str], times: int) -> Iterator[dict[str, object]]:
    """`known`: choices, by class."""
    machine, library = describe(), default_library()
    needs = needs_here([point for _, point in every], machine)
    with Ground(library, machine) as ground:
        groups: dict[object, list[tuple[str, Point]]] = {}
        for name, point in every:
            groups.setdefault((bool(name), room.key(point, needs[point].layers, ground)), []).append((name, point))
        for _, group in sorted(groups.items(), key=lambda each: each[0][0]):
            with room.Room(group[0][1], ground) as own:
                for name, point in group:
                    of = class_of(point, needs[point], machine)
                    with bench_of(point, own, Answers()) as bench:
                        choices = [known[of]] if name and of in known else []
                        for _ in range(0 if choices else times):
                            tuner = Tuner(machine, {})
                            bench.schedule = library.schedule(point.schedule)
                            tuner.choose(bench)
                            choices.append(bench.schedule)
                        known.setdefault(of, choices[0])
                        yield {"cell": name, "point": point.name, "class": of, "choices": " ".join(choices)} | timed(
                            bench
                        )


def timed(bench) -> dict[str, float]:
    """Seconds of a pass, by preset, and of a plain read of as many bytes."""
    programs = [bench.under(preset, preset) for preset in bench.room.library.words("schedule")]
    moved = programs[0].traffic().compulsory
    size = bench.room.slice_bytes // 64 * 64
    parts = [
        bench.room.arena.part(layer * bench.room.slice_bytes // 64 * 64, size) for layer in range(bench.room.layers)
    ]
    read = Program(
        READ, bench.team, tuple(bench.probe("read", to=part, size=size) for part in parts), None, programs[0].warm
    )
    taken: dict[str, list[float]] = {each.name: [] for each in (*programs, read)}
    for sample in rounds([*programs, read], ROUNDS, SECONDS):
        taken[sample.program].append(sample.seconds / sample.passes)
    found = {name: median(values) for name, values in taken.items()}
    found[READ] *= moved / size
    return found


# ---- what is printed -------------------------------------------------------------------------------------------------


def said(rows: Sequence[dict[str, str]], presets: Sequence[str]) -> Iterator[str]:
    for name in dict.fromkeys(row["cell"] for row in rows):
        own = [row for row in rows if row["cell"] == name]
        lost = {row["point"]: float(row[row["choices"].split()[0]]) / _best(row, presets) for row in own}
        values = sorted(lost.values())
        within = sum(value <= 1.05 for value in values) / len(values)
        yield (
            f"{name or 'all':<9}{len(own):>5} cells: geometric mean {_mean(values):.3f}, {within:.0%} of them within 1.05, "
            f"worst {values[-1]:.3f} ({max(lost, key=lost.get)})"
        )
        fixed = {preset: _mean([float(row[preset]) / _best(row, presets) for row in own]) for preset in presets}
        yield f"{'':<9}always one preset: " + ", ".join(f"{each} {value:.3f}" for each, value in fixed.items())
    several = [row for row in rows if len(row["choices"].split()) > 1]
    apart = [[float(row[each]) for each in row["choices"].split()] for row in several]
    if apart:
        alike = sum(max(times) / min(times) <= 1.03 for times in apart) / len(apart)
        yield f"{len(several[0]['choices'].split())} fresh tunings agree within 3% of the time in {alike:.1%} of the cells"
    yield from _shares([row for row in rows if not row["cell"] and ".rotate/" in row["point"]])


def _shares(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    yield "share of the plain read, from memory"
    for row in rows:
        share = float(row[READ]) / float(row[row["choices"].split()[0]])
        yield f"  {share:.2f}  {row['choices'].split()[0]:<8}{row['class']}"


def _best(row: dict[str, str], presets: Sequence[str]) -> float:
    return min(float(row[preset]) for preset in presets)


def _mean(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", default="*")
    asked = parser.parse_args()
    presets = default_library().words("schedule")
    columns = ["cell", "point", "class", "choices", *presets, READ]
    there = list(csv.DictReader(asked.out.open())) if asked.out.exists() else []
    done = {(row["cell"], row["point"]) for row in there}
    known = {row["class"]: row["choices"].split()[0] for row in there}
    left = [each for each in cells() if (each[0], each[1].name) not in done and fnmatchcase(each[1].name, asked.only)]
    with asked.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if not there:
            writer.writeheader()
        for number, row in enumerate(measured(left, known, asked.times), 1):
            writer.writerow(row)
            file.flush()
            print(f"\r{number} of {len(left)}", end="", file=sys.stderr)
    print(*said(list(csv.DictReader(asked.out.open())), presets), sep="\n")


if __name__ == "__main__":
    main()

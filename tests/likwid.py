"""Our plain probes beside likwid-bench's, run by run in turn: python -m tests.likwid [--rounds N]

Both walk the same bytes on the same CPUs and base pages (likwid-bench asks for no huge ones), first
touched by the thread that walks them. likwid counts what the loop names and no write-allocate, as
we do; its sizes here are in bytes. Prints medians, and the median of the ratios of neighbours;
exits with 1 where one is further from 1 than 5 %.
"""

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from statistics import median

from kvbench.analysis.measured.ceilings import value
from kvbench.machine import describe
from kvbench.model import Machine, Plan, Probe
from kvbench.native import default_library
from kvbench.regime import classify, dram_bytes
from kvbench.units import size
from kvbench.worker.launch import launch
from tests.made_job import job

ALLOWED = 0.05
SECONDS = 0.15  # of one measurement, about
TESTS = {
    "flops": "peakflops_sp",
    "read": "load",
    "write": "store",
    "copy": "copy",
    "write_nt": "store_mem",
    "copy_nt": "copy_mem",
}
FUSED = frozenset({"avx512", "avx2"})  # tiers of which likwid-bench has a test that fuses
SUFFIXES = {"avx2": "avx", "scalar": ""}  # words of likwid-bench that differ from ours
FLOPS_BYTES, FLOPS_A_BYTE = 8 << 10, 7.5  # the peak test also loads: 30 FLOPs for 4 bytes
GRAIN = 12 * 128  # bytes a thread: whole turns of every loop, for one stream and for two


@dataclass(frozen=True)
class Cell:
    probe: Probe
    level: str
    test: str

    def likwid(self, guess: float) -> float:
        """GB/s, or GFLOP/s, of one run of likwid-bench that takes about SECONDS."""
        flops = self.probe.op == "flops"
        threads, count = (
            len(self.probe.cpus),
            self.probe.bytes or FLOPS_BYTES * len(self.probe.cpus),
        )
        turns = max(3, round(guess * 1e9 * SECONDS / count / (FLOPS_A_BYTE if flops else 1)))
        group = f"S0:{count}B:{threads}"
        done = subprocess.run(
            ["likwid-bench", "-t", self.test, "-W", group, "-i", str(turns)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        found = re.search(rf"{'MFlops/s' if flops else 'MByte/s'}:\s+([\d.]+)", done.stdout)
        if not found:
            sys.exit(
                f"likwid-bench -t {self.test} -W {group} failed:"
                f" {done.stdout[-200:]}{done.stderr[-200:]}"
            )
        return float(found[1]) / 1e3

    def ours(self) -> float:
        *_, record = launch(default_library(), job(Plan((self.probe,), 1, 1, SECONDS, 1)))
        (sample,) = record.samples
        return value(record, sample)


def footprints(machine: Machine, cpus: tuple[int, ...]) -> dict[str, int]:
    """A footprint in the middle of each regime of these CPUs."""
    grain, found = GRAIN * len(cpus), dict[str, list[int]]()
    count, far = 8 << 10, dram_bytes(machine, cpus)
    while far and count < far:
        word = classify(machine, cpus, count).word
        if word.startswith("L"):
            found.setdefault(word, []).append(count)
        count += count // 8
    middles = {word: counts[len(counts) // 2] for word, counts in found.items()}
    return {
        word: count // grain * grain
        for word, count in (middles | {"DRAM": round(far or 256 << 20)}).items()
    }


def cells(ops: list[str], isa: str) -> list[Cell]:
    machine, suffix = describe(), SUFFIXES.get(isa, isa)
    sets = (
        [machine.allowed[:1], machine.allowed[:2]]
        if len(machine.allowed) > 1
        else [machine.allowed]
    )
    walks = [
        Cell(Probe(op, isa, cpus, "base", count), level, f"{TESTS[op]}_{suffix}".rstrip("_"))
        for op in ops
        if op != "flops"
        for cpus in sets
        for level, count in footprints(machine, cpus).items()
    ]
    peak = f"{TESTS['flops']}_{suffix}{'_fma' if isa in FUSED else ''}".rstrip("_")
    return walks + [
        Cell(Probe("flops", isa, cpus, "base", 0), "core", peak) for cpus in sets if "flops" in ops
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ops", default="read,copy,write_nt,flops")
    parser.add_argument("--isa", default=default_library().isa())
    asked = parser.parse_args()
    if not shutil.which("likwid-bench"):
        sys.exit("likwid-bench is not installed: apt install likwid (Debian)")
    todo = cells(asked.ops.split(","), asked.isa)
    pairs: dict[Cell, list[tuple[float, float]]] = {cell: [] for cell in todo}
    for number in range(asked.rounds):
        for cell in todo:
            own = cell.ours()
            theirs = cell.likwid(own)
            pairs[cell].append((own, theirs) if number % 2 else (cell.ours(), theirs))
    print(
        f"{'op':<9}{'threads':>7}  {'level':<6}{'footprint':>10}{'ours':>9}{'likwid':>9}  ratio"
        " (range of rounds)"
    )
    off = 0
    for cell, seen in pairs.items():
        ratios = sorted(own / theirs for own, theirs in seen)
        middle = median(ratios)
        off += abs(middle - 1) > ALLOWED
        print(
            f"{cell.probe.op:<9}{len(cell.probe.cpus):>7} "
            f" {cell.level:<6}{size(cell.probe.bytes):>10}{median(own for own, _ in seen):>9.1f}"
            f"{median(theirs for _, theirs in seen):>9.1f}"
            f"  {middle:.3f}"
            f" ({ratios[0]:.2f}..{ratios[-1]:.2f}){'' if abs(middle - 1) <= ALLOWED else '  OFF'}"
        )
    print(
        f"{len(todo)} cells, {off} further than {ALLOWED:.0%} from likwid-bench ({asked.isa},"
        f" {asked.rounds} rounds)"
    )
    return off > 0


if __name__ == "__main__":
    sys.exit(main())

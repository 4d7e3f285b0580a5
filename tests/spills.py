"""Find vector registers that PV of dot keeps on the stack while it multiplies: `python -m
tests.spills OBJECT...` reads the machine code of isa/unit.c, and fails if a loop has more than MOST
such accesses.

The sums of a slice fit in the registers. A compiler that unrolls or hoists too much stores and
loads them at every step: the result is right, but the stage takes half as long again.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

MOST = 12  # the most loads and stores in a loop; a slice of 16 spilled sums has 32
STAGE = re.compile(r"^[0-9a-f]+ <(pv[a-z]?_(?:dot|floats|fours)\w*)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{vex\} )?(\S+)\s*(.*)$")
PRODUCT = re.compile(r"^(vpdpbusd|vdpbf16ps|vpmaddubsw|sdot|bfdot|smlal2?)$")
BACK = re.compile(r"^(j(?!mp)|b\.|cbn?z|tbn?z)")  # a loop ends with a condition
TARGET = re.compile(r"([0-9a-f]+) <[^<]*$")
# a place of its own: an array has an index, and %rbp most often is a pointer to one
ON_STACK = re.compile(
    r"(^|[ ,])(-?(0x[0-9a-f]+)?\(%rsp\)|-0x[0-9a-f]+\(%rbp\))|\[sp(, #-?\w+)?(, mul vl)?\]"
)
VECTOR = re.compile(r"%[xyz]mm\d|\b[qz]\d+\b")


class Step(NamedTuple):
    """An instruction."""

    at: int
    word: str
    operands: str

    @property
    def loop(self) -> tuple[int, int] | None:
        """The first and the last instruction of the loop that ends here."""
        target = TARGET.search(self.operands) if BACK.match(self.word) else None
        return (int(target[1], 16), self.at) if target and int(target[1], 16) <= self.at else None

    @property
    def spills(self) -> bool:
        return bool(ON_STACK.search(self.operands) and VECTOR.search(self.operands))


def stages(listing: str) -> Iterator[tuple[str, list[Step]]]:
    """The stages of PV by name, each with its instructions."""
    for part in listing.split("\n\n"):
        head, *rest = part.strip().split("\n")
        if found := STAGE.match(head):
            lines = filter(None, map(LINE.match, rest))
            yield found[1], [Step(int(line[1], 16), line[2], line[3]) for line in lines]


def most_of(steps: list[Step]) -> int | None:
    """The most of any innermost loop that multiplies; None if no loop multiplies."""
    loops: list[tuple[int, int]] = []
    counts = []
    for first, last in sorted(
        filter(None, (s.loop for s in steps)), key=lambda own: own[1] - own[0]
    ):
        inside = [s for s in steps if first <= s.at <= last]
        outer = any(first <= begin and end <= last for begin, end in loops)
        if not outer and any(PRODUCT.match(s.word) for s in inside):
            loops.append((first, last))
            counts.append(sum(s.spills for s in inside))
    return max(counts, default=None)


def main() -> int:
    if not (objdump := shutil.which("objdump")):
        print("spills: not looked at, for there is no objdump")
        return 0
    bad = 0
    for path in sys.argv[1:]:
        done = subprocess.run(
            [objdump, "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
        )
        found = {name: most_of(steps) for name, steps in stages(done.stdout)}
        counts = {name: count for name, count in found.items() if count is not None}
        over = {name: count for name, count in counts.items() if count > MOST}
        for name, count in sorted(over.items()):
            print(
                f"{path}: {name}: a loop loads and stores {count} vectors on the stack, not {MOST}"
            )
        if not counts:
            print(f"{path}: no stage of PV of dot that multiplies in a loop")
        print(f"spills: {len(counts)} stages of PV in {path}, {len(over)} over {MOST}")
        bad += bool(over) or not counts
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())

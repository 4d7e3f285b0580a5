"""Vector registers that stages of PV keep on the stack while they multiply: `python -m tests.spills
OBJECT...` disassembles what a compiler made of them, and fails where a loop has more than MOST.

Sums of a slice fit the registers, so a loop loads and stores none of them; a compiler that unrolls
or hoists too much spills them, and the stage takes half as long again without being wrong.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

MOST = 4  # constants, not sums
STAGE = re.compile(r"^[0-9a-f]+ <(pv_(?:dot|floats|quads)\w*)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
PRODUCT = re.compile(r"^(vpdpbusd|vdpbf16ps|vpmaddubsw|sdot|bfdot|smlal2?)$")
CONDITIONAL = re.compile(r"^(j(?!mp)|b\.|cbn?z|tbn?z)")
TARGET = re.compile(r"^([0-9a-f]+) <")
ON_STACK = re.compile(r"0x[0-9a-f]+\(%r[sb]p\)|(?<!\w)\(%rsp\)|\[sp(, #\d+)?(, mul vl)?\]")
VECTOR = re.compile(r"%[xyz]mm\d|\b[qz]\d+\b")


class Step(NamedTuple):
    """An instruction, and where it jumps to."""

    at: int
    word: str
    operands: str

    @property
    def target(self) -> int | None:
        found = TARGET.match(self.operands.split(",")[-1].strip())
        return int(found[1], 16) if found and CONDITIONAL.match(self.word) else None

    @property
    def spills(self) -> bool:
        return bool(ON_STACK.search(self.operands) and VECTOR.search(self.operands))


def stages(listing: str) -> Iterator[tuple[str, list[Step]]]:
    """Stages of PV by name, each with its instructions."""
    for part in listing.split("\n\n"):
        head, *rest = part.strip().split("\n")
        if found := STAGE.match(head):
            steps = (LINE.match(line) for line in rest)
            yield found[1], [Step(int(s[1], 16), s[2], s[3]) for s in steps if s]


def in_loops(steps: list[Step]) -> int:
    """The most of any loop that multiplies and has none inside it that does."""
    loops = sorted(
        ((s.target, s.at) for s in steps if s.target is not None and s.target <= s.at),
        key=lambda loop: loop[1] - loop[0],
    )
    inner: list[tuple[int, int]] = []
    for first, last in loops:
        own = [s for s in steps if first <= s.at <= last]
        holds = any(first <= a and b <= last for a, b in inner)
        if not holds and any(PRODUCT.match(s.word) for s in own):
            inner.append((first, last))
    return max(
        (sum(s.spills for s in steps if first <= s.at <= last) for first, last in inner), default=-1
    )


def main() -> int:
    if not (objdump := shutil.which("objdump")):
        print("no objdump: what is kept on the stack was not looked at")
        return 0
    bad = 0
    for path in sys.argv[1:]:
        done = subprocess.run(
            [objdump, "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
        )
        for name, steps in stages(done.stdout):
            print(name, in_loops(steps))
    return bad


if __name__ == "__main__":
    sys.exit(main())

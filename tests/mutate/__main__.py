"""python -m tests.mutate: plant each fault in a copy of the tree, and see whether a check fails."""

import argparse
import fcntl
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from kvbench.native import default_library
from tests.mutate import planting
from tests.mutate.faults import FOLDER, ROOT, Fault, read
from tests.mutate.planting import Planting, Row
from tests.mutate.tree import Copy, listed


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutate",
        description=(
            "Plant each fault of tests/mutate/*.toml in a copy of the tree, below build/mutate, and"
            " run its checks. Exit code 1: a fault was not caught, or no longer fits; 130:"
            " interrupted, which does no harm."
        ),
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="faults whose name, room and file have all of these words",
    )
    parser.add_argument(
        "--list", action="store_true", help="show the faults and whether they fit, and run nothing"
    )
    return parser.parse_args(words)


def chosen(faults: list[Fault], words: list[str]) -> list[Fault]:
    def has(fault: Fault) -> bool:
        text = f"{fault.name} {fault.room} {fault.file}".lower()
        return all(word.lower() in text for each in words for word in each.split())

    return [fault for fault in faults if has(fault)]


def show(faults: list[Fault], root: Path) -> int:
    """Print the faults. Return exit code 1 if an edit does not fit."""
    gone = 0
    for fault in faults:
        path = root / fault.file
        fits = path.is_file() and fault.edited(path.read_text()) is not None
        gone += not fits
        print(
            f"{'fits' if fits else 'NO LONGER FITS':14}  {fault.room:10}  {fault.name} "
            f" ({fault.file})"
        )
    return int(gone > 0)


def table(rows: list[Row], broken: dict[str, str]) -> int:
    """Print each fault's outcome, the worst last, and counts by room. Return the exit code."""
    order = (planting.UNSEEN, planting.NO_TIER, planting.CAUGHT)
    for row in sorted(
        rows, key=lambda row: order.index(row.outcome) if row.outcome in order else len(order)
    ):
        print(f"{row.outcome:20} {row.fault.room:10} {row.fault.name}\n{'':31} {row.by}")
    for check, how in broken.items():
        print(f"{'broken check':20} {'':10} {check}\n{'':31} without any fault: {how}")
    print()
    outcomes = Counter(row.outcome for row in rows)
    for room in dict.fromkeys(row.fault.room for row in rows):
        own = Counter(row.outcome for row in rows if row.fault.room == room)
        print(f"{room:12}", ", ".join(f"{count} {outcome}" for outcome, count in own.most_common()))
    print(
        f"{'all':12}", ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    )
    return int(bool(broken) or any(row.outcome not in planting.FINE for row in rows))


def run(faults: list[Fault], copy: Copy, place: Path, rows: list[Row]) -> dict[str, str]:
    """Plant the faults and fill rows with their outcomes. Return the broken checks."""
    begun = time.monotonic()

    def say(line: str) -> None:
        passed = int(time.monotonic() - begun)
        print(f"[{passed // 60:2}:{passed % 60:02}] {line}", flush=True)

    say(f"{len(faults)} faults; the copy is {copy.place}")
    copy.refresh()
    copy.furnish()
    say("building the library and the check program")
    built = copy.build(program=True)
    if built and built.code != 0:
        raise SystemExit(f"{built.said}\nthe copy does not build without any fault")
    tiers = copy.tiers()
    say(f"built; tiers here: {' '.join(tiers)}")
    work = Planting(copy, say, place / "logs")
    work.prepare(faults)
    for row in work.rows(faults, tiers):
        rows.append(row)
    say("done")
    return work.broken


def tiers_for(faults: list[Fault]) -> list[str]:
    """Choose the tiers to build: scalar and one with vectors, which build soonest, and those that a
    fault asks for.
    """
    here = default_library().isas()
    asked = {fault.tier for fault in faults}
    return [tier for place, tier in enumerate(here) if place < 2 or tier in asked]


def main(words: list[str] | None = None) -> int:
    given = arguments(words)
    faults = chosen(read(FOLDER), given.only)
    if not faults:
        print("no fault has these words: see --list", file=sys.stderr)
        return 2
    if given.list:
        return show(faults, ROOT)
    place = ROOT / "build" / "mutate"
    place.mkdir(parents=True, exist_ok=True)
    for each in (signal.SIGINT, signal.SIGTERM):  # a job begun with & ignores the first
        signal.signal(each, signal.default_int_handler)
    rows: list[Row] = []
    copy = Copy(ROOT, place / "tree", listed(ROOT), tiers_for(faults))
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another one runs in {place}: wait for it, or end it", file=sys.stderr)
            return 2
        try:
            broken = run(faults, copy, place, rows)
        except KeyboardInterrupt:
            table(rows, {})
            print(
                f"interrupted after {len(rows)} of {len(faults)} faults; nothing but the copy was"
                " touched"
            )
            return 130
    return table(rows, broken)


if __name__ == "__main__":
    sys.exit(main())

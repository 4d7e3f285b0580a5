"""Rewrite the parts of pages that show what a command prints about kept runs.

    python -m tests.outputs

A part lies between `<!-- output: kvbench ... -->` and `<!-- end -->`, each alone on a line. It is a
fenced or an indented block; an empty part is filled with a fenced one. `...` alone on a line stands
for lines that are left out. The cuts stay where they are: before and after `...` the new output
must have a line like the old one, numbers aside. If not, nothing is written: cut the part by hand.

Commands run in a temporary folder that links to results/, and may only read there.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from glob import glob
from pathlib import Path

from tests.raw import ROOT

NAMES = ("README.md", "suites/README.md", "kvbench/cli/README.md", "kernels/README.md")
BEGIN = re.compile(r"<!-- output: (kvbench .*?) -->$")
END, CUT = "<!-- end -->", "..."
# What a command must have, and what it must not have, to write nothing into a run.
READING = {
    "compare": ("", "--bless"),
    "explain": ("", "--out"),
    "history": ("--root results", "add|accept|--report"),
    "list": ("", "--out"),
    "report": ("--out |--format ", "--tables"),
    "score": ("--check |score results/", "--out|--pack|--resume"),
    "size": ("", "--out"),
}


class Unfit(Exception):
    """A part that cannot be rewritten. Says page, line and why."""


def pages() -> list[Path]:
    """The pages that may have such parts."""
    return [*(ROOT / name for name in NAMES), *sorted((ROOT / "results").glob("*.md"))]


def commands(text: str) -> list[str]:
    """The commands of a page's parts."""
    return [found[1] for line in text.splitlines() if (found := BEGIN.match(line))]


def refuse_writing(command: str) -> None:
    """Refuse a command that could write into a kept run, or that measures."""
    _, name, *_ = command.split()
    wanted, unwanted = READING.get(name, ("", ""))
    writes = unwanted and re.search(rf"(?:^| )(?:{unwanted})\b", command)
    if name not in READING or writes or not re.search(wanted, f"{command} "):
        raise Unfit(f"{command}: name a command that only reads, such as {', '.join(READING)}")


@cache
def printed(command: str) -> str:
    """Run a command and return its standard output."""
    refuse_writing(command)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "results").symlink_to(ROOT / "results")
        words = [
            path
            for word in shlex.split(command)[1:]
            for path in (sorted(glob(word, root_dir=folder)) if "*" in word else [word])
        ]
        done = subprocess.run(
            [sys.executable, "-m", "kvbench.cli", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise Unfit(f"{command}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def rewritten(text: str, run: Callable[[str], str] = printed, name: str = "") -> str:
    """Return the text of a page with its parts made anew by `run`."""
    lines, made, place = text.splitlines(), list[str](), 0
    while place < len(lines):
        made.append(lines[place])
        if begun := BEGIN.match(lines[place]):
            try:
                end = _end(lines, place)
                made += _part(lines[place + 1 : end], run(begun[1]))
            except Unfit as error:
                raise Unfit(f"{name}:{place + 1}: {error}") from None
            place = end - 1
        place += 1
    return "".join(f"{line}\n" for line in made)


def _end(lines: Sequence[str], begin: int) -> int:
    for place in range(begin + 1, len(lines)):
        if lines[place] == END:
            return place
    raise Unfit(f"the part has no {END}")


def _part(old: Sequence[str], said: str) -> list[str]:
    """Return the lines between both marks: as they were, with the new output in them."""
    new = [line.rstrip() for line in said.strip("\n").splitlines()]
    filled = [line for line in old if line.strip()]
    if filled and not filled[0].startswith("```"):
        shown = [line.removeprefix("    ").rstrip() for line in old]
        found = [f"    {line}".rstrip() for line in fitted(_bare(shown), new)]
    else:
        fence = filled[0] if filled else "```text"
        shown = list(old)[old.index(fence) + 1 :] if filled else ["```"]
        found = [fence, *fitted(_bare(shown[: shown.index("```")]), new), "```"]
    return ["", *found, ""]


def fitted(shown: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the output `new`, cut where `shown` is cut."""
    pieces = [list[str]()]
    for line in shown:
        if line.strip() == CUT:
            pieces.append([])
        else:
            pieces[-1].append(line)
    found, place, last = list[str](), 0, len(pieces) - 1
    for number, piece in enumerate(pieces):
        found += [_cut_of(shown)] * (number > 0)
        text = _bare(piece)
        if not text:
            found += [*new] * (last == 0) or [*piece]
            continue
        begin = _like(text[0], new, place, place) if number else 0
        aim = begin + len(text) - 1
        end = _like(text[-1], new, begin, aim) + 1 if number < last else len(new)
        lead = next(at for at, line in enumerate(piece) if line)
        found += [""] * lead + [*new[begin:end]]
        found += [""] * (len(piece) - lead - len(text)) * (number < last)
        place = end
    return found


def _bare(lines: Sequence[str]) -> list[str]:
    """Without blank lines at both ends."""
    return "\n".join(lines).strip("\n").splitlines()


def _cut_of(shown: Sequence[str]) -> str:
    """The line that stands for what is left out, with its indentation."""
    return next((line for line in shown if line.strip() == CUT), CUT)


def _like(line: str, new: Sequence[str], begin: int, aim: int) -> int:
    """The place of the line that is like `line`, from `begin` on, nearest to `aim`. The strictest
    likeness that any line has counts.
    """
    for likeness in (str, _numberless, _first_words):
        places = [at for at in range(begin, len(new)) if likeness(new[at]) == likeness(line)]
        if places and likeness(line):
            return min(places, key=lambda at: abs(at - aim))
    raise Unfit(f"the output has no line like {line.strip()!r} any more: cut it anew")


def _numberless(line: str) -> str:
    return " ".join(re.sub(r"[+-]?\d[\d.,]*", "#", line).split())


def _first_words(line: str) -> str:
    """The text before the first number, if it has two letters or more."""
    found = " ".join(re.split(r"[+-]?\d", line, maxsplit=1)[0].split())
    return found if len(found) > 1 else ""


def main() -> None:
    """Rewrite all pages, or none."""
    made = {page: rewritten(page.read_text(), name=str(page.relative_to(ROOT))) for page in pages()}
    for page, text in made.items():
        if text != page.read_text():
            page.write_text(text)
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    try:
        main()
    except Unfit as error:
        sys.exit(str(error))

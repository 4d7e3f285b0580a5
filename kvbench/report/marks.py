"""Marked parts of Markdown pages: what stands between `<!-- kvbench: NAME WORDS -->` and
`<!-- end -->`, each alone on a line, is made by a command. All else is kept byte for byte.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvbench.errors import BadArgument

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MARK = re.compile(r"<!--\s*kvbench:(.*)-->\s*")
_OTHER = re.compile(r"<!--\s*output:.*-->\s*")  # parts that another tool makes
_END = re.compile(r"<!--\s*end\s*-->\s*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")  # begins and ends a block of code
_FORM = "<!-- kvbench: NAME WORDS --> and <!-- end -->, each alone on a line"


@dataclass(frozen=True, slots=True)
class Mark:
    """The first line of a marked part. `line`: its number, from 1 on."""

    page: Path
    line: int
    name: str
    words: tuple[str, ...]

    def refused(self, what: str, hint: str) -> BadArgument:
        """The error that names the page and the line."""
        return _refused(self.page, self.line, what, hint)


def filled(page: Path, text: str, make: Callable[[Mark], Sequence[str]]) -> str:
    """The text of a page with the lines that `make` returns in its marked parts. Line ends are
    those of the mark.
    """
    return "".join(_filled(page, _LINES.findall(text), make))


def _filled(page: Path, lines: list[str], make: Callable[[Mark], Sequence[str]]) -> Iterator[str]:
    fence, place = "", 0
    while place < len(lines):
        line = lines[place]
        yield line
        fence = _fenced(line, fence)
        marked = _MARK.fullmatch(line) if not fence else None
        if marked or not fence and _OTHER.fullmatch(line):
            end = _end(page, lines, place)
            if marked:
                name, *words = marked[1].split() or [""]
                found = make(Mark(page, place + 1, name, tuple(words)))
                newline = "\r\n" if line.endswith("\r\n") else "\n"
                yield from (each + newline for each in ("", *found, ""))
            else:
                yield from lines[place + 1 : end]
            yield lines[end]
            place = end
        elif not fence and _END.fullmatch(line):
            raise _refused(page, place + 1, "<!-- end --> ends no marked part", f"write {_FORM}")
        place += 1


def _fenced(line: str, fence: str) -> str:
    """The sign of the block of code that goes on after this line; empty outside of one."""
    found = _FENCE.match(line)
    if not found:
        return fence
    if not fence:
        return found[1]
    closes = found[1].startswith(fence) and not line[found.end() :].strip()
    return "" if closes else fence


def _end(page: Path, lines: Sequence[str], begin: int) -> int:
    """The place of the end of the part that begins there, before which no other part begins."""
    for place in range(begin + 1, len(lines)):
        if _END.fullmatch(lines[place]):
            return place
        if _MARK.fullmatch(lines[place]) or _OTHER.fullmatch(lines[place]):
            break
    raise _refused(page, begin + 1, "this marked part has no end", f"write {_FORM}")


def _refused(page: Path, line: int, what: str, hint: str) -> BadArgument:
    return BadArgument(f"{page}, line {line}: {what}", hint)

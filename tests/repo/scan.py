"""Find the numbers of a page, and those that no sentence of tests/repo/numbers.py covers.

A number is written in digits, or is a word such as "twelve". These are left out: parts that another
test compares (`<!-- kvbench: -->` and `<!-- output: -->`), blocks of YAML, C and Python, commands,
inline code, targets of links, and names such as f16 or Llama-3-8B.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_WORDS = """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
million billion dozen half halves third thirds quarter quarters fifth fifths tenth tenths twentieth
hundredth twice double triple sixth eighth tenfold twofold
"""
WORDS = _WORDS.split()
_DIGITS = r"[½¼¾]|\.\d+|[+-]?\d+(?:,\d{3})*(?:\.\d+)*\w*"
NUMBER = re.compile(rf"(?<![\w.])(?:{_DIGITS}|(?:{'|'.join(WORDS)})(?!\w))", re.IGNORECASE)
# What numbers.py need not cover, and tests that compare it.
SKIPPED = (
    re.compile(r"^<!-- kvbench: .*?^<!-- end -->$", re.MULTILINE | re.DOTALL),
    re.compile(r"^<!-- output: kvbench [^\n]*? -->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL),
    re.compile(r"^```(?:yaml|c|python|toml|json)\n.*?^```$", re.MULTILINE | re.DOTALL),
)
_FENCED = re.compile(r"^```(?:sh|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^    (?:kvbench|cc|make|pip|uvx|python) .*$", re.MULTILINE)
_COMMENT = re.compile(r"(?:^| )#.*")  # behind a command: it may make a claim
_FENCE = re.compile(r"^```\w*$", re.MULTILINE)  # of other blocks, whose numbers count
NAMES = (
    re.compile(r"`[^`]*`"),
    re.compile(r"\]\([^)]*\)"),  # of a link
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"\b[A-Za-z]\w*(?:[-.]\w+)*-\d[\w.]*(?:-\w+)*"),  # Llama-3.2-1B, AVX-512, zen4-kvm-2
    re.compile(r"\b[A-Za-z_]+\d\w*"),  # f16, q4_0, L3, float64
    re.compile(r"\b(?:Zen|C) \d[\d.]*"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page in a form that sentences are searched in: `text` has single spaces between words,
    `numbers` the same without names, `lines` the line of each character.
    """

    text: str
    numbers: str
    lines: tuple[int, ...]


def page(source: str) -> Page:
    """Read a page."""
    left = source
    for pattern in SKIPPED:
        left = pattern.sub(_blank, left)
    left = _FENCED.sub(lambda found: _commands(found[0]), left)
    left = _FENCE.sub(_blank, left)
    left = _INDENTED.sub(lambda found: _commands(found[0]), left)
    bare = left
    for pattern in NAMES:
        bare = pattern.sub(_blank, bare)
    # of each run of white space the first character stays
    kept = [
        at
        for at, letter in enumerate(left)
        if not (letter.isspace() and left[at - 1 : at].isspace())
    ]
    return Page(
        text="".join(" " if left[at].isspace() else left[at] for at in kept),
        numbers="".join(" " if bare[at].isspace() else bare[at] for at in kept),
        lines=tuple(_line_numbers(source, kept)),
    )


def uncovered(found: Page, sentences: Iterable[str], allowed: Iterable[str]) -> Iterator[str]:
    """Tell each number that lies in none of the sentences, nor in an allowed phrase: its line, and
    the words around it. `allowed`: patterns.
    """
    covered = set[int]()
    patterns = [*map(re.escape, map(flat, sentences)), *allowed]
    for pattern in patterns:
        for place in re.finditer(pattern, found.text, re.IGNORECASE):
            covered.update(range(*place.span()))
    for number in NUMBER.finditer(found.numbers):
        if not covered.issuperset(range(*number.span())):
            around = found.text[max(0, number.start() - 40) : number.end() + 40]
            yield f"{found.lines[number.start()]}: {number[0]!r} in {around!r}"


def flat(text: str) -> str:
    """With single spaces."""
    return " ".join(text.split())


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"\S", " ", found[0])


def _commands(lines: str) -> str:
    """Without the commands; comments stay."""
    return "\n".join(
        " " * (found.start() if (found := _COMMENT.search(line)) else len(line))
        + (found[0] if found else "")
        for line in lines.split("\n")
    )


def _line_numbers(source: str, places: Iterable[int]) -> Iterator[int]:
    line, last = 1, 0
    for place in places:
        line += source.count("\n", last, place)
        last = place
        yield line

"""In every file written by hand, lines end at column 100, and files are short. Ruff limits
functions to 25 statements.
"""

import json
import re
from fnmatch import fnmatch
from functools import cache

from tests.raw import ROOT

COLUMNS = 100

# Of these files, lines with this pattern may be longer.
EXEMPT = [
    ("*.md", r"^\|", "a row of a table"),
    ("*.md", r"^<!-- output: ", "a command whose output follows"),
    ("results/engine-at-8k.md", r"^  (KV|q8_0) ", "a table that kvbench explain prints"),
    ("*", r"^\W*\S*https?://\S+$", "a link"),
    ("suites/models.toml", r"^weights = \{", "the weights of one model"),
    ("tests/cli/schema_keys.txt", "", "the keys of one object"),
    ("tests/exports/golden/*", "", "written by an export"),
    (
        "results/scores.md",
        r"^(score|  attention|  other shapes|  latency|  \d bits)",
        "printed by kvbench score",
    ),
    ("results/*/*", "", "written by kvbench"),
]
LENGTHS = [("kernels/abi.h", 500), ("*.[ch]", 300), ("*.py", 450)]  # of files: the first that fits


def written():
    """Return name and lines of every text file that git does not ignore. Of a notebook these are
    its cells' lines.
    """
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()} | {
        ".git"
    }
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if any(fnmatch(part, word) for part in parts for word in ignored) or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        yield "/".join(parts), text.splitlines()


@cache
def texts():
    return dict(written())


def exempt(name, line):
    return any(fnmatch(name, files) and re.search(words, line) for files, words, _ in EXEMPT)


def test_lines_end_at_column_100():
    assert len(texts()) > 500
    long = [
        f"{name}:{number}"
        for name, lines in texts().items()
        for number, line in enumerate(lines, 1)
        if len(line) > COLUMNS and not exempt(name, line)
    ]
    assert not long, f"{len(long)} lines are too long: {', '.join(long[:20])}"


def test_every_exemption_is_needed():
    """Exemptions for links are not checked, because links come and go."""
    for files, words, why in EXEMPT:
        long = (
            line
            for name, lines in texts().items()
            if fnmatch(name, files)
            for line in lines
            if len(line) > COLUMNS and re.search(words, line)
        )
        assert why == "a link" or any(long), f"{files}: no line is {why} and too long"


def test_files_are_short():
    for name, lines in texts().items():
        most = next((most for files, most in LENGTHS if fnmatch(name, files)), len(lines))
        assert len(lines) <= most, f"{name} has {len(lines)} lines, and {most} are allowed"

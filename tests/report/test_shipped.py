"""What the shipped pages and READMEs quote of a run is what that run says.

Three kinds of quotes: text that a command prints (`PRINTED`), sentences of a report (`SAID`) and
numbers that are computed (`COMPUTED`). Each names the file and finds its place there by a pattern.
"""

import csv
import re
import shlex

import pytest

from tests.cli.test_cli import output_of
from tests.raw import ROOT
from tests.report.texts import plain_text

RESULTS = ROOT / "results"
QUICK = "results/zen4-kvm-2/quick"
PAGES = sorted(RESULTS.glob("*/*/report/index.html"))
# A file; what stands around the block that it quotes; the command that prints all of it, or
# none: the report. `...` leaves something out.
PRINTED = (
    ("README.md", r"The last lines, from.*?:\n\n(.*?)\n\n(?=\S)", ""),
    *(
        ("kvbench/cli/README.md", rf"<!-- output: {command} -->\n\n```text\n(.*?)\n```", command)
        for command in (
            "kvbench size llama-3-8b --context 4096 --budget 40GiB --lengths uniform:1-4096"
            f" --machine {QUICK}",
            f"kvbench explain gpt-oss-20b --machine {QUICK} --measured 5.2@32k",
            "kvbench explain llama-3-8b --weights 16GB --machine results/zen4-kvm-2/peers"
            " --engine ggml --dtype f16 --measured 1.62@4k",
            "kvbench explain llama-3-8b --draft 3 --accept .7,.45,.33"
            " --machine results/zen5-kvm-2/speculate",
        )
    ),
)

# A file, and what stands around a list of sentences that a page has.
SAID = (("results/README.md", r"\nFrom \[a `quick` run\].*?:\n\n(.*?)\n\n(?=\S)"),)


def flat(text):
    return " ".join(text.split())


def quoted(file, pattern):
    found = re.search(pattern, (ROOT / file).read_text(), re.DOTALL)
    assert found, f"{file} quotes no run there any more: {pattern}"
    return found[1]


@pytest.mark.parametrize(("file", "pattern", "command"), PRINTED)
def test_what_a_readme_says_that_a_command_prints(
    file, pattern, command, shipped, monkeypatch, capsys
):
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)[1:]
    said = output_of(capsys, *words) if words else (shipped / "terminal.txt").read_text()
    for part in re.split(r"^ *\.\.\.$", quoted(file, pattern), flags=re.MULTILINE):
        assert flat(part) in flat(said)


@pytest.mark.parametrize(("file", "pattern"), SAID)
def test_what_a_readme_says_of_a_run(file, pattern, shipped):
    page = plain_text((shipped / "index.html").read_text())
    for line in re.split(r"^- ", quoted(file, pattern), flags=re.MULTILINE):
        for sentence in re.split(r"(?<=[.?]) (?=[A-Z\d])", flat(line)):
            assert sentence in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parts[-4])
def test_a_shipped_page_is_that_of_its_run(page, shown):
    made = shown(page.parts[-4])
    assert plain_text((made / "index.html").read_text()) == plain_text(page.read_text())
    for figure in page.parent.glob("figures/*.csv"):
        assert rounded((made / "figures" / figure.name).read_text()) == rounded(figure.read_text())


def rounded(text):
    """Round numbers to 12 digits: the last digits of a sum depend on the CPU."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.12g}", text)


# ---- computed ------------------------------------------------------------------------------------


WORDS = ("no", "one", "two", "three", "four", "five", "six")


def test_the_gates():
    with (RESULTS / "zen3-kvm-2" / "gate" / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    text = flat((RESULTS / "README.md").read_text())
    said = re.search(
        r"of (\d+) gates: nothing red in (\d+) of one build, (\d+) of the same code linked anew and"
        r" (\d+) beside another program; red in all (\d+) where some kernels read a fifth or a"
        r" tenth of their rows twice, and in (\w+) of the (\w+) where it was a twentieth",
        text,
    )
    kinds = [sum(row["exercise"] == kind for row in rows) for kind in ("same", "rebuild")]
    disturbed = sum(row["exercise"] == "contaminated" for row in rows)
    slow = [row for row in rows if row["exercise"] == "slow"]
    small = [row for row in slow if row["case"].endswith(" 5%")]
    red = sum(row["verdict"] == "REGRESSION" for row in small)
    counts = [len(rows), *kinds, disturbed, len(slow) - len(small)]
    assert [int(number) for number in said.groups()[:5]] == counts
    assert (said[6], said[7]) == (WORDS[red], WORDS[len(small)])
    for row in rows:
        if row not in small:
            assert (row["verdict"] == "REGRESSION") == (row["exercise"] == "slow")

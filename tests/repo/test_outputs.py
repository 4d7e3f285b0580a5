"""Pages show what commands print today; and a part of a page is rewritten where it is cut."""

import pytest

from tests.outputs import Unfit, commands, pages, refuse_writing, rewritten
from tests.raw import ROOT

SHOWING = [page for page in pages() if commands(page.read_text())]
OLD = """\
Before.

<!-- output: kvbench size gpt-2 -->

{}

<!-- end -->

After.
"""
SAID = "a 10 GB\n\nrows 2\nc 3 times\nd\ne 5 (4 to 6)\n"


def remade(shown):
    asked = []

    def run(command):
        asked.append(command)
        return SAID

    made = rewritten(OLD.format(shown), run, "page.md")
    assert asked == ["kvbench size gpt-2"]
    return made


@pytest.mark.parametrize("page", SHOWING, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_its_commands_print(page):
    text = page.read_text()
    assert rewritten(text, name=str(page.relative_to(ROOT))) == text, "run python -m tests.outputs"


def test_there_is_a_page_that_shows_something():
    assert SHOWING


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("", "```text\na 10 GB\n\nrows 2\nc 3 times\nd\ne 5 (4 to 6)\n```"),
        ("```text\nold\n```", "```text\na 10 GB\n\nrows 2\nc 3 times\nd\ne 5 (4 to 6)\n```"),
        ("    old", "    a 10 GB\n\n    rows 2\n    c 3 times\n    d\n    e 5 (4 to 6)"),
        ("```text\na 9 GB\n...\n```", "```text\na 10 GB\n...\n```"),
        ("    ...\n    c 77 times\n    d\n    ...", "    ...\n    c 3 times\n    d\n    ..."),
        (
            "```text\na 9 GB\n...\nd\ne 7 (1 to 9)\n```",
            "```text\na 10 GB\n...\nd\ne 5 (4 to 6)\n```",
        ),
        # the words after the number have changed: those before it still match
        ("```text\n...\n\nrows 9 of 10\n\n...\n```", "```text\n...\n\nrows 2\n\n...\n```"),
    ],
)
def test_it_stays_cut_where_it_was(shown, wanted):
    assert remade(shown) == OLD.format(wanted)


@pytest.mark.parametrize("shown", ["```text\nx\n...\n```", "```text\n...\nx 3 times\n```"])
def test_a_line_at_a_cut_that_is_gone_is_named(shown):
    with pytest.raises(Unfit, match=r"page\.md:3: the output has no line like 'x"):
        remade(shown)


def test_a_part_without_an_end_is_refused():
    with pytest.raises(Unfit, match=r"page\.md:3: the part has no <!-- end -->"):
        rewritten(OLD.replace("<!-- end -->", ""), lambda command: "", "page.md")


@pytest.mark.parametrize(
    "command",
    [
        "kvbench sweep smoke",
        "kvbench report results/zen4-kvm-2/quick",
        "kvbench report results/zen4-kvm-2 --tables",
        "kvbench compare results/a/quick results/b/quick --bless",
        "kvbench history add results/a/quick --root results",
        "kvbench history",
        "kvbench score --out runs/score",
        "kvbench score --pack results/a/score --out results/a/score.tar.gz",
        "kvbench size gpt-2 --out here",
    ],
)
def test_a_command_that_writes_or_measures_is_refused(command):
    with pytest.raises(Unfit, match="only reads"):
        refuse_writing(command)


@pytest.mark.parametrize(
    "command",
    [
        "kvbench report results/zen4-kvm-2/quick --format md",
        "kvbench report results/zen4-kvm-2/quick --out report",
        "kvbench score --check results/zen4-kvm-2/score.tar.gz",
        "kvbench score results/zen4-kvm-2/score.tar.gz",
        "kvbench history --root results",
        "kvbench explain gemma-3-4b --machine results/zen4-kvm-2/quick",
    ],
)
def test_a_command_that_reads_is_taken(command):
    refuse_writing(command)

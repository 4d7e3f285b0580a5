"""Marked parts of Markdown: what is replaced, what is kept, and what is refused."""

from pathlib import Path

import pytest

from kvbench.errors import BadArgument
from kvbench.report.marks import filled

PAGE = Path("a/page.md")


def called(mark):
    """What a mark asks for, as its only line."""
    return [" ".join((mark.name, *mark.words))]


def made(text):
    return filled(PAGE, text, called)


@pytest.mark.parametrize("between", ["", "old\n", "\nold\n\n| a |\n", "```\nopen\n"])
def test_what_lies_between_is_replaced(between):
    text = f"# A\n\n<!-- kvbench: screen x/y short -->\n{between}<!-- end -->\nB  \n"
    found = "# A\n\n<!-- kvbench: screen x/y short -->\n\nscreen x/y short\n\n<!-- end -->\nB  \n"
    assert made(text) == found and made(found) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no newline at the end",
        "a\r\nb\rc\x0c\u2028d\n",
        "`<!-- kvbench: scores -->` within a line\n",
        "    <!-- kvbench: scores -->\n",
        "```text\n<!-- kvbench: scores -->\n```\n",
        "~~~~\n<!-- end -->\n~~~\n<!-- kvbench: x -->\n~~~~\n",
        "<!-- output: kvbench list suites -->\n```\n<!-- kvbench: x\n```\n<!-- end -->\n",
        "<!-- another comment -->\n",
    ],
)
def test_all_else_is_kept(text):
    assert made(text) == text


def test_code_within_a_line_opens_no_block():
    text = "```x``` is code.\n<!-- kvbench: scores -->\n<!-- end -->\n"
    assert "\n\nscores\n\n<!-- end -->" in made(text)


def test_several_parts_and_line_ends_of_windows():
    text = "<!--kvbench: a-->\r\n<!--end-->\r\nx\r\n<!-- kvbench:b  c -->\r\nold\r\n<!-- end -->"
    assert made(text) == (
        "<!--kvbench: a-->\r\n\r\na\r\n\r\n<!--end-->\r\nx\r\n"
        "<!-- kvbench:b  c -->\r\n\r\nb c\r\n\r\n<!-- end -->"
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a\n<!-- kvbench: scores -->\nb\n", 2, "no end"),
        ("<!-- kvbench: a -->\n<!-- kvbench: b -->\n<!-- end -->\n", 1, "no end"),
        ("<!-- kvbench: a -->\n<!-- output: kvbench list -->\n<!-- end -->\n", 1, "no end"),
        ("<!-- output: kvbench list -->\n", 1, "no end"),
        ("a\n\n<!-- kvbnech: scores -->\n<!-- end -->\n", 4, "ends no marked part"),
        ("text <!-- kvbench: scores -->\n<!-- end -->\n", 2, "ends no marked part"),
        ("<!-- kvbench: a -->\n<!-- end -->\n<!-- end -->\n", 3, "ends no marked part"),
    ],
)
def test_what_is_refused_is_named(text, line, words):
    with pytest.raises(BadArgument, match=rf"a/page.md, line {line}: .*{words}"):
        made(text)


def test_a_mark_refuses_by_its_own_line():
    def refuse(mark):
        raise mark.refused("it is odd", "write another")

    with pytest.raises(BadArgument, match=r"a/page.md, line 3: it is odd \(write another\)"):
        filled(PAGE, "a\r\n\r\n<!-- kvbench: odd -->\r\n<!-- end -->\r\n", refuse)

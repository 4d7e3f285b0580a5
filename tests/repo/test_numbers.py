"""Each number on README.md and on the pages of results/ is what its source says."""

import pytest

from tests.raw import ROOT
from tests.repo.numbers import ALLOWED, SENTENCES
from tests.repo.scan import flat, page, uncovered

PAGES = ("README.md", *(f"results/{path.name}" for path in (ROOT / "results").glob("*.md")))
HELP = (
    "Say it in words, show the output of a command in a part `<!-- output: kvbench ... -->`, or add"
    " the sentence and its source to tests/repo/numbers.py"
)


@pytest.mark.parametrize("name", PAGES)
def test_each_number_has_a_source(name):
    found = page((ROOT / name).read_text())
    texts = [sentence.text() for sentence in SENTENCES.get(name, ())]
    missing = [text for text in texts if flat(text) not in found.text]
    assert not missing, f"{name} does not say what the source says: {missing}"
    lacking = [f"{name}:{each}" for each in uncovered(found, texts, ALLOWED)]
    assert not lacking, "\n".join([*lacking, HELP])


@pytest.mark.parametrize("name", SENTENCES)
def test_a_template_states_no_number_itself(name):
    for sentence in SENTENCES[name]:
        fixed = page(sentence.template.replace("{", "`{").replace("}", "}`"))
        assert not [*uncovered(fixed, (), ALLOWED)], sentence.template


def test_every_page_with_sentences_exists():
    assert set(SENTENCES) <= set(PAGES)


# ---- what counts as a number ---------------------------------------------------------------------


PLANTED = """\
# Four pages

Llama-3-8B in f16 on AVX-512 takes 1,024 tokens, `--launches 12`, [64](page-3.md), and twelve
launches of 5 % at 32k. Score 1.0 of Zen 4; Python 3.11; two-core.

    kvbench sweep --launches 7  # about eight minutes
    other 9

```yaml
number: 99
```

<!-- kvbench: scores -->
55
<!-- end -->

<!-- output: kvbench list -->
66
<!-- end -->
"""


def numbers(text, sentences=(), allowed=()):
    return [each.split(" in ")[0] for each in uncovered(page(text), sentences, allowed)]


def test_numbers_are_found_with_their_lines():
    assert numbers(PLANTED) == [
        "1: 'Four'",
        "3: '1,024'",
        "3: '64'",
        "3: 'twelve'",
        "4: '5'",
        "4: '32k'",
        "4: '1.0'",
        "4: '3.11'",
        "4: 'two'",
        "6: 'eight'",
        "7: '9'",
    ]


def test_a_sentence_covers_its_numbers_over_line_ends():
    sentences = ("twelve launches of 5 %", "Score 1.0", "other 9")
    left = numbers(PLANTED, sentences, (r"four pages", r"\btwo-core\b"))
    assert left == ["3: '1,024'", "3: '64'", "4: '32k'", "4: '3.11'", "6: 'eight'"]


def test_another_number_is_not_covered():
    assert numbers("It has 13 rows.", ("It has 12 rows.",)) == ["1: '13'"]


@pytest.mark.parametrize(
    "text",
    [
        "```text\n4321 tokens/s\n```\n",
        "```\n4321 tokens/s\n```\n",
        "```sh\n# 4321 tokens/s\nkvbench sweep\n```\n",
        "    AMD EPYC reaches\n    4321 tokens/s\n\nend\n",
        "<!-- output: uname -a -->\n4321 tokens/s\n<!-- end -->\n",
        "<!-- output: kvbench list --> \n4321 tokens/s\n<!-- end -->\n",
    ],
)
def test_a_block_that_no_other_test_compares_is_searched(text):
    """A fence, a comment, a screen, a part that is no command of ours or has a blank behind it."""
    (found,) = numbers(text)
    assert found.endswith(": '4321'")


@pytest.mark.parametrize("text", [".5 of the time", "½ of it", "a sixth", "tenfold", "double"])
def test_numbers_in_other_forms(text):
    assert len(numbers(text)) == 1

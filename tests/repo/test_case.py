"""The numbers of results/engine-at-8k.md are those of the kept files."""

import pytest

from tests.raw import ROOT
from tests.repo.case import OWN, SENTENCES

PAGE = (ROOT / "results" / "engine-at-8k.md").read_text()


@pytest.mark.parametrize(("template", "values"), SENTENCES, ids=[each[0] for each in SENTENCES])
def test_a_sentence_has_the_values_of_the_files(template, values):
    assert template.format(*values()) in " ".join(PAGE.split())


def test_explain_is_asked_what_was_measured():
    asked = [line for line in (OWN / "measured.txt").read_text().splitlines() if line[:2] == "--"]
    assert len(asked) == 2 and all(line in PAGE for line in asked)

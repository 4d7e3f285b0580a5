"""A shipped report is the one that its run makes.

What pages quote of runs is compared by tests/repo: parts between marks by test_tables.py and
test_outputs.py, numbers in sentences by test_numbers.py.
"""

import re

import pytest

from tests.raw import ROOT
from tests.report.texts import plain_text

RESULTS = ROOT / "results"
PAGES = sorted((ROOT / "results").glob("*/*/report/index.html"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parts[-4])
def test_a_shipped_page_is_that_of_its_run(page, shown):
    made = shown(page.parts[-4])
    assert plain_text((made / "index.html").read_text()) == plain_text(page.read_text())
    for figure in page.parent.glob("figures/*.csv"):
        assert rounded((made / "figures" / figure.name).read_text()) == rounded(figure.read_text())


def rounded(text):
    """Round numbers to 12 digits: the last digits of a sum depend on the CPU."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.12g}", text)

"""The options on results/engine-at-8k.md are those that engine.py printed. Its numbers are checked
with those of all pages, by test_numbers.py.
"""

from tests.raw import ROOT
from tests.repo.case import OWN

PAGE = (ROOT / "results" / "engine-at-8k.md").read_text()


def test_explain_is_asked_what_was_measured():
    asked = [line for line in (OWN / "measured.txt").read_text().splitlines() if line[:2] == "--"]
    assert len(asked) == 2 and all(line in PAGE for line in asked)

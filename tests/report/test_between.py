"""A report of a run in which other memory is read between the passes of a layer in L3: what is left
of its gain is one number in all places, and is drawn where it was timed after enough bytes.
"""

import csv
import json

import pytest

from tests.report.between import planted, shares_of, weights
from tests.report.conftest import RUNS, told_of
from tests.report.consistency.reading import read
from tests.report.consistency.rules import conflicts
from tests.report.test_browser import opened

RUN = RUNS["zen5-kvm-2"]  # one that is decided on L3
L3 = 32 << 20
LAYER = "a layer's q4_0 weights (117 MiB)"


@pytest.fixture(scope="module")
def folders(once, tmp_path_factory):
    """Reports of a run with four values of it, and of one with a layer's weights alone."""
    runs = {"between": (shares_of(L3), ()), "weights": ({}, (weights(),))}

    def fill(name):
        left, also = runs[name]
        run = planted(tmp_path_factory.mktemp(name) / "run", RUN, left, also)
        return lambda folder: told_of(folder, run)

    return {
        name: once(f"shown-{name}", lambda folder, name=name: fill(name)(folder)) for name in runs
    }


@pytest.mark.parametrize("name", ["between", "weights"])
def test_no_two_places_disagree(name, folders):
    assert not [str(conflict) for conflict in conflicts(read(folders[name]))]


def test_another_number_is_found(folders):
    report = read(folders["between"])
    row = next(row for row in report.figures["between"] if row["bytes"] != "0")
    row["gain"] = str(1.2 * float(row["gain"]))
    assert {conflict.rule for conflict in conflicts(report)} == {"gain left"}


def test_the_planted_gain_is_said(folders):
    """0.8 and 0.4 of it are left, then nothing."""
    (family,) = json.loads((folders["between"] / "run.json").read_text())["answers"]["l3"][
        "families"
    ]
    gain = family["gain"]["figure"]["value"]
    found = [each["gain"]["figure"]["value"] for each in family["left"]]
    assert found == pytest.approx(
        [1 + share * (gain - 1) for share in shares_of(L3).values()], rel=0.04
    )
    assert [each["kept"] for each in family["left"]] == ["some", "some", "nothing", "nothing"]
    assert family["course"] == "falls"
    told = " ".join((folders["between"] / "terminal.txt").read_text().split())
    assert "some of the gain is left: " in told and "nothing of the gain is left: " in told
    assert "The more is read in between, the less is left; it surely rises nowhere." in told


def test_the_figure(folders):
    with (folders["between"] / "figures" / "between.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["share"]) for row in rows] == [0, 0.25, 0.5, 1, 2]
    assert not (folders["weights"] / "figures" / "between.csv").exists()


def test_both_values_stand_on_the_first_screen(browser, folders):
    with opened(browser, folders["weights"], width=1300, height=900) as page:
        tile = page.locator(".tile", has_text="Does L3 help?").inner_text()
        assert f"after {LAYER} were read in between" in tile and "not after other reads" in tile
        for part in page.locator("h1, .badge, .tile, #hero svg").all():
            box = part.bounding_box()
            assert box["y"] + box["height"] <= 900

"""The summary of a run, from made-up records: its numbers by hand, its words as people read
them.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.means.findings import findings
from kvbench.analysis.means.models import Geometry
from kvbench.model import Check
from kvbench.report.ending import summary, text
from kvbench.store import plain
from tests.made_run import DECODE, MACHINE, MIB, RUN, STORE, failed, probe, visit

HEAD, POSITION = DECODE, replace(DECODE, layout="position")
INSIDE = {"walked": 9 * MIB, "layers": 1}
FAR = [19.0, 20.0, 20.0, 20.0, 20.0, 21.0]


def rates(point, twin=20.0, core=80.0):
    return {"point": [point], "twin": [twin], "twin_ahead": [twin / 2], "core": [core]}


def summary_of(records, machine=MACHINE, **known):
    return summary(findings(RUN, records, machine, **known))


def whole():
    """Six launches: two layouts from memory, one of them in L3 too; copies; one point that always
    failed.
    """
    hot = replace(HEAD, residency="hot")
    records = [probe(n, rate) for n, rate in enumerate(FAR)]
    for n, noise in enumerate((0.98, 1.0, 1.0, 1.0, 1.0, 1.02)):
        records += [
            visit(n, rates(15.0 * noise, 20.0 * noise), HEAD),
            visit(n, rates(12.0 * noise), POSITION),
            visit(n, rates(50.0 * noise, 55.0), hot, **INSIDE),
            visit(n, {"point": [6.0], "copy": [8.0], "copy_nt": [12.0]}, STORE),
            failed(n, replace(POSITION, residency="hot"), error="it hung\nafter 300 s"),
        ]
    return records


def test_extremes():
    """By GB/s 12 to 50; by efficiency 12/20 to 50/55."""
    found = {f"{place.kind}, {place.rank}": place for place in summary_of(whole()).places}
    assert found["decode, fastest"].short == "decode head f16 hot"
    assert found["decode, slowest"].short == "decode position f16 rotate"
    assert found["decode, most efficient"].efficiency == pytest.approx(50 / 55)
    assert found["decode, least efficient"].name == POSITION.name
    assert found["decode, least efficient"].efficiency == pytest.approx(0.6)
    assert (found["stores, the only one"].gbps, found["stores, the only one"].witness) == (
        pytest.approx(6),
        "copy_nt",
    )
    assert len(found) == 5


def test_failures_are_told():
    found = summary_of(whole())
    assert (found.points, found.launches, found.failed) == (5, 6, 1)
    assert found.errors == ("decode position f16 hot: it hung\nafter 300 s",)
    shown = text(found)
    assert shown[:2] == [
        "5 points, 6 launches; 1 with errors",
        "  decode position f16 hot: it hung after 300 s",
    ]
    many = [failed(0, replace(HEAD, shape=replace(HEAD.shape, context=64 << n))) for n in range(9)]
    shown = text(summary_of(many))
    assert shown[0] == "9 points, 1 launch; 9 with errors" and shown[3] == "  and 7 more"


def test_verdicts_are_the_sentences_of_the_diagnosis():
    found = summary_of(
        whole(),
        models=[Geometry("small", 24, 8, 2, 64, 4096)],
        checks=[Check("load", "warn", "2", "")],
    )
    assert found.verdicts == tuple(sentence.text for sentence in found.diagnosis)
    assert found.verdicts[0].startswith(
        "Decode reads up to 15 GB/s from memory (decode head f16 rotate). That is 75% of a plain"
        " read"
    )
    assert [
        sentence.topic for sentence in found.diagnosis if sentence.topic in ("tokens", "doubt")
    ] == (["tokens", "doubt", "doubt"])
    assert "What may have disturbed the run: load (2)." in [line.strip() for line in text(found)]


def test_noise_is_the_width_of_the_intervals():
    """The seconds are as wide as 1/0.98 - 1/1.02 of the median; POSITION's efficiency varies with
    it, HEAD's does not.
    """
    noise = summary_of(whole()).noise
    wide = 1 / 0.98 - 1 / 1.02
    assert noise.gbps == pytest.approx(np.median([wide, wide, wide, 0]))
    assert noise.gbps_most == pytest.approx(np.quantile([wide, wide, wide, 0], 0.9))
    assert noise.efficiency == pytest.approx(np.median([0, 0.04, 0.04, 0]))
    assert noise.disturbed == 0
    alone = summary_of([visit(0, rates(15.0)), probe(0, 20.0)]).noise
    assert (alone.gbps, alone.efficiency_most) == (None, None)


@pytest.mark.parametrize(
    "records",
    [
        [],
        [probe(0, 20.0)],
        [failed(0, error="x" * 500)],
        [visit(0, {"point": [9.0], "copy": [12.0]}, STORE)],
        whole(),
    ],
)
def test_it_is_short_and_valid_json(records):
    found = summary_of(records)
    facts = json.loads(json.dumps(plain(found), allow_nan=False))
    assert facts["version"] == 1 and facts["run"] == RUN
    assert facts["points"] == len(
        {record.point for record in records if hasattr(record.point, "shape")}
    )
    lines = text(found)
    assert len(lines) <= 40 and max(map(len, lines)) <= 120
    assert not any("nan" in line or "None" in line for line in lines)

"""The summary of a run, from made-up records: its numbers by hand, its words as people read them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.frames import points
from kvbench.analysis.summary import plain, summary
from kvbench.report.sweep import text
from tests.made_run import DECODE, MACHINE, MIB, RUN, STORE, failed, probe, visit

HEAD, POSITION = DECODE, replace(DECODE, layout="position")
INSIDE = {"walked": 9 * MIB, "layers": 1}
FAR = [19.0, 20.0, 20.0, 20.0, 20.0, 21.0]


def rates(point, twin=20.0, core=80.0):
    return {"point": [point], "twin": [twin], "twin_ahead": [twin / 2], "core": [core]}


def summary_of(records, machine=MACHINE):
    launches = 1 + max((record.launch for record in records), default=-1)
    return summary(points(records, machine), machine, RUN, launches)


def whole():
    """Six launches: two layouts from memory, one of them in L3 too; copies; one point that always failed."""
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
    assert (found["stores, the only one"].gbps, found["stores, the only one"].witness) == (pytest.approx(6), "copy_nt")
    assert len(found) == 5


def test_a_point_has_one_line():
    lines = [line for line in text(summary_of(whole())) if line.startswith(("  decode,", "  stores,"))]
    assert [line[:40].split("  ")[1] for line in lines] == [
        "decode, fastest, most efficient",
        "decode, slowest, least efficient",
        "stores, the only one",
    ]


def test_failures_are_told():
    found = summary_of(whole())
    assert (found.points, found.launches, found.failed) == (5, 6, 1)
    assert found.errors == ("decode position f16 hot: it hung\nafter 300 s",)
    shown = text(found)
    assert shown[0] == "5 points, 6 launches; 1 with errors"
    assert shown[1] == "  decode position f16 hot: it hung after 300 s"


def test_many_failures_are_counted():
    many = [failed(0, replace(HEAD, shape=replace(HEAD.shape, context=64 << n))) for n in range(9)]
    shown = text(summary_of(many))
    assert shown[0] == "9 points, 1 launch; 9 with errors" and shown[3] == "  and 7 more"
    assert shown[4:] == ["", "  Noise: unknown, no point has more than one launch"]


def test_verdicts_name_their_denominators():
    dram, l3, stores = summary_of(whole()).verdicts
    assert dram == (
        "Decode from DRAM: 15 GB/s, 75% of the same threads' read ceiling of 20 GB/s (decode head f16 rotate)"
    )
    assert l3 == (
        "Faster than DRAM where slices fit L3: of 1 point, 1 confirmed; clearest decode head f16 hot: "
        "50 GB/s (49..51) against 20 GB/s (19..21) read from DRAM by the same threads"
    )
    token = 16 * MIB / 6e9 / 1024 * 1e6  # µs
    assert (
        stores
        == f"Stores, bulk: 6 GB/s, {token:.3g} µs for a token, 50% of a copy with non-temporal stores (bulk head f16)"
    )


def test_noise_is_the_width_of_the_intervals():
    """Of the seconds, 1/0.98 - 1/1.02 of the median; POSITION's efficiency varies with it, HEAD's does not."""
    noise = summary_of(whole()).noise
    wide = 1 / 0.98 - 1 / 1.02
    assert noise.gbps == pytest.approx(np.median([wide, wide, wide, 0]))
    assert noise.gbps_most == pytest.approx(np.quantile([wide, wide, wide, 0], 0.9))
    assert noise.efficiency == pytest.approx(np.median([0, 0.04, 0.04, 0]))
    assert noise.disturbed == 0
    told = " ".join(line.strip() for line in text(summary_of(whole())))
    assert "half of the points spread by up to 4.0%, of nine in ten by 4.0%; efficiency by 2.0% and 4.0%" in told


def test_one_launch_knows_no_noise():
    found = summary_of([visit(0, rates(15.0)), probe(0, 20.0)])
    assert (found.noise.gbps, found.noise.efficiency_most) == (None, None)
    assert "75% of the same threads' read ceiling" in found.verdicts[0]
    assert [(place.kind, place.rank) for place in found.places] == [("decode", "the only one")]


# ---- what is not known -----------------------------------------------------------------------------------------------


def test_without_ceilings_there_is_no_share():
    dram, l3 = summary_of([visit(0, rates(15.0))]).verdicts
    assert dram == (
        "Decode from DRAM: 15 GB/s (head f16); the share of read bandwidth is unknown: there is no read ceiling"
    )
    assert l3 == "Faster than DRAM where slices fit L3: not tested: no point lies in L3"


def test_without_known_caches_nothing_is_claimed():
    dram, l3 = summary_of([visit(0, rates(15.0)), probe(0, 20.0)], replace(MACHINE, caches=())).verdicts
    assert dram == "Decode from DRAM: unknown: no cache size is known"
    assert l3.endswith("not tested: no cache size is known")


def test_where_private_caches_hold_as_much_as_l3_another_number_of_threads_is_named():
    """2 x 12 MiB of L2 before 32 MiB of L3: 1.5 x 12 MiB of one thread are within 0.7 x 32 MiB, of two not."""
    large = tuple(replace(cache, size=12 * MIB) if cache.level == 2 else cache for cache in MACHINE.caches)
    (_, l3) = summary_of([visit(0, rates(15.0))], replace(MACHINE, caches=large, allowed=(0, 1))).verdicts
    assert l3.endswith("not testable at 2 threads; try --threads 1")


def test_a_rate_above_its_ceiling_is_suspect():
    records = [visit(n, rates(25.0)) for n in range(6)] + [probe(n, rate) for n, rate in enumerate(FAR)]
    assert (
        "125% of the same threads' read ceiling of 20 GB/s, more than there should be: suspect"
        in (summary_of(records).verdicts[0])
    )


def test_the_example_is_the_clearest_of_the_usual_case():
    contexts = (512, 1024, 2048)
    hot = [replace(HEAD, residency="hot", shape=replace(HEAD.shape, context=c, capacity=c)) for c in contexts]
    records = [probe(n, rate) for n, rate in enumerate(FAR)]
    for point, rate in zip(hot, (60.0, 10.0, 5.0), strict=True):
        records += [visit(n, rates(rate), point, **INSIDE) for n in range(6)]
    (_, l3) = summary_of(records).verdicts
    assert "of 3 points, 2 refuted, 1 confirmed; clearest head f16 t=2048: 5 GB/s" in l3


@pytest.mark.parametrize("records", [[], [probe(0, 20.0)], [failed(0)], [visit(0, rates(9.0), STORE)], whole()])
def test_it_is_short_and_valid_json(records):
    found = summary_of(records)
    facts = json.loads(json.dumps(plain(found), allow_nan=False))
    assert facts["version"] == 1 and facts["run"] == RUN
    assert facts["points"] == len({record.point for record in records if hasattr(record.point, "shape")})
    lines = text(found)
    assert len(lines) <= 25 and max(map(len, lines)) <= 120
    assert not any("nan" in line or "None" in line for line in lines)


def test_long_words_do_not_break_the_page():
    error = "the worker said " + "x" * 500
    records = [failed(0, error=error), *(visit(n, rates(9.0 + n), POSITION) for n in range(3))]
    assert max(map(len, text(summary_of(records)))) <= 120


def test_every_denominator_is_explained():
    lines = "\n".join(text(summary_of(whole())))
    assert "91% of twin" in lines and "twin: the same reads and nothing else" in lines
    assert "50% of copy_nt" in lines and "non-temporal" in lines

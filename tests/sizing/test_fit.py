"""Which cache holds a layer's slice, and how many tokens per second reads allow: thresholds and
rates by hand.

The machine: 4 cores with 32 KiB of L1 and 1 MiB of L2 each, on 32 MiB of L3; two threads.
"""

import json
from dataclasses import asdict, replace

import pandas as pd
import pytest

from kvbench.analysis.measured.machines import profile
from kvbench.errors import BadRun
from kvbench.model import Fact
from kvbench.results import load
from kvbench.sizing.known import here, known
from kvbench.store import plain
from tests.made_run import MACHINE, READ, probe
from tests.raw import ROOT
from tests.sizing.calculator import Case
from tests.sizing.made import GIB, MEASURED, MIB, NOWHERE, of_model, sized

HELD = {1: 2 * 0.5 * (32 << 10), 2: 2 * 0.8 * MIB, 3: 0.7 * 32 * MIB}  # of two threads
TOKEN = 2 * 8 * 128 * 2  # bytes of a token in a layer of llama-3-8b, f16


def test_levels():
    found = sized(of_model("llama-3-8b", context=4096)).fit
    assert [(x.level, x.capacity) for x in found.levels] == [
        (1, 64 << 10),
        (2, 2 * MIB),
        (3, 32 * MIB),
    ]
    assert {x.level: x.holds for x in found.levels} == {
        level: int(held) for level, held in HELD.items()
    }
    assert {x.level: x.context for x in found.levels} == {
        level: int(held / TOKEN) for level, held in HELD.items()
    }
    assert [x.fits for x in found.levels] == [False, False, True]
    assert (found.word, found.slice_bytes, found.cpus) == ("L3", 16 * MIB, (0, 1))
    assert all(x.gbps is None for x in found.levels)


@pytest.mark.parametrize("level", HELD)
def test_one_token_more_leaves_the_level(level):
    most = int(HELD[level] / TOKEN)
    for context, fits in ((most, True), (most + 1, False)):
        found = sized(of_model("llama-3-8b", context=context)).fit
        assert {x.level: x.fits for x in found.levels}[level] is fits
        assert (found.word == f"L{level}") is fits or level == 2


def test_lines_of_padded_rows_take_room_too():
    """80 elements of f16 end in the third line of a row."""
    assert sized(of_model("phi-2", context=1000)).fit.slice_bytes == 2 * 32 * 1000 * 192
    scaled = sized(of_model("phi-2", context=1000, dtype="i8", scale="f16")).fit
    assert scaled.slice_bytes == 2 * 32 * 1000 * (128 + 2)


def test_a_window_that_fits_never_leaves():
    case = Case(4, 8, 8, 128, 100_000, window=1024)  # 4 MiB of K and V in a layer
    assert [(x.fits, x.context is None) for x in sized(case).fit.levels] == [
        (False, False),
        (False, False),
        (True, True),
    ]
    hybrid = replace(case, window_every=4)  # one layer attends to everything
    assert [x.fits for x in sized(hybrid).fit.levels] == [False] * 3
    assert [x.context is None for x in sized(hybrid).fit.levels] == [False] * 3


# ---- tokens per second ---------------------------------------------------------------------------


def rate(case, known=MEASURED, **wanted):
    return sized(case, known, **wanted).tokens_per_second


def test_from_memory():
    """2 GiB at 20 GB/s, the best that was read there; a batch of two gets two tokens of a step."""
    found = rate(of_model("llama-3-8b", context=8192, batch=2)).kv
    assert (found.level, found.gbps, found.footprint, found.bytes) == (
        "DRAM",
        20.0,
        256 * MIB,
        2 * GIB,
    )
    assert found.tokens == pytest.approx(2 * 20e9 / (2 * GIB))
    assert (found.low, found.high) == (
        pytest.approx(0.9 * found.tokens),
        pytest.approx(1.1 * found.tokens),
    )


@pytest.mark.parametrize(
    ("layers", "expected"), [(4, ("L3", 80.0, 8 * MIB)), (16, ("mixed", 60.0, 16 * MIB))]
)
def test_what_a_cache_serves_is_held_against_that_cache(layers, expected):
    """16 MiB of all layers are in L3, whose best reads are those of 8 MiB. 64 MiB are less than
    memory and more than L3: reads of 16 MiB were faster than those of 64 can be.
    """
    found = rate(Case(layers, 8, 8, 128, 1024)).kv
    assert (found.level, found.gbps, found.footprint) == expected


def test_never_a_guess():
    found = rate(of_model("llama-3-8b", context=8192), NOWHERE, weights=1).weights
    assert (
        found.tokens is None and found.reason == "nothing was measured: name a run with --machine"
    )
    tiny = rate(Case(1, 1, 1, 64, 64)).kv
    assert tiny.tokens is None and tiny.reason.startswith("nothing as small as 16 KiB")


def decodes(*rows):
    """The columns of the table of points that count."""
    names = ("dtype", "layout", "group", "regime", "context", "gbps", "footprint", "short")
    found = pd.DataFrame(rows, columns=names)
    ends = {"": 1.0, "_low": 0.9, "_high": 1.1}
    rates = {f"kv_gbps{end}": times * found["gbps"] for end, times in ends.items()}
    return replace(MEASURED, decodes=found.assign(**rates, answer=False))


RUN = decodes(
    ("f16", "head", 4, "DRAM", 8192, 15.0, 300 * MIB, "flash"),
    ("f16", "head", 4, "DRAM", 8192, 16.0, 300 * MIB, "other"),
    ("f16", "head", 4, "DRAM", 512, 18.0, 300 * MIB, "short"),
    ("f16", "head", 1, "DRAM", 8192, 19.0, 300 * MIB, "plain"),
    ("f16", "paged", 4, "DRAM", 8192, 19.5, 300 * MIB, "paged"),
    ("f16", "head", 4, "L3", 8192, 60.0, 8 * MIB, "near"),
)


def test_a_measured_decode_goes_before_reads():
    """The fastest of this format, layout and group, at the nearest context, from where the cache
    lies.
    """
    case = of_model("llama-3-8b", context=8192)
    found = rate(case, RUN).kv
    assert (found.decode, found.gbps) == ("other", 16.0) and found.tokens == pytest.approx(
        16e9 / GIB
    )
    assert (found.low, found.high) == (
        pytest.approx(0.9 * found.tokens),
        pytest.approx(1.1 * found.tokens),
    )
    assert rate(replace(case, context=600, batch=8), RUN).kv.decode == "short"
    assert rate(replace(case, layout="paged"), RUN).kv.decode == "paged"
    assert "no decode" not in " ".join(sized(case, RUN).notes)


@pytest.mark.parametrize("host", ["zen4", "spr", "zen3"])
def test_a_measured_point_has_the_tokens_of_its_report(host):
    """Also with a query and an output, which are 1.6 % of the bytes at 512 tokens."""
    run = load(ROOT / "results" / f"{host}-kvm-2" / "quick")
    place, points = known(run.path), run.findings().points.set_index("name")
    own = run.tokens()[run.tokens()["model"].str.contains("llama-3-8b")]
    report, checked = own.set_index("name")["tokens_per_second"].to_dict(), 0
    report |= {row.point: row.speed.figure.value for row in run.findings().answers.decodes.rows}
    decodes = place.decodes[place.decodes["name"].isin(report)]
    for name, dtype, layout, context in decodes[["name", "dtype", "layout", "context"]].to_numpy():
        asked = of_model("llama-3-8b", dtype=dtype, layout=layout, context=context)
        found = rate(asked, place).kv
        if found.decode == points.loc[name, "short"]:
            checked += 1
            assert found.tokens == pytest.approx(report[name], rel=1e-9)
    assert checked > 10


def test_without_such_a_decode_reads_stand_and_it_is_said():
    found = sized(of_model("llama-3-8b", context=8192, dtype="i8"), RUN)
    assert found.tokens_per_second.kv.decode == "" and found.tokens_per_second.kv.gbps == 20.0
    assert "no decode of i8 in head layout, 4 query heads" in found.notes[0]


def test_weights_are_read_as_fast_as_reads():
    """1 GiB of K and V at 16 GB/s, 1 GiB of weights at 20: 2 GiB at 17.8."""
    found = rate(of_model("llama-3-8b", context=8192), RUN, weights=GIB).weights
    assert found.gbps == pytest.approx(2 / (1 / 16 + 1 / 20)) and found.decode == "other"
    assert found.tokens == pytest.approx(found.gbps * 1e9 / (2 * GIB))


# ---- machines in files ---------------------------------------------------------------------------

FACTS = {
    "quota": Fact(None, "", "none"),
    "core_kinds": Fact(None, "", "none"),
    "page_bytes": Fact(65536, "", "high"),
}


def written(path, records=(), **changes):
    facts = plain(profile(replace(MACHINE, facts=FACTS), records=records)) | changes
    path.write_text(json.dumps(facts))
    return path


def test_a_profile(tmp_path):
    records = [probe(launch, 20.0 + launch) for launch in range(9)]
    folder = tmp_path / "run"
    folder.mkdir()
    found = known(written(folder / "machine.json", records).parent)
    assert (
        found.cpus == (0, 1)
        and found.name == str(folder)
        and found.machine.caches == MACHINE.caches
    )
    assert [ceiling.median for ceiling in found.reads] == [24.0]
    assert sized(
        of_model("llama-3-8b", context=8192), found
    ).tokens_per_second.kv.tokens == pytest.approx(24e9 / GIB)
    assert known(folder / "machine.json").reads == found.reads


def test_of_as_many_threads_those_that_read_fastest_count(tmp_path):
    """In any order of the file; the largest number of threads counts, even if it is slower."""
    fast, slow = (replace(READ, cpus=cpus) for cpus in ((2, 3), (0, 1)))
    records = [probe(n, rate, of) for of, rate in ((slow, 20.0), (fast, 21.0)) for n in range(9)]
    assert known(written(tmp_path / "a.json", records)).cpus == (2, 3)
    assert known(written(tmp_path / "b.json", records[::-1])).cpus == (2, 3)
    most = [probe(n, 19.0, replace(READ, cpus=(0, 1, 2, 3))) for n in range(9)]
    assert known(written(tmp_path / "c.json", [*records, *most])).cpus == (0, 1, 2, 3)


def test_a_machine_that_was_not_measured(tmp_path):
    found = known(written(tmp_path / "identified.json"))
    assert found.reads == () and found.cpus == (0, 1, 2, 3)
    # 512 MiB are too much to fill up
    assert sized(Case(4, 8, 8, 128, 1024), found).allocated.page_bytes == 65536


def test_measured_capacities_stand_for_declared_ones(tmp_path):
    seen = {
        "level": 3,
        "declared": 32 * MIB,
        "effective": 10.0 * MIB,
        "low": 8.0 * MIB,
        "high": 12.0 * MIB,
        "note": "",
    }
    found = known(written(tmp_path / "shared.json", capacities=[seen]))
    levels = sized(of_model("llama-3-8b", context=4096), found).fit.levels
    assert (levels[-1].capacity, levels[-1].holds) == (10 * MIB, 7 * MIB)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"topology": 3}',
        '{"topology": {}}',
        '{"topology": {"cpus": [], "allowed": []}}',
    ],
)
def test_files_that_are_no_machine(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BadRun, match=r"x\.json cannot be used"):
        known(tmp_path / "x.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"ceilings": [{"op": "read"}]},
        {"ceilings": 3},
        {"capacities": [{}]},
        {"topology": json.loads(json.dumps(asdict(MACHINE)))},
        {"topology": json.loads(json.dumps(asdict(replace(MACHINE, allowed=(), facts=FACTS))))},
    ],
)
def test_damaged_profiles(tmp_path, changes):
    with pytest.raises(BadRun, match="cannot be used"):
        known(written(tmp_path / "x.json", **changes))


def test_this_machine():
    found = here()
    assert (
        found.cpus
        and found.reads == ()
        and sized(Case(1, 1, 1, 64, 64), found).fit.machine == "this machine"
    )

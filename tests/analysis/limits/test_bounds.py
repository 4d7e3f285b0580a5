"""Points above a roof: which roof, and why; and what a point says about L3. Rates are GB/s of six
launches unless stated otherwise.
"""

from dataclasses import replace

import pytest

from kvbench.analysis.limits.claims import claim
from kvbench.analysis.limits.frames import points
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Fact
from tests.made_run import DECODE, MACHINE, MIB, READ, STORE, probe, visit

FAR = [19.0, 20.0, 20.0, 20.0, 20.0, 21.0]  # read from DRAM
L2, L3 = {"walked": MIB, "layers": 1}, {"walked": 9 * MIB, "layers": 1}
FLAT = [1.0] * 6
NONE = "", "", False


def row_of(
    rates,
    ceiling=FAR,
    of=READ,
    *,
    noise=FLAT,
    point=DECODE,
    machine=MACHINE,
    change=lambda record: record,
    **facts,
):
    """The row of a point with these `rates`, by program, times the noise of each launch."""
    visits = [
        change(visit(n, {name: [rate * times] for name, rate in rates.items()}, point, **facts))
        for n, times in enumerate(noise)
    ]
    (row,) = points(
        [*visits, *(probe(n, rate, of) for n, rate in enumerate(ceiling))], machine
    ).to_dict("records")
    return row["above"], row["above_reason"], row["suspect"]


def beside(point, twin=30.0, core=60.0):
    return {"point": point, "twin": twin, "core": core}


@pytest.mark.parametrize(
    ("rates", "facts"),
    [
        (beside(18.0), {}),
        (beside(20.9), {}),  # over the ceiling's median, within its interval
        (beside(50.0, 55.0), L3),  # faster than DRAM, as a slice in L3 may be
        ({"point": 18.0}, {}),
    ],
)
def test_below_all_roofs(rates, facts):
    assert row_of(rates, **facts) == NONE


# ---- the ceiling ---------------------------------------------------------------------------------


LEVEL, SLOWER = "level with it", "what does less is slower"
BETWEEN = {"ceiling": [30.0] * 6, "of": replace(READ, bytes=48 * MIB), "walked": 40 * MIB}
# caches are declared too small, or were not swept
SMALL = {"point": replace(DECODE, residency="evicted"), "walked": MIB}


READS, ROWS, CORE = "the read ceiling", "reads of its own rows", "its core speed"
WALK, NEAR, FEW = "its window walk is slower", "its data lies as near", "too few launches"


@pytest.mark.parametrize(
    ("rates", "facts", "roof", "reason", "suspect"),
    [
        # six launches' interval is their range
        (beside(30.0, 60.0), {"noise": [*FLAT[1:], 0.69]}, "", "", False),
        (beside(25.0, 26.0), {}, READS, "its own reads exceed it too", False),
        (beside(35.0, 36.0), BETWEEN, READS, "between levels", False),
        (beside(25.0, 26.0), SMALL, READS, "it may lie nearer than memory", True),
        ({"point": 25.0}, {}, READS, SLOWER, True),
        (
            {"point": 25.0},
            {"ceiling": [8.0, 9.0, 15.0, 16.0, 20.0, 21.0]},
            READS,
            "the ceiling is unstable",
            True,
        ),
        (beside(25.0, 20.0), {}, ROWS, SLOWER, True),
        (beside(10.1, 10.0), {}, ROWS, LEVEL, False),
        (beside(10.1, 10.0), {"ceiling": []}, ROWS, LEVEL, False),
        (beside(50.0, 60.0, 35.0), L2, CORE, NEAR, False),
        (beside(50.0, 60.0, 35.0), L2 | {"core_level": "L2"}, CORE, NEAR, False),
        # a nearer window does not explain it
        (beside(50.0, 60.0, 35.0), L2 | {"core_level": "L1"}, CORE, SLOWER, True),
        # a small window has more ends, but not so many more
        (beside(10.0, 12.0, 9.0), {}, CORE, WALK, False),
        (beside(10.0, 12.0, 7.5), {}, CORE, SLOWER, True),
        (beside(10.0, 12.0, 9.9), {}, CORE, LEVEL, False),
        (beside(10.0, 12.0, 9.0), {"noise": FLAT[1:]}, CORE, FEW, False),
        (beside(10.0, 12.0, 7.0), {"noise": [1.0]}, CORE, SLOWER, True),  # by more than a third
        # the roof that is hardest to explain comes first
        (beside(25.0, 26.0, 15.0), {}, CORE, SLOWER, True),
    ],
)
def test_above_a_roof(rates, facts, roof, reason, suspect):
    assert row_of(rates, **facts) == (roof, reason, suspect)


def test_all_roofs_are_named():
    def also(rates):
        visits = [visit(n, {name: [rate] for name, rate in rates.items()}) for n in range(6)]
        (row,) = points([*visits, *(probe(n, 20.0) for n in range(6))], MACHINE).to_dict("records")
        return row["above"], row["above_also"]

    assert also(beside(25.0, 26.0, 15.0)) == (CORE, READS)
    assert also(beside(25.0, 20.0, 24.0)) == (ROWS, f"{READS}, {CORE}")


@pytest.mark.parametrize(("rate", "explained"), [(59.0, True), (61.0, False)])
def test_no_reason_explains_twice_a_roof(rate, explained):
    """A ceiling of 30 GB/s, between levels."""
    found = row_of(beside(rate, rate + 1, 90.0), **BETWEEN)
    assert found == (READS, "between levels", not explained)


def on_pages(huge, ceiling):
    """The verdict with these percentages of huge pages for the point and for the ceiling."""
    visits = [
        visit(n, {"point": [25.0]}, memory={"huge_bytes": huge, "resident_bytes": 100})
        for n in range(6)
    ]
    probes = [
        replace(probe(n, 20.0), memory={"huge_bytes": ceiling, "resident_bytes": 100})
        for n in range(6)
    ]
    (row,) = points(visits + probes, MACHINE).to_dict("records")
    return row["above_reason"]


def test_memory_on_other_pages_explains_it():
    assert on_pages(100, 10) == on_pages(71, 20) == "more of it is on huge pages"
    assert on_pages(69, 20) == SLOWER


# ---- twin, copies, core --------------------------------------------------------------------------


def test_queries_and_outputs_are_no_part_of_the_twin():
    """The twin does not read a tenth of the bytes. At the same rate the point takes a tenth
    longer.
    """

    def less(record):
        twin = replace(
            record.traffic["twin"], bytes_compulsory=0.9 * record.traffic["point"].bytes_compulsory
        )
        seconds = {"point": 1.0, "twin": 0.9, "core": 0.5}
        samples = tuple(
            replace(s, seconds=seconds[s.program] * s.passes, sample_time=0.0)
            for s in record.samples
        )
        return replace(record, samples=samples, traffic=record.traffic | {"twin": twin})

    records = [
        less(visit(n, {name: [rate] for name, rate in beside(10.0).items()})) for n in range(6)
    ]
    (row,) = points(records, MACHINE).to_dict("records")
    assert (row["above"], row["efficiency"], row["twin_gbps"]) == (
        "",
        pytest.approx(0.9),
        pytest.approx(row["gbps"]),
    )


COPIES = {"point": 16.0, "copy": 8.0, "copy_nt": 12.0}


COPY, STORES = "copies of as many bytes", "stores are dearer"


def test_a_store_above_its_copies():
    assert row_of(COPIES, [], point=STORE) == (COPY, SLOWER, True)
    ceiling = replace(READ, op="copy_nt")
    found = row_of(COPIES, [20.0] * 6, ceiling, point=STORE)
    assert found == (COPY, "its ceiling allows it", False)


def stored(share):
    """The verdict if this share of the bytes is stored."""

    def change(record):
        own = record.traffic["point"]
        narrow = replace(own, bytes_kv=own.bytes_compulsory * share)
        return replace(record, traffic=record.traffic | {"point": narrow})

    return change


def test_a_store_of_a_narrow_dtype_reads_more_than_it_stores():
    """It reads 4 bytes for each 2 that it stores."""
    narrow = {"point": STORE, "change": stored(1 / 3)}
    assert row_of(COPIES, [], **narrow) == (COPY, STORES, False)
    both = row_of(COPIES, [14.0] * 6, replace(READ, op="copy_nt"), **narrow)
    assert both == (COPY, STORES, False)


def test_fewer_stores_explain_no_more_than_they_can():
    """A third of the bytes are stores, in a copy half: 1.5 times as fast if loads cost nothing."""

    def found(rate, share, point=STORE):
        return row_of({"point": rate, "copy": 10.0}, [], point=point, change=stored(share))[1:]

    assert found(14.9, 1 / 3) == (STORES, False)
    assert found(15.1, 1 / 3) == (SLOWER, True)
    append = replace(STORE, op="append")
    assert found(14.9, 1 / 2, append) == ("it stores from a cache", False)
    assert found(15.1, 1 / 2, append) == (SLOWER, True)
    assert found(19.0, 0.1) == (STORES, False)
    assert found(48.4, 0.1) == (STORES, True)  # nothing explains 4.8 times
    of = replace(READ, op="copy")
    above = row_of({"point": 48.4, "copy": 50.0}, [10.0] * 6, of, point=STORE, change=stored(0.1))
    assert above == ("the copy ceiling", STORES, True)


# ---- peaks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trust", "reads", "reason", "suspect"),
    [
        ("high", [15.0] * 6, "caches hold more than thought", True),
        ("low", [15.0] * 6, "the peak is in doubt", False),
        ("high", [19.0] * 6, "reads exceed it too", False),
    ],
)
def test_above_the_theoretical_peak(trust, reads, reason, suspect):
    machine = replace(
        MACHINE, facts={"dram_peak": Fact(18.0, "modules", trust, "declared by the firmware")}
    )
    found = row_of(beside(20.0, 21.0), reads, machine=machine)
    assert found == ("the theoretical peak of memory", reason, suspect)
    assert row_of(beside(17.0, 21.0), [], machine=machine) == NONE
    assert row_of(beside(50.0, 55.0), [], machine=machine, **L3) == NONE


def test_an_unknown_peak_is_no_roof():
    machine = replace(
        MACHINE, facts={"dram_peak": Fact(None, "modules", "none", "only root may read them")}
    )
    assert row_of(beside(1e6, 2e6, 3e6), [], machine=machine) == NONE


def test_more_flops_than_its_instructions_allow():
    """16 MiB at 16.777216 GB/s take a millisecond: 200 MFLOP in it are 200 GFLOP/s."""
    rates, peak = beside(16.777216), replace(READ, op="flops", bytes=0)
    above = ("the peak of its instructions", SLOWER, True)
    assert row_of(rates, [100.0] * 6, peak, flops=2e8) == above
    assert row_of(rates, [250.0] * 6, peak, flops=2e8) == NONE


@pytest.mark.parametrize(
    ("dtype", "variant", "own"),
    [
        *((dtype, "dot", "dot8") for dtype in ("i8", "q8_0", "q4_0")),
        *((dtype, "dot", "dot16") for dtype in ("bf16", "e4m3", "e5m2")),
        *(("bf16", variant, "flops") for variant in ("flash", "twopass", "perhead")),
        ("f32", "round16", "flops"),
    ],
)
def test_products_have_a_peak_of_their_own(dtype, variant, own):
    """The peak of other products is not their roof."""
    point = replace(DECODE, variant=variant, dtype=dtype, isa="avx512")
    for op in ("flops", "dot8", "dot16"):
        peak = replace(READ, op=op, bytes=0, isa="avx512")
        above = ("the peak of its instructions", SLOWER, True) if op == own else NONE
        assert row_of(beside(16.777216), [100.0] * 6, peak, point=point, flops=2e8) == above


# ---- L3, by ratios of the same rounds: eight launches each ---------------------------------------

EVEN = tuple(1 + part / 100 for part in (-2, -1, -1, 0, 0, 1, 1, 2))


def ratio(middle, wide=1.0, launches=8):
    return Estimate.of([middle * (1 + wide * (part - 1)) for part in EVEN[:launches]])


def measured(near, memory, core=0.5, launches=8, wide=1.0):
    """Rates with these ratios: reads of the slice over reads of memory; the point over reads of
    memory, and over its core roof.
    """
    shares = {"memory": ratio(memory, wide, launches), "core": ratio(core), "rotated": ratio(2.0)}
    return PointRates({}, {}, shares, ratio(near, wide, launches))


@pytest.mark.parametrize(
    ("found", "word", "reason"),
    [
        (measured(3.0, 2.0), "confirmed", "reads of memory beside it"),
        (measured(3.0, 0.5, core=0.3), "refuted", "reads of memory beside it"),
        (measured(3.0, 1.0), "unstable", "reads of memory beside it"),
        # sure, but less than counts as a change; or more than counts, but not sure
        (measured(3.0, 1.02), "unstable", "reads of memory beside it"),
        (measured(3.0, 1.5, wide=40), "unstable", "reads of memory beside it"),
        # the core is the limit, above memory
        (measured(3.0, 2.0, core=0.98), "confirmed", "reads of memory beside it"),
        (measured(3.0, 0.9, core=0.95), "core-bound", "the core allows no more"),  # at its speed
        # the core alone allows 0.83 of the reads of memory
        (measured(3.0, 0.5, core=0.6), "core-bound", "the core allows no more"),
        (measured(3.0, 0.5, core=1.2), "not testable", "faster than its core speed"),
        # memory that is faster than L3
        (measured(0.8, 0.5, core=0.3), "refuted", "reads of memory beside it"),
        # L3 is not faster, so a faster point says nothing about it
        (measured(1.0, 2.0), "not testable", "L3 is read no faster than memory"),
        (measured(1.5, 2.0, wide=40), "not testable", "L3 is read no faster than memory"),
        (measured(3.0, 2.0, launches=6), "not testable", "too few launches"),
        (PointRates({}, {}, {"core": ratio(0.5)}), "not testable", "not timed"),
    ],
)
def test_claim(found, word, reason):
    said = claim(found, "L3")
    assert (said.word, said.why) == (word, reason)


def test_what_the_core_allows():
    """The point reaches half of plain reads of memory, and 60 % of its core speed."""
    assert claim(measured(3.0, 0.5, core=0.6), "L3").allowed == pytest.approx(0.5 / 0.6)


@pytest.mark.parametrize(
    ("regime", "word"),
    [("L1", "private-cache"), ("L2", "private-cache"), ("unknown", "not testable")],
)
def test_claims_elsewhere(regime, word):
    assert claim(measured(3.0, 2.0), regime).word == word
    assert claim(measured(3.0, 2.0), "DRAM") is claim(measured(3.0, 2.0), "mixed") is None

"""Points above a roof: which one, and what is said of it; and what a point says of L3. Rates are
GB/s of six launches unless told otherwise.
"""

from dataclasses import replace

import pytest

from kvbench.analysis.limits.bounds import Against, claim
from kvbench.analysis.limits.frames import points
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.rates import PointRates
from kvbench.model import Fact
from kvbench.regime import Regime
from tests.made_run import DECODE, MACHINE, MIB, READ, STORE, probe, visit

FAR = [19.0, 20.0, 20.0, 20.0, 20.0, 21.0]  # read from DRAM
L2, L3 = {"walked": MIB, "layers": 1}, {"walked": 9 * MIB, "layers": 1}
FLAT = [1.0] * 6


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
    """`rates` by program, times the noise of each launch."""
    visits = [
        change(visit(n, {name: [rate * times] for name, rate in rates.items()}, point, **facts))
        for n, times in enumerate(noise)
    ]
    (row,) = points(
        [*visits, *(probe(n, rate, of) for n, rate in enumerate(ceiling))], machine
    ).to_dict("records")
    return row["above"], row["above_reason"]


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
    assert row_of(rates, **facts) == ("", "")


# ---- the ceiling ---------------------------------------------------------------------------------


LEVEL = "less than 2% over the roof: level with it, as chance has it among many points"
SLOW_CORE = "suspect: the same kernel walks a window in a private cache more slowly"
NEARER = "its data lies in L2, as near as the window that the core roof walks"
BETWEEN = {"ceiling": [30.0] * 6, "of": replace(READ, bytes=48 * MIB), "walked": 40 * MIB}
# caches declared too small, or not swept
SMALL = {"point": replace(DECODE, residency="evicted"), "walked": MIB}
PROBE = "exceeds it too: the ceiling's probe walks more slowly"


@pytest.mark.parametrize(
    ("rates", "facts", "roof", "reason"),
    [
        # six launches' interval is their range
        (beside(30.0, 60.0), {"noise": [*FLAT[1:], 0.69]}, "", ""),
        (
            beside(25.0, 26.0),
            {},
            "read ceiling",
            f"its twin, the same reads and nothing else, {PROBE}",
        ),
        (
            beside(35.0, 36.0),
            BETWEEN,
            "read ceiling",
            "between levels, where less is faster: it walks 40 MiB, the ceiling's probe 48 MiB",
        ),
        (
            beside(25.0, 26.0),
            SMALL,
            "read ceiling",
            "suspect: its 1 MiB may lie nearer than DRAM: the ceiling's probe walks 256 MiB",
        ),
        ({"point": 25.0}, {}, "read ceiling", "suspect: its 256 MiB may be nearer than thought"),
        (
            {"point": 25.0},
            {"ceiling": [8.0, 9.0, 15.0, 16.0, 20.0, 21.0]},
            "read ceiling",
            "suspect: the launches of the ceiling itself disagree",
        ),
        (
            beside(25.0, 20.0),
            {},
            "twin",
            "suspect: its reads alone are slower; also above its read ceiling",
        ),
        (beside(10.1, 10.0), {}, "twin", LEVEL),
        (beside(10.1, 10.0), {"ceiling": []}, "twin", LEVEL),
        (beside(50.0, 60.0, 40.0), L2, "core roof", NEARER),
        (beside(50.0, 60.0, 40.0), L2 | {"core_level": "L2"}, "core roof", NEARER),
        # a nearer window explains nothing
        (beside(50.0, 60.0, 40.0), L2 | {"core_level": "L1"}, "core roof", SLOW_CORE),
        (beside(10.0, 12.0, 9.0), {}, "core roof", SLOW_CORE),
        (beside(10.0, 12.0, 9.9), {}, "core roof", LEVEL),
        (
            beside(10.0, 12.0, 9.0),
            {"noise": FLAT[1:]},
            "core roof",
            "too few launches (5) to tell it from chance",
        ),
        (beside(10.0, 12.0, 7.0), {"noise": [1.0]}, "core roof", SLOW_CORE),  # by more than a third
        # the hardest to explain
        (beside(25.0, 26.0, 20.0), {}, "core roof", f"{SLOW_CORE}; also above its read ceiling"),
    ],
)
def test_above_a_roof(rates, facts, roof, reason):
    assert row_of(rates, **facts) == (roof, reason)


@pytest.mark.parametrize(("rate", "explained"), [(59.0, True), (61.0, False)])
def test_no_reason_explains_twice_a_roof(rate, explained):
    """A ceiling of 30 GB/s, between levels."""
    roof, reason = row_of(beside(rate, rate + 1, 90.0), **BETWEEN)
    assert roof == "read ceiling"
    assert (
        reason.startswith("suspect: more than this, which explains no 2.0 times: ") is not explained
    )
    assert reason.endswith(
        "between levels, where less is faster: it walks 40 MiB, the ceiling's probe 48 MiB"
    )


def on_pages(huge, ceiling):
    """What is said where so many percent of the point's memory, and of the ceiling's, are on huge
    pages.
    """
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
    assert on_pages(100, 10) == "100% of its memory is on huge pages, but 10% of the ceiling's"
    assert on_pages(71, 20) == "71% of its memory is on huge pages, but 20% of the ceiling's"


# ---- twin, copies, core --------------------------------------------------------------------------


def test_queries_and_outputs_are_no_part_of_the_twin():
    """A tenth of the bytes are not read by the twin: at the same rate the point takes a tenth
    longer than it.
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


def test_a_store_above_its_copies():
    assert row_of(COPIES, [], point=STORE) == ("copy", "suspect: copies alone are slower")
    roof, reason = row_of(COPIES, [20.0] * 6, replace(READ, op="copy_nt"), point=STORE)
    assert roof == "copy" and reason.startswith(
        "the copy_nt ceiling of its footprint allows it: its copy"
    )


def test_a_store_of_a_narrow_dtype_reads_more_than_it_stores():
    """4 bytes read for each 2 stored."""

    def narrow(record):
        own = record.traffic["point"]
        return replace(
            record,
            traffic=record.traffic | {"point": replace(own, bytes_kv=own.bytes_compulsory / 3)},
        )

    said = "33% of its bytes are stores, but 50% of a copy's: stores are dearer"
    assert row_of(COPIES, [], point=STORE, change=narrow) == ("copy", said)
    both = row_of(COPIES, [14.0] * 6, replace(READ, op="copy_nt"), point=STORE, change=narrow)
    assert both == ("copy", f"{said}; also above its copy_nt ceiling")


def test_fewer_stores_explain_no_more_than_they_can():
    """A third of the bytes are stores, half of a copy's: 1.5 times as fast, if loads cost
    nothing.
    """

    def stored(share):
        def change(record):
            own = record.traffic["point"]
            return replace(
                record,
                traffic=record.traffic
                | {"point": replace(own, bytes_kv=own.bytes_compulsory * share)},
            )

        return change

    def reason(rate, share, **facts):
        return row_of(
            {"point": rate, "copy": 10.0}, [], point=STORE, change=stored(share), **facts
        )[1]

    assert reason(14.9, 1 / 3).startswith("33% of its bytes are stores")
    assert reason(15.1, 1 / 3) == "suspect: copies alone are slower"
    append = replace(STORE, op="append")
    near = "what it stores comes from a cache, what a copy stores from as far as it goes"
    assert row_of({"point": 14.9, "copy": 10.0}, [], point=append, change=stored(1 / 2))[1] == near
    assert row_of({"point": 15.1, "copy": 10.0}, [], point=append, change=stored(1 / 2))[
        1
    ].startswith("suspect")
    assert reason(19.0, 0.1).startswith("10% of its bytes are stores")
    assert reason(48.4, 0.1).startswith(
        "suspect: more than this, which explains no 4.8 times: 10% of its bytes"
    )
    of = replace(READ, op="copy")
    above = row_of({"point": 48.4, "copy": 50.0}, [10.0] * 6, of, point=STORE, change=stored(0.1))
    assert above[0] == "copy ceiling" and above[1].startswith("suspect: more than this")


# ---- peaks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trust", "reads", "word"),
    [
        ("high", [15.0] * 6, "suspect: caches hold more of its 256 MiB"),
        ("low", [15.0] * 6, "the peak is in doubt: declared by the firmware"),
        ("high", [19.0] * 6, "reads of 256 MiB exceed it too"),
    ],
)
def test_above_the_theoretical_peak(trust, reads, word):
    machine = replace(
        MACHINE, facts={"dram_peak": Fact(18.0, "modules", trust, "declared by the firmware")}
    )
    roof, reason = row_of(beside(20.0, 21.0), reads, machine=machine)
    assert roof == "theoretical DRAM peak" and reason.startswith(word)
    assert row_of(beside(17.0, 21.0), [], machine=machine) == ("", "")
    assert row_of(beside(50.0, 55.0), [], machine=machine, **L3) == ("", "")


def test_an_unknown_peak_is_no_roof():
    machine = replace(
        MACHINE, facts={"dram_peak": Fact(None, "modules", "none", "only root may read them")}
    )
    assert row_of(beside(1e6, 2e6, 3e6), [], machine=machine) == ("", "")


def test_more_flops_than_multiply_adds_alone():
    """16 MiB a pass at 16.777216 GB/s is a millisecond: 200 MFLOP in it are 200 GFLOP/s."""
    rates, peak = beside(16.777216), replace(READ, op="flops", bytes=0)
    assert row_of(rates, [100.0] * 6, peak, flops=2e8) == (
        "FMA peak",
        "suspect: its instructions alone are slower",
    )
    assert row_of(rates, [250.0] * 6, peak, flops=2e8) == ("", "")


def test_whole_numbers_have_a_peak_of_their_own():
    """The FMA peak is no roof of theirs."""
    rates, point = beside(16.777216), replace(DECODE, variant="dot", isa="avx512")
    assert point.computes == "dot8"
    own, other = (replace(READ, op=op, bytes=0, isa="avx512") for op in ("dot8", "flops"))
    low = {"point": point, "flops": 2e8}
    assert row_of(rates, [100.0] * 6, own, **low) == (
        "dot8 peak",
        "suspect: its instructions alone are slower",
    )
    assert row_of(rates, [100.0] * 6, other, **low) == ("", "")


# ---- L3, by ratios of the same rounds: eight launches each ---------------------------------------

INSIDE = Regime("L3", "16 MiB within 0.7 x 32 MiB of L3", "high")
EVEN = tuple(1 + part / 100 for part in (-2, -1, -1, 0, 0, 1, 1, 2))


def ratio(middle, wide=1.0, launches=8):
    return Estimate.of([middle * (1 + wide * (part - 1)) for part in EVEN[:launches]])


def measured(near, memory, core=0.5, launches=8, wide=1.0):
    """Ratios: reads of the slice over those of memory; of the point over reads of memory, and over
    its core roof.
    """
    shares = {"memory": ratio(memory, wide, launches), "core": ratio(core), "rotated": ratio(2.0)}
    return PointRates({}, {}, shares, ratio(near, wide, launches))


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (measured(3.0, 2.0), "confirmed"),
        (measured(3.0, 0.5, core=0.3), "refuted"),
        (measured(3.0, 1.0), "unstable"),
        (measured(3.0, 1.02), "unstable"),  # sure, but less than counts as a change
        (measured(3.0, 1.5, wide=40), "unstable"),  # more than counts, but not sure
        # the core is the limit, and that above memory
        (measured(3.0, 2.0, core=0.98), "confirmed"),
        (measured(3.0, 0.9, core=0.95), "core-bound"),  # at its core roof
        # the core alone allows 0.83 of the reads of memory
        (measured(3.0, 0.5, core=0.6), "core-bound"),
        (measured(0.8, 0.5, core=0.3), "refuted"),  # memory that is faster than L3
        # L3 is no faster, and a point that is says nothing of it
        (measured(1.0, 2.0), "not testable"),
        (measured(1.5, 2.0, wide=40), "not testable"),
        (measured(3.0, 2.0, launches=6), "not testable"),
        (PointRates({}, {}, {"core": ratio(0.5)}), "not testable"),
    ],
)
def test_claim(found, word):
    said, reason = claim(Against(found, {}, False, INSIDE, 16 * MIB))
    assert said == word and reason

"""One point in depth: the arithmetic on made-up samples, and the command on a small real point."""

import json
import os
from dataclasses import replace

import pytest
from msgspec import UNSET

from kvbench.analysis.limits.profile import profile
from kvbench.machine import describe
from kvbench.model import Record, Sample, Shape, Traffic
from kvbench.native import default_library
from kvbench.report.words import said as worded
from kvbench.worker.ground import Ground
from tests import made_run
from tests.cli.test_cli import errors_of, output_of
from tests.made_job import bench

SHAPE = Shape(
    layers=0, batch=1, q_heads=4, kv_heads=2, head_dim=16, context=100, capacity=128, window=0
)
POINT = replace(made_run.DECODE, shape=SHAPE, pages="base")
GIGA = 1_000_000_000
BEST = default_library().isa()


def visit_of(seconds, flops=4e9):
    """One pass of 1 GB per sample; `seconds` by program, one for each round."""
    samples = [
        Sample(program, number, 1, taken, (taken,), 0.05, 0, 0, sample_time=taken)
        for program, times in seconds.items()
        for number, taken in enumerate(times)
    ]
    traffic = Traffic(
        flops=flops,
        bytes_compulsory=GIGA,
        bytes_issued=GIGA,
        bytes_line=GIGA,
        bytes_kv=GIGA,
        bytes_scales=0,
        bytes_table=0,
        ai=flops / GIGA,
    )
    memory = {"page_bytes": 1, "mapped": 1, "huge_bytes": 0, "resident_bytes": 1}
    facts = {"slices": 3, "slice_bytes": 4096, "max_abs_err": 1e-7, "stage_share": (0.5, 0.1, 0.4)}
    return Record(0, POINT, tuple(samples), dict.fromkeys(seconds, traffic), memory, **facts)


def test_rates_and_ratios_are_of_the_same_round():
    """The machine becomes three times as slow in the last round. Ratios of each round do not see
    it.
    """
    facts = profile(
        visit_of(
            {
                "point": [0.10, 0.10, 0.30],
                "twin": [0.08, 0.08, 0.24],
                "twin_ahead": [0.09, 0.09, 0.27],
                "core": [0.05, 0.05, 0.15],
                "ceiling": [0.08, 0.08, 0.24],
                "ceiling_ahead": [0.05, 0.05, 0.15],
                "fma": [0.02, 0.03, 0.06],
            }
        )
    )
    assert facts.gbps == pytest.approx(10.0)
    assert facts.twin_gbps == pytest.approx(12.5) and facts.twin_form == "twin"
    assert facts.ceiling_gbps == pytest.approx(20.0) and facts.ceiling_form == "ceiling_ahead"
    assert facts.efficiency == pytest.approx(0.8)
    assert facts.ceiling_fraction == pytest.approx(0.5)
    assert facts.core_gbps == pytest.approx(20.0)
    assert facts.dram_gbps == facts.ceiling_gbps
    assert facts.fma_gflops == pytest.approx(4 / 0.03)
    assert facts.fma_fraction == pytest.approx(0.2)  # of 0.2, 0.3 and 0.2
    assert facts.thread_skew == pytest.approx(0.05)
    assert (facts.bound, facts.bound_by) == ("not clear", ("rows", "core"))  # of three rounds


SMALL = [
    "--q-heads",
    "4",
    "--kv-heads",
    "2",
    "--head-dim",
    "32",
    "--context",
    "96",
    "--threads",
    "1",
]
SHORT = ["--samples", "2", "--sample-time", "0.001", "--layers", "3"]


@pytest.mark.parametrize("op", ["decode", "append", "bulk"])
@pytest.mark.parametrize("layout", ["head", "position", "paged", "blockt", "block16"])
def test_a_small_point(op, layout, capsys):
    row, how = 32 * 2, ["--layout", layout]
    if layout == "block16":
        row, how = 18, [*how, "--dtype", "q4_0"]
    facts = json.loads(output_of(capsys, "profile", op, *SMALL, *SHORT, *how, "--json"))
    assert facts["version"] == 2
    assert facts["kernel"].startswith(f"{op}.") and f".{layout}." in facts["kernel"]
    assert facts["gbps"] > 0 and facts["ceiling_gbps"] > 0
    assert len(facts["samples"]) == 2
    assert facts["layers"] == 3
    tokens = 96 if op != "append" else 1
    kv = 2 * tokens * 2 * row
    if op == "decode":
        assert facts["bytes_compulsory"] == kv + 2 * 4 * 32 * 4 + (
            6 * 4 if layout == "paged" else 0
        )
        assert facts["flops"] == 4 * 96 * 4 * 32
        assert facts["max_abs_err"] < 1e-5
        for key in (
            "twin_gbps",
            "core_gbps",
            "efficiency",
            "ceiling_fraction",
            "fma_gflops",
            "bound",
            "ai",
        ):
            assert key in facts
        assert sum(facts["stage_share"].values()) == pytest.approx(1.0)
    else:
        assert facts["bytes_compulsory"] == kv + 2 * tokens * 2 * 32 * 4


_ROW = {"q8_0": 34, "q4_0": 18, "f16": 64, "i8": 32 + 4}  # bytes of 32 elements and their scales


@pytest.mark.parametrize(
    ("op", "layout", "pair", "isa"),
    [
        *(("decode", "head", ("q8_0", "q4_0"), isa) for isa in default_library().isas()),
        *(("decode", "blockt", ("f16", "i8"), isa) for isa in default_library().isas()),
        ("decode", "block16", ("q8_0", "q4_0"), BEST),
        ("append", "position", ("q4_0", "f16"), BEST),
        ("bulk", "head", ("i8", "q8_0"), BEST),
        ("step", "paged", ("q8_0", "i8"), BEST),
    ],
)
def test_a_pair_of_dtypes(op, layout, pair, isa, capsys):
    """The bytes of both planes count."""
    how = [*SMALL, *SHORT, "--layout", layout, "--dtype", "+".join(pair), "--isa", isa]
    facts = json.loads(output_of(capsys, "profile", op, *how, "--tuning", "off", "--json"))
    assert facts["kernel"].split(".")[2:] == [layout, "+".join(pair), isa]
    assert (facts["point"]["dtype"], facts["point"]["v_dtype"]) == pair
    tokens = {"append": 1, "step": 3 * (96 + 1)}.get(op, 96)
    kept = tokens * 2 * sum(map(_ROW.__getitem__, pair))
    assert facts["bytes_kv"] + facts["bytes_scales"] == kept
    if op == "decode":
        assert facts["flops"] == 4 * 96 * 4 * 32 and facts["core_gbps"] > 0
        assert facts["twin_gbps"] > 0 and facts["max_abs_err"] < 1e-5


def test_a_pair_of_one_and_the_same_is_that_one(capsys):
    found = output_of(capsys, "profile", "decode", *SMALL, *SHORT, "--dtype", "i8+i8")
    assert found.startswith(f"decode.flash.head.i8.{BEST}")


@pytest.mark.parametrize(
    ("op", "more", "moved"),
    [
        ("repack", ["--layout", "blockt"], 2 * 2 * 96 * (2 * 2 - 1) * 32),
        ("repack", ["--layout", "block16", "--dtype", "q4_0"], 2 * 18 * 96 * (2 * 2 - 1)),
        ("transpose", [], 2 * 2 * 96 * 2 * 32 * 4),
        ("logits", ["--vocabulary", "50"], 2 * 50 * 4),
        ("logits", [], 2 * 32_000 * 4),
        ("logits", ["--model", "qwen3-0.6b"], 2 * 151_936 * 4),
    ],
)
def test_a_small_move(op, more, moved, capsys):
    """Bytes that are read and written, but for those of K's first head, which stays where it is."""
    shown = *SMALL, *SHORT, "--context", "8", *more
    facts = json.loads(
        output_of(
            capsys, "profile", op, *(SMALL if op != "logits" else shown), *SHORT, *more, "--json"
        )
    )
    assert facts["kernel"].startswith(f"{op}.-.")
    assert facts["bytes_compulsory"] == moved and facts["flops"] == 0
    assert facts["copy_gbps"] > 0 and facts["copy_nt_gbps"] > 0


def test_a_repack_is_of_one_thread(capsys):
    own = [word for word in SMALL if word not in ("--threads", "1")]
    assert "  1 threads on CPUs" in output_of(capsys, "profile", "repack", *own, *SHORT)
    said = errors_of(capsys, "profile", "repack", *own, *SHORT, "--threads", "2")
    assert "repack runs on one thread, but 2 are asked for" in said
    said = errors_of(capsys, "profile", "repack", *SMALL, *SHORT, "--layout", "paged")
    assert "no such kernel: repack.-.paged.f16" in said and "head, blockt, block16" in said
    assert "a cache of 96 tokens does not grow to 96" in errors_of(
        capsys, "profile", "repack", *SMALL, *SHORT, "--capacity", "96"
    )


def test_a_slice_in_l3_is_held_against_memory():
    """A gigabyte a pass each."""
    seconds = {
        "twin": [1.5],
        "core": [1.0],
        "ceiling": [1.0],
        "slice": [0.5],
        "memory": [2.0],
        "rotated": [5.0],
    }
    found = profile(visit_of({"point": [2.0], **seconds}))
    assert (found.l3_reads, found.l3_gain, found.l3_decode) == pytest.approx((4.0, 2.5, 1.0))


def test_what_other_reads_leave_of_the_gain_of_l3():
    """Passes of 1 s alone, of 2 s after other reads, of 4 s from memory. The core allows 4 / 5."""
    seconds = {"alone": 1.0, "core": 1.6, "slice": 0.5, "memory": 2.0, "rotated": 4.0}
    point = replace(POINT, residency="hot", between=64 << 20)
    rounds = {name: [each] * 8 for name, each in {"point": 2.0, "ceiling": 1.0, **seconds}.items()}
    found = profile(replace(visit_of(rounds), point=point, level="L3"))
    assert (found.l3_gain_alone, found.l3_gain) == pytest.approx((4.0, 2.0))
    assert (found.alone_gbps, found.alone_fraction) == pytest.approx((1.0, 0.5))
    assert found.twin_gbps is UNSET and found.core_fraction == pytest.approx(0.8)
    assert (found.bound, found.bound_reason, found.bound_by) == ("unknown", "not timed", ("rows",))
    said = worded("reasons", "gains", found)
    assert "alone 4.00 times the same from memory, and 2.00 after 64 MiB of other reads" in said


@pytest.mark.parametrize("op", ["decode", "append"])
def test_other_memory_is_read_between_passes(op, capsys):
    printed = output_of(capsys, "profile", op, *SMALL, *SHORT, "--between", "64K")
    assert "64 KiB of memory read before every pass" in printed
    assert "the same, nothing read between passes" in printed
    assert "reads of its own rows" not in printed.split("limit:")[0]
    said = errors_of(
        capsys, "profile", op, *SMALL, "--between", "64K", "--layers", "0", "--residency", "evicted"
    )
    assert "evicted already flushes all caches between passes" in said


@pytest.mark.parametrize("op", ["decode", "append"])
@pytest.mark.parametrize("residency", ["hot", "evicted"])
def test_residencies(residency, op, capsys):
    short = ["--samples", "1", "--sample-time", "0.001"]
    facts = json.loads(
        output_of(capsys, "profile", op, *SMALL, *short, "--residency", residency, "--json")
    )
    assert facts["layers"] == 1
    if op == "decode":
        assert "dram_form" in facts, "a footprint that fits a cache is shown beside DRAM"


def test_eviction_reads_more_than_the_caches_hold():
    last_level = max((cache.size for cache in describe().caches), default=0)
    point = replace(POINT, residency="evicted", cpus=(min(os.sched_getaffinity(0)),))
    with (
        Ground(default_library()) as ground,
        bench(point, ground) as own,
    ):
        between = {program.name: program.between for program in (*own.programs, *own.more())}
        for name in ("point", "twin", "ceiling"):
            assert between[name].traffic().bytes_compulsory >= max(256 << 20, 4 * last_level)
        assert between["core"] is None and between["fma"] is None


def test_the_table_names_every_denominator(capsys):
    printed = output_of(capsys, "profile", "decode", *SMALL, *SHORT)
    for name in (
        "point",
        "reads of its own rows",
        "core speed",
        "fastest reads of as many bytes",
        "peak of multiply-adds",
        "limit:",
        "verified",
        "issued",
    ):
        assert name in printed


GROWS = ["--layers", "3", "--grow", "24", "--tuning", "off"]


@pytest.mark.parametrize(
    "more",
    [
        ["--layout", "paged", "--batch", "2", "--lengths", "ragged:3"],
        ["--dtype", "i8", "--window", "32", "--full-every", "3", "--between", "64k"],
        ["--dtype", "i8+f16", "--layout", "blockt"],
        ["--dtype", "i8+q8_0", "--layout", "block16"],
    ],
)
def test_a_step_that_grows(more, capsys):
    found = json.loads(output_of(capsys, "profile", "step", *SMALL, *GROWS, *more, "--json"))
    assert found["kernel"].startswith("step.") and found["tokens"] == 24
    assert found["samples"]["point"]["context"] == list(range(97, 121))
    assert all(seconds > 0 for seconds in found["samples"]["point"]["seconds"])
    assert len(found["samples"]["decodes"]["seconds"]) == 22
    assert len(found["rows"]) == 8 and found["max_abs_err"] < 1e-5
    assert (found["weights"] is not None) == ("--between" in more)
    # K and V of a layer of f16 and of two sequences each, or of the one of i8 without a window
    both = {"f16": 3 * 2 * 2 * 2 * 32 * 2, "i8": 2 * 2 * (32 + 4), "i8+f16": 3 * 2 * (36 + 64)}
    both["i8+q8_0"] = 3 * 2 * (36 + 34)
    full = both[more[1] if "--dtype" in more else "f16"]
    assert found["bytes_token"] == pytest.approx(full, rel=0.05)  # and the entries of a table


def test_a_step_that_grows_is_told_in_lines(capsys):
    printed = output_of(capsys, "profile", "step", *SMALL, *GROWS)
    for words in (
        "24 tokens in a row, from a context of 96",
        "verified: the first step, the last step and all stored tokens",
        "decodes alone",
        "the line of least squares through 24 steps",
        "A token of context is 768 bytes of K and V",
        "the sum of its parts",
    ):
        assert words in " ".join(printed.split())
    lines = [line.split() for line in printed.splitlines()]
    title = next(number for number, words in enumerate(lines) if words[:1] == ["context"])
    assert [int(words[0]) for words in lines[title + 1 : title + 9]] == list(range(98, 121, 3))


@pytest.mark.parametrize(
    ("op", "more", "said"),
    [
        ("decode", [], "--grow times whole steps, but OP is decode"),
        ("step", ["--grow", "7"], "--grow is 7: too few steps to fit a line (at least 8)"),
        ("step", ["--residency", "hot"], "--grow does not go with --residency hot"),
        ("step", ["--residency", "evicted"], "--grow does not go with --residency evicted"),
        ("step", ["--samples", "12"], "--grow does not go with --samples"),
        ("step", ["--sample-time", "0.03"], "--grow does not go with --sample-time"),
        ("step", ["--neighbour"], "--grow does not go with --neighbour"),
        ("step", ["--grow", "2000000000"], "are free"),
    ],
)
def test_what_does_not_grow(op, more, said, capsys):
    code = 5 if "free" in said else 2
    found = errors_of(capsys, "profile", op, *SMALL, *GROWS, *more, code=code)
    *others, last = found.strip().splitlines()
    assert said in last and not any(line.startswith("kvbench:") for line in others)


ROUNDS = 8


def limited(level="DRAM", **seconds):
    """Profile of a point of 0.1 s a pass, in rounds that are all alike."""
    every = {"point": 0.1, "ceiling": 0.05, "fma": 0.02} | seconds
    visit = visit_of({name: [each] * ROUNDS for name, each in every.items()})
    return profile(replace(visit, level=level))


@pytest.mark.parametrize(
    ("seconds", "word", "reason", "said", "tried"),
    [
        (
            {"twin": 0.095, "core": 0.02, "memory": 0.093},
            "memory",
            "reached",
            "Memory limits it: it runs at 93% of plain reads of memory (93% to 93%).",
            "--dtype i8",
        ),
        (
            {"twin": 0.095, "core": 0.02, "memory": 0.08},
            "rows",
            "reached",
            "Reads of its own rows limit it: it runs at 95% of reads of its own rows",
            "--tune-only",
        ),
        (
            {"twin": 0.095, "core": 0.02},
            "rows",
            "memory not timed",
            "it is not known whether memory could deliver more",
            "--layout",
        ),
        (
            {"twin": 0.05, "core": 0.098, "memory": 0.04},
            "core",
            "reached",
            "The core limits it: it runs at 98% of its core speed",
            "--variant",
        ),
        (
            {"twin": 0.05, "core": 0.06, "memory": 0.04},
            "neither",
            "all below",
            "40% of plain reads of memory (40% to 40%), 50% of reads of its own rows (50% to 50%),"
            " and 60% of its core speed (60% to 60%).",
            "--tune-only",
        ),
        (
            {"twin": 0.05, "core": 0.2, "memory": 0.04},
            "unknown",
            "faster than its limit",
            "it is faster than its core speed, which should limit it.",
            "--samples 48",
        ),
    ],
)
def test_the_end_says_what_limits_it_and_what_to_try(seconds, word, reason, said, tried):
    facts = limited(**seconds)
    assert (facts.bound, facts.bound_reason) == (word, reason)
    assert said in worded("reasons", "limit", facts, facts.thread_skew, "rounds")
    advice = worded("advice", "advice", facts)
    assert "Try " in advice and tried in advice


def test_reads_of_memory_are_no_limit_of_what_lies_in_a_cache():
    facts = limited("L3", twin=0.05, core=0.06, memory=0.099)
    assert (facts.bound, facts.bound_by) == ("neither", ("rows", "core"))


def test_intervals_are_over_rounds():
    """Of nine rounds the interval of their median leaves out one at either end, by the binomial law
    (20 in 512): the shares are 0.81 to 0.95 there.
    """
    twins = [0.080, 0.081, 0.085, 0.088, 0.090, 0.091, 0.092, 0.095, 0.099]
    even = {"point": 0.1, "core": 0.02, "ceiling": 0.02}
    visit = visit_of({name: [each] * 9 for name, each in even.items()} | {"twin": twins})
    facts = profile(visit)
    assert (facts.efficiency_low, facts.efficiency_high) == pytest.approx((0.81, 0.95))
    assert facts.efficiency == pytest.approx(0.9)
    assert (facts.bound, facts.bound_reason) == ("not clear", "interval crosses")
    assert facts.bound_by == ("rows",)


@pytest.mark.parametrize(
    ("seconds", "named", "unhelpful"),
    [
        ({"twin": 0.095, "core": 0.02}, ("prefetch distance",), ("shuffles",)),
        (
            {"twin": 0.05, "core": 0.098},
            ("all 2 query heads", "shuffles", "conversions", "exp"),
            (),
        ),
        ({"twin": 0.05, "core": 0.06}, ("prefetch distance", "shuffles"), ()),
    ],
)
def test_the_author_of_a_plug_in_hears_what_can_be_changed(seconds, named, unhelpful):
    """The advice follows from the limit. It names no variants, formats or threads that the plug-in
    or the machine does not have.
    """
    facts = limited(**seconds)
    advice = worded("advice", "advice", facts, True, False)
    assert all(word in advice for word in named) and not any(word in advice for word in unhelpful)
    assert not any(
        option in advice for option in ("--variant", "--dtype", "--threads", "--tune-only")
    )
    if facts.bound != "neither":
        assert "More --threads" in worded("advice", "advice", facts, True, True)

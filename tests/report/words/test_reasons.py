"""Every reason that the analysis gives as a word has a sentence with its numbers."""

import pytest

from kvbench.analysis.limits.above import Cause, Roof
from kvbench.analysis.limits.bounds import Limit, Why
from kvbench.analysis.limits.claims import Grounds
from kvbench.analysis.measured.ceilings import NoCeiling
from kvbench.report.words import said

SHARES = {"memory_share": 0.31, "efficiency": 0.52, "core_fraction": 0.73}
ROW = {f"{name}{end}": share + more for name, share in SHARES.items()
       for end, more in (("", 0.0), ("_low", -0.02), ("_high", 0.03))}  # fmt: skip
MEMORY = "31% of plain reads of memory (29% to 34%)"
ROWS = "52% of reads of its own rows (50% to 55%)"
CORE = "73% of its core speed (71% to 76%)"


@pytest.mark.parametrize(
    ("word", "why", "by", "parts"),
    [
        (Limit.MEMORY, Why.REACHED, (Limit.MEMORY,), ["Memory limits it", MEMORY]),
        (Limit.ROWS, Why.REACHED, (Limit.ROWS,), ["Reads of its own rows limit it", ROWS]),
        (Limit.ROWS, Why.ROWS_ALONE, (Limit.ROWS,), [ROWS, "was not read in the same rounds, so"]),
        (Limit.ROWS, Why.MEMORY_OPEN, (Limit.ROWS,), [ROWS, "is not clear", MEMORY]),
        (Limit.CORE, Why.REACHED, (Limit.CORE,), ["The core limits it", CORE]),
        (Limit.BOTH, Why.REACHED, (Limit.MEMORY, Limit.CORE), ["both", f"{MEMORY} and {CORE}."]),
        (Limit.NEITHER, Why.BELOW, tuple(Limit)[:3], [f"{MEMORY}, {ROWS}, and {CORE}."]),
        (Limit.NEITHER, Why.WAITING, (Limit.ROWS,), [ROWS, "slowest works 30% longer"]),
        (Limit.NOT_CLEAR, Why.CROSSES, (Limit.ROWS,), ["not clear", ROWS, "than 90%"]),
        (Limit.NOT_CLEAR, Why.TOO_FEW, (Limit.CORE,), ["too few launches", "its core speed"]),
        (Limit.UNKNOWN, Why.BEATEN, (Limit.CORE,), ["not known", "faster than its core", CORE]),
        (Limit.UNKNOWN, Why.NOT_TIMED, (Limit.CORE,), ["its core speed was not timed"]),
        (Limit.UNKNOWN, Why.NO_DECODE, (), ["a store"]),
        (
            Limit.UNKNOWN,
            Why.DISPLACED,
            (),
            ["not known", "other memory is read between its passes"],
        ),
    ],
)
def test_what_limits_a_decode(word, why, by, parts):
    text = said("reasons", "limit", ROW | {"bound": word, "bound_reason": why, "bound_by": by}, 0.3)
    assert all(part in text for part in parts), text


def test_all_whys_are_tested():
    (mark,) = test_what_limits_a_decode.pytestmark
    assert {why for _, why, *_ in mark.args[1]} == set(Why)


@pytest.mark.parametrize("cause", Cause)
def test_what_a_point_exceeds(cause):
    row = {"above": Roof.CORE, "above_reason": cause, "above_also": "", "suspect": True}
    text = said("reasons", "above", row)
    assert text.startswith("suspect: It is faster than its core speed, ")
    also = row | {"above_also": Roof.READS, "suspect": False}
    assert said("reasons", "above", also).endswith(". It is faster than the read ceiling, too")


@pytest.mark.parametrize("grounds", Grounds)
def test_what_is_said_of_l3(grounds):
    ratios = {
        f"l3_{name}{end}": 1.25 for name in ("reads", "decode") for end in ("", "_low", "_high")
    }
    row = ratios | {
        "l3": "unstable",
        "l3_reason": grounds,
        "regime": "L2",
        "launches": 3,
        "l3_allowed": 0.8,
    }
    text = said("reasons", "l3", row)
    told = {"L2": Grounds.PRIVATE, "3 launches": Grounds.FEW, "0.80 times": Grounds.CORE}
    assert text.startswith("L3 not decided: ") and text.endswith(".")
    assert all((part in text) == (grounds == own) for part, own in told.items())


@pytest.mark.parametrize("note", [each for each in NoCeiling if each])
def test_why_there_is_no_ceiling(note):
    assert said("reasons", "ceiling", {"ceiling_note": note}).startswith("no ceiling: ")

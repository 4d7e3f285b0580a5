"""Users, budgets and lengths, beside sums over every sequence."""

import random

import pytest

from kvbench.errors import BadArgument
from kvbench.sizing.lengths import read_lengths
from tests.sizing.calculator import Case, rounded
from tests.sizing.made import GIB, MIB, of_model, sized
from tests.sizing.test_calculator import CASES

LENGTHS = [13, 500, 500, 1, 1024, 77]


def test_fleet():
    case = of_model("llama-3-8b", context=4096, batch=4)
    found = sized(case, users=10, replicas=3, weights=16 * 10**9).fleet
    assert found.bytes_per_user == 512 * MIB and found.bytes_per_replica == 10 * 512 * MIB + 16 * 10**9
    assert found.bytes == 3 * found.bytes_per_replica
    alone = sized(case).fleet
    assert (alone.users, alone.replicas, alone.bytes) == (4, 1, case.bytes())


def test_budget_holds_no_token_more():
    """The calculator's cache of so many tokens fits, that of one more does not."""
    draw, bounded = random.Random(7), 0
    for case in CASES[:300]:
        alone = {**vars(case), "batch": 1, "capacity": None}
        budget = Case(**alone | {"context": draw.randint(1, 300_000)}).bytes() + draw.randint(0, 100_000)
        try:
            tokens = sized(Case(**alone), budget=budget).admission.tokens
        except BadArgument:
            assert budget < Case(**alone | {"context": 1}).bytes()
            continue
        if tokens is None:
            assert Case(**alone | {"context": 1 << 30}).bytes() <= budget
        else:
            bounded += 1
            fits, larger = (Case(**alone | {"context": tokens + more}).bytes() for more in (0, 1))
            assert fits <= budget < larger
    assert bounded > 200


def test_whole_sequences_are_counted_as_allocated():
    case = of_model("llama-3-8b", context=4096, batch=3)
    each = Case(**{**vars(case), "batch": 1}).allocated()
    for budget in (each - 1, each, 40 * GIB):
        assert sized(case, budget=budget).admission.sequences == budget // each


def test_too_small_a_budget():
    with pytest.raises(BadArgument, match="--budget is 128 KiB"):
        sized(of_model("llama-3-8b", context=4096, dtype="f32"), budget=(256 << 10) // 2)


@pytest.mark.parametrize("window", [0, 300])
@pytest.mark.parametrize("block_tokens", [1, 16, 100])
def test_reservation_is_the_sum_over_sequences(tmp_path, window, block_tokens):
    (tmp_path / "lengths").write_text("\n".join(map(str, LENGTHS)))
    case = Case(5, 8, 2, 64, 1024, block_tokens=block_tokens, window=window, window_every=5)
    kinds = {
        str(tmp_path / "lengths"): LENGTHS,
        "uniform:7-950": range(7, 951),
        "uniform:1-1": [1],
        "fixed:900": [900],
    }
    for kind, lengths in kinds.items():
        found = sized(case, lengths=read_lengths(kind), budget=GIB).admission.reservation
        each, kept = 2 * 2 * 64 * 2, list(case.attended())
        held = sum(each * min(length, most) for length in lengths for most in kept)
        paged = sum(each * rounded(min(length, most), block_tokens) for length in lengths for most in kept)
        ahead = each * sum(kept) * len(lengths)
        assert found.mean == pytest.approx(sum(lengths) / len(lengths))
        for side, reserved in ((found.contiguous, ahead), (found.paged, paged)):
            assert side.bytes == reserved / len(lengths)
            assert side.waste == pytest.approx(1 - held / reserved, abs=1e-12)
            assert side.sequences == GIB * len(lengths) // reserved


def test_reservation_without_a_budget():
    found = sized(Case(5, 8, 2, 64, 1024), lengths=read_lengths("fixed:512")).admission
    assert (found.budget, found.tokens, found.sequences, found.reservation.contiguous.sequences) == (None,) * 4
    assert found.reservation.contiguous.waste == 0.5 and found.reservation.paged.waste == 0


@pytest.mark.parametrize(
    "text",
    ["uniform:5-1", "uniform:5", "uniform:0-5", "fixed:0", "fixed:x", "fixed:-3", "fixed:99999999999", "/nowhere/x"],
)
def test_lengths_that_are_none(text):
    with pytest.raises(BadArgument, match="--lengths"):
        read_lengths(text)


@pytest.mark.parametrize("text", ["", "12 x", "-4", "1.5", "0", "\xff"])
def test_files_of_no_lengths(tmp_path, text):
    (tmp_path / "lengths").write_text(text, encoding="latin-1")
    with pytest.raises(BadArgument, match="--lengths"):
        read_lengths(str(tmp_path / "lengths"))


def test_lengths_longer_than_the_context():
    with pytest.raises(BadArgument, match="longer than --context 1024"):
        sized(Case(5, 8, 2, 64, 1024), lengths=read_lengths("uniform:1-1025"))

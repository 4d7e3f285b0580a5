"""Users, budgets and lengths, beside sums over every sequence."""

import random
from collections import Counter

import pytest

from kvbench.errors import BadArgument
from kvbench.native import default_library
from kvbench.sizing.fleet import read_lengths
from tests.sizing.calculator import Case, rounded
from tests.sizing.made import GIB, MIB, of_model, sized
from tests.sizing.test_calculator import CASES

LENGTHS = [13, 500, 500, 1, 1024, 77]


def test_fleet():
    case = of_model("llama-3-8b", context=4096, batch=10)
    found = sized(case, replicas=3, weights=16 * 10**9).fleet
    assert (
        found.bytes_per_user == 512 * MIB and found.bytes_per_replica == 10 * 512 * MIB + 16 * 10**9
    )
    assert found.bytes == 3 * found.bytes_per_replica
    alone = sized(case).fleet
    assert (alone.users, alone.replicas, alone.bytes) == (10, 1, case.bytes())


def test_lengths_take_k_as_contexts_do():
    assert (
        read_lengths("uniform:1-4k").runs == read_lengths("uniform:1-4096").runs == ((1, 4096, 1),)
    )
    assert read_lengths("fixed:2k").runs == ((2048, 2048, 1),)


def within(case, context, budget):
    """Whether the calculator's cache takes so many tokens, and no more than the budget."""
    longer = Case(**{**vars(case), "context": context})
    fits = all(read <= room for read, room in zip(longer.attended(), longer.room(), strict=True))
    return fits and longer.bytes() <= budget


@pytest.mark.parametrize("capped", [False, True])
def test_budget_holds_no_token_more(capped):
    """The calculator's cache of so many tokens fits, that of one more does not."""
    draw, kinds = random.Random(7), Counter()
    for case in [case for case in CASES if not capped or case.capacity][:300]:
        capacity = case.capacity if capped else None
        alone = Case(**{**vars(case), "batch": 1, "capacity": capacity})
        each = alone.kv_heads * alone.row_bytes * (alone.layers - alone.ephemeral)
        budget = max(each, 1) * draw.randint(
            0, 2 * capacity if capacity else 300_000
        ) + draw.randint(0, 100_000)
        try:
            tokens = sized(alone, budget=budget).admission.tokens
        except BadArgument:
            assert not within(alone, 1, budget)
            continue
        if tokens is None:
            kinds["endless"] += 1
            assert within(alone, 1 << 30, budget)
        else:
            kinds["full" if tokens == capacity else "bounded"] += 1
            assert within(alone, tokens, budget) and not within(alone, tokens + 1, budget), case
    assert kinds["bounded"] > 50 and kinds["endless"] > 10 and (kinds["full"] > 50) is capped


def test_a_window_with_more_room_than_it_needs_fills_that_room():
    case = Case(1, 8, 8, 128, 4096, window=128, capacity=4096)  # 4 KiB a token
    assert sized(case, budget=MIB).admission.tokens == 256
    assert sized(case, budget=16 * MIB - 1).admission.tokens == 4095
    assert sized(case, budget=16 * MIB).admission.tokens is None
    full = sized(case, budget=MIB, lengths=read_lengths("fixed:4096")).admission.reservation
    assert (
        full.contiguous.waste == pytest.approx(full.contiguous.padding)
        and full.contiguous.padding < 0.001
    )
    assert (full.paged.waste, full.paged.padding, full.paged.bytes) == (0, 0, 16 * MIB)


@pytest.mark.parametrize(
    "case",
    [Case(5, 8, 2, 64, 1024, capacity=2048), Case(2, 2, 2, 64, 900, window=64, capacity=300)],
)
def test_lengths_up_to_the_capacity(case):
    """The second is a ring: everything beyond 300 tokens is forgotten."""
    longest = max(case.context, case.capacity)
    found = sized(case, lengths=read_lengths(f"uniform:1-{longest}")).admission.reservation
    each = 2 * case.kv_heads * 64 * 2
    held = (
        case.layers
        * each
        * sum(min(length, case.capacity) for length in range(1, longest + 1))
        / longest
    )
    assert found.paged.bytes * (1 - found.paged.waste) == pytest.approx(held)
    assert found.contiguous.bytes * (1 - found.contiguous.waste) == pytest.approx(held)
    with pytest.raises(BadArgument, match=f"longer than --c[a-z]+ {longest} "):
        sized(case, lengths=read_lengths(f"fixed:{longest + 1}"))


@pytest.mark.parametrize("layout", default_library().words("layout"))
@pytest.mark.parametrize("window", [0, 300])
@pytest.mark.parametrize("block_tokens", [1, 16, 100])
def test_reservation_is_the_sum_over_sequences(tmp_path, layout, window, block_tokens):
    """As allocated: 80 elements of i8 end in the second line of a row, and heads lie apart."""
    (tmp_path / "lengths").write_text("\n".join(map(str, LENGTHS)))
    words = {"layout": layout, "dtype": "i8", "scale": "f16"}
    case = Case(
        5, 8, 2, 80, 1024, block_tokens=block_tokens, window=window, window_every=5, **words
    )
    kinds = {
        str(tmp_path / "lengths"): LENGTHS,
        "uniform:7-950": range(7, 951),
        "uniform:1-1": [1],
        "fixed:900": [900],
    }
    for kind, lengths in kinds.items():
        found = sized(case, lengths=read_lengths(kind), budget=GIB).admission
        data, laid, kept = 2 * 2 * (80 + 2), 2 * 2 * (128 + 2), list(case.attended())
        rooms = [rounded(most, case.block) for most in kept]
        held = sum(data * min(length, most) for length in lengths for most in kept)
        places = sum(
            rounded(min(length, most), block_tokens) for length in lengths for most in kept
        )
        ahead = len(lengths) * case.allocated()
        sides = (
            (found.reservation.contiguous, ahead, len(lengths) * sum(rooms)),
            (found.reservation.paged, laid * places, places),
        )
        for side, reserved, slots in sides:
            assert side.bytes == reserved / len(lengths)
            assert side.waste == pytest.approx(1 - held / reserved, abs=1e-12)
            assert side.padding == pytest.approx(1 - slots * data / reserved, abs=1e-12)
            assert side.sequences == GIB * len(lengths) // reserved
        assert found.reservation.mean == pytest.approx(sum(lengths) / len(lengths))
        assert found.reservation.contiguous.sequences == found.sequences


def test_reservation_without_a_budget():
    found = sized(Case(5, 8, 2, 64, 1024), lengths=read_lengths("fixed:512")).admission
    assert (
        found.budget,
        found.tokens,
        found.sequences,
        found.reservation.contiguous.sequences,
    ) == (None,) * 4
    heads = 2 * 2 * 5 * 64  # bytes between the heads of a layer, of 512 KiB that can hold tokens
    assert found.reservation.contiguous.waste == pytest.approx(
        1 - (256 << 10) / ((512 << 10) + heads)
    )
    assert found.reservation.paged.waste == 0


@pytest.mark.parametrize(
    "text",
    [
        "uniform:5-1",
        "uniform:5",
        "uniform:0-5",
        "fixed:0",
        "fixed:x",
        "fixed:-3",
        "fixed:99999999999",
        "/nowhere/x",
    ],
)
def test_lengths_that_are_none(text):
    with pytest.raises(BadArgument, match="--lengths"):
        read_lengths(text)


@pytest.mark.parametrize("text", ["", "12 x", "-4", "1.5", "0", "\xff"])
def test_files_of_no_lengths(tmp_path, text):
    (tmp_path / "lengths").write_text(text, encoding="latin-1")
    with pytest.raises(BadArgument, match="--lengths"):
        read_lengths(str(tmp_path / "lengths"))

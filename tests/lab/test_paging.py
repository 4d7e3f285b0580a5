"""kvbench lab paging: from which size on blocks cost little, planted in every way."""

import pytest

from kvbench.lab.experiments import paging
from kvbench.lab.experiments.paging import experiment
from tests.lab.conftest import noisy

SMALL = {"model": "qwen2.5-7b", "context": 2048}
HEADS, DIM, WIDE = 4, 128, 2  # of that, and bytes of a number
SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256]


@pytest.fixture
def run(asked, plant, monkeypatch):
    """`cost`: of a block of so many tokens, in sequence or not, in a round; over the time without blocks."""

    def made(cost, given=("base",), sizes=(1, 64, 256)):
        monkeypatch.setattr("kvbench.lab.experiments.paging._BLOCKS", sizes)
        monkeypatch.setattr("kvbench.lab.experiments.paging.pages_given", lambda size, library: given)

        def seconds(name, cache, moved, number):
            if name == "head":
                return 1e-3
            table = cache.table.ravel()
            return 1e-3 * (1 + cost(cache.struct.block_tokens, bool((table[1:] < table[:-1]).any()), number))

        plant(seconds)
        return experiment(asked, **SMALL)

    return made


def test_every_size_in_both_orders(run):
    found = run(lambda tokens, shuffled, number: (2 if shuffled else 1) / tokens, ("base",), SIZES)
    table = found.table
    assert len(table) == 2 * len(SIZES)
    for (pages, order), own in table.groupby(["pages", "order"]):
        assert pages == "base" and list(own["block_tokens"]) == SIZES
        cost = {"sequential": 1, "shuffled": 2}[order]
        for row in own.itertuples():
            assert row.times == pytest.approx(1 + cost / row.block_tokens)
            assert row.share == pytest.approx(1 / row.times, rel=0.02)  # the table is read, too
            assert row.plain_gbps == pytest.approx(2 * HEADS * 2048 * DIM * WIDE / 1e-3 / 1e9, rel=0.02)
    assert "the system gives no thp and huge pages now" in found.notes
    for said in ("from 32 tokens on when sequential on base pages", "from 64 tokens on when shuffled on base pages"):
        assert said in found.sentence


def test_all_pages_that_are_given(run):
    found = run(lambda tokens, shuffled, number: 0.0, ("base", "thp"), (64,))
    assert list(found.table["pages"]) == ["base", "base", "thp", "thp"] and "huge" in found.notes[-1]


def test_where_no_size_is_cheap(run):
    said = run(lambda tokens, shuffled, number: 0.1 + 0.1 / tokens).sentence
    assert said.startswith(
        "Blocks cost less than 5% of the time without them from no size up to 256 tokens on: sequential on base pages (256 "
        "tokens: 1.10 times, 1.10..1.10) and shuffled on base pages (256 tokens: 1.10 times, 1.10..1.10)."
    )


def test_where_the_largest_alone_cost_much(run):
    """So that there is no size from which on all are cheap, though two sizes are."""
    said = run(lambda tokens, shuffled, number: {16: 0.02, 64: 0.01}.get(tokens, 0.2), sizes=(16, 64, 256)).sentence
    assert "from no size up to 256 tokens on: sequential on base pages (256 tokens: 1.20 times, 1.20..1.20)" in said
    assert "no size up to 256 tokens cost" not in said and "as far as the noise" not in said


def test_a_larger_block_that_may_cost_much(run):
    """16 tokens cost 2%; 64 cost 4%, or up to 10%: in the middle, and as the largest."""

    def cost(tokens, shuffled, number):
        return noisy(number, 0.06) - 1 + 0.04 if tokens == 64 else 0.02

    for sizes in ((16, 64, 256), (16, 64)):
        said = run(cost, sizes=sizes).sentence
        assert (
            "from 16 tokens on when sequential on base pages (1.02 times, 1.02..1.02; 64 tokens: 1.04 times, " in said
        )
        assert "0.98..1.10, as far as the noise lets one see)" in said


def test_a_largest_block_that_seems_to_cost_much(run):
    cost = {16: lambda number: 0.02, 64: lambda number: noisy(number, 0.08) - 1 + 0.1}
    said = run(lambda tokens, shuffled, number: cost[tokens](number), sizes=(16, 64)).sentence
    assert "from no size up to 64 tokens on" in said
    assert "(64 tokens: 1.10 times, 1.02..1.18, as far as the noise lets one see)" in said


def test_where_one_order_is_never_cheap(run):
    said = run(lambda tokens, shuffled, number: 0.2 if shuffled else 0.0, sizes=(1, 16)).sentence
    assert "from 1 token on when sequential on base pages (1.00 times, 1.00..1.00)" in said
    assert "; from no size on when shuffled on base pages (16 tokens: 1.20 times, 1.20..1.20)." in said


def test_a_large_block_that_costs_much_is_no_noise(run):
    said = run(lambda tokens, shuffled, number: 0.2 if tokens == 64 else 0.0).sentence
    assert "from 256 tokens on when sequential on base pages" in said


def test_noise_is_said(run):
    said = run(lambda tokens, shuffled, number: noisy(number, 0.03) - 1 + 0.03, sizes=(16,)).sentence
    assert "as far as the noise lets one see" in said


def test_fewer_sizes_where_one_takes_long(run, monkeypatch):
    """Far apart, each in both orders; and what is said is of those."""
    monkeypatch.setattr(paging, "affordable", lambda *_: 5)
    found = run(lambda tokens, shuffled, number: 0.2 if tokens < 16 else 0.0, sizes=SIZES)
    for _, own in found.table.groupby("order"):
        assert list(own["block_tokens"]) == [1, 16, 256]
    assert any(note.startswith("6 sizes and orders of 18,") for note in found.notes)
    assert "from 16 tokens on when sequential on base pages" in found.sentence


@pytest.mark.parametrize(("count", "left"), [(1, [256]), (2, [1, 256]), (3, [1, 16, 256]), (9, SIZES)])
def test_sizes_that_are_left(count, left):
    assert paging._spread(SIZES, count) == left and paging._spread([8], count) == [8]

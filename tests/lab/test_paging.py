"""kvbench lab paging: from which size on blocks cost little, planted in every way."""

import pytest

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
        "Blocks of no size up to 256 tokens cost less than 5% of the time without them: sequential on base"
    )
    assert "256 tokens nearest, with 1.10 times" in said


def test_where_one_order_is_never_cheap(run):
    said = run(lambda tokens, shuffled, number: 0.2 if shuffled else 0.0, sizes=(1, 16)).sentence
    assert "from 1 token on when sequential on base pages (1.00 times, 1.00..1.00)" in said
    assert "; those of no size do when shuffled on base pages (1 token nearest, with 1.20 times, 1.20..1.20)" in said


def test_a_large_block_that_costs_much_is_no_noise(run):
    said = run(lambda tokens, shuffled, number: 0.2 if tokens == 64 else 0.0).sentence
    assert "from 256 tokens on when sequential on base pages" in said


def test_noise_is_said(run):
    said = run(lambda tokens, shuffled, number: noisy(number, 0.03) - 1 + 0.03, sizes=(16,)).sentence
    assert "as far as the noise lets one see" in said

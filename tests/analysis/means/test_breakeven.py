"""When a layout that is dearer to store pays that back: worked out by hand."""

from dataclasses import replace

import pytest

from kvbench.analysis.limits.frames import points
from kvbench.analysis.means.breakeven import BREAKEVEN, NEVER, NOISE, PAYS, breakeven
from kvbench.analysis.measured.scaling import scaling
from tests.made_run import DECODE, MACHINE, MIB, visit

# seconds: of a token, of a token, of 1024 tokens
CHEAP = {"bulk": 1e-6, "append": 2e-6, "decode": 3e-3}
DEAR = {"bulk": 3e-6, "append": 6e-6, "decode": 2e-3}


def timed(point, seconds, launch=0):
    """A slice of 16 MiB; the seconds decide."""
    return visit(launch, {"point": [16 * MIB / seconds / 1e9]}, point)


CALM = (1.0,) * 6  # launches, of which an interval takes as many


def costs(layout, seconds, *, context=1024, noise=CALM, batch=1, window=0):
    """The three ops of one layout; `seconds` of an op that is left out is not measured."""
    shape = replace(DECODE.shape, batch=batch, context=context, capacity=context, window=window)
    records = []
    for op, each in seconds.items():
        variant = "flash" if op == "decode" else "-"
        point = replace(DECODE, op=op, variant=variant, layout=layout, shape=shape)
        passes = batch * {"bulk": context, "append": 1}.get(op, 1)
        records += [
            timed(point, each * passes * times, launch) for launch, times in enumerate(noise)
        ]
    return records


def table(records):
    found = points(records, MACHINE)
    return breakeven(found, scaling(records, found))


def test_a_dearer_store_that_is_read_faster_pays_back():
    """A prompt of 1024 tokens costs 2.048 ms more. A step saves 1 ms of reading, less 4 µs of
    storing: 2.056 steps.
    """
    (row,) = table(costs("a", DEAR) + costs("b", CHEAP)).to_dict("records")
    assert (row["dearer"], row["cheaper"], row["context"], row["fitted"]) == ("a", "b", 1024, False)
    assert row["tokens"] == pytest.approx(1024 * 2e-6 / (1e-3 - 4e-6)) and row["word"] == PAYS
    assert row["tokens_low"] == row["tokens_high"] == pytest.approx(row["tokens"])
    assert row["even"] == row["even_low"] == row["even_high"] == pytest.approx(1024 * 4e-6 / 1e-3)
    told = [
        row[f"{side}_{op}"] for side in ("dearer", "cheaper") for op in ("bulk", "append", "decode")
    ]
    assert told == pytest.approx([3e-6, 6e-6, 2e-3, 1e-6, 2e-6, 3e-3])


def test_sequences_of_a_batch_are_one_each():
    """Four share a pass: each is a fourth of it."""
    (row,) = table(costs("a", DEAR, batch=4) + costs("b", CHEAP, batch=4)).to_dict("records")
    assert (row["dearer_bulk"], row["dearer_append"]) == pytest.approx((3e-6, 6e-6))
    assert row["dearer_decode"] == pytest.approx(2e-3)
    assert row["tokens"] == pytest.approx(1024 * 2e-6 / (1e-3 - 4e-6))


def test_what_is_dearer_in_both_never_pays_back():
    (row,) = table(costs("a", DEAR | {"decode": 4e-3}) + costs("b", CHEAP)).to_dict("records")
    assert (row["dearer"], row["word"]) == ("a", NEVER) and row["tokens"] != row["tokens"]
    assert row["even"] != row["even"]


def test_a_dear_append_is_even_at_a_longer_context():
    """2 ms more for each append, 1 ms less for each read of 1024 tokens."""
    (row,) = table(costs("a", DEAR | {"append": 2e-3 + 2e-6}) + costs("b", CHEAP)).to_dict(
        "records"
    )
    assert row["word"] == NEVER and row["even"] == pytest.approx(2048)


@pytest.mark.parametrize(
    ("dear", "noise"),
    [
        (DEAR, (0.5, *CALM, 2.0)),  # stores: 1.5 to 6 µs against 0.5 to 2
        # decodes: 2.842 to 2.958 ms against 2.94 to 3.06
        (DEAR | {"decode": 2.9e-3}, (0.98, *CALM, 1.02)),
        (DEAR | {"bulk": 1.01e-6}, (0.98, *CALM, 1.02)),
    ],
)
def test_where_launches_overlap_nothing_is_said(dear, noise):
    (row,) = table(costs("a", dear, noise=noise) + costs("b", CHEAP, noise=noise)).to_dict(
        "records"
    )
    assert row["word"] == NOISE and row["tokens"] != row["tokens"]


def test_few_launches_say_nothing():
    """Five of them may all lie on one side of the truth: that is as likely as not to be seen in a
    sixteenth of runs.
    """
    (row,) = table(costs("a", DEAR, noise=CALM[1:]) + costs("b", CHEAP, noise=CALM)).to_dict(
        "records"
    )
    assert row["word"] == NOISE and row["even"] != row["even"]


def test_the_interval_holds_all_that_the_launches_allow():
    """Stores of 2.94..3.06 and 0.98..1.02 µs, decodes of 1.96..2.04 and 2.94..3.06 ms."""
    noise = (0.98, *CALM, 1.02)
    free = {"append": 1e-12}
    (row,) = table(
        costs("a", DEAR | free, noise=noise) + costs("b", CHEAP | free, noise=noise)
    ).to_dict("records")
    assert row["tokens_low"] == pytest.approx(1024 * 1.92e-6 / 1.1e-3)
    assert row["tokens_high"] == pytest.approx(1024 * 2.08e-6 / 0.9e-3)


def test_decodes_of_a_window_are_no_reads_of_the_whole():
    """They are a hundred times faster."""
    records = costs("a", DEAR) + costs("b", CHEAP)
    short = costs("a", {"decode": 2e-5}, window=8) + costs("b", {"decode": 3e-5}, window=8)
    assert table(records + short).equals(table(records))


def test_only_what_was_measured_of_both_counts():
    for lacking in CHEAP:
        part = {op: seconds for op, seconds in CHEAP.items() if op != lacking}
        assert table(costs("a", DEAR) + costs("b", part)).empty
    other = [
        replace(record, point=replace(record.point, dtype="i8")) for record in costs("b", CHEAP)
    ]
    assert table(costs("a", DEAR) + other).empty
    assert list(table([]).columns) == list(BREAKEVEN) and table(costs("a", DEAR)).empty


def test_caches_of_one_layout_are_no_pair():
    padded = [replace(record, point=replace(record.point, pad=64)) for record in costs("a", CHEAP)]
    assert table(costs("a", DEAR) + padded).empty


def test_a_store_knows_no_other_context():
    """Stores at 1024 alone, decodes at 2048: twice the prompt, twice the saving."""
    stores = {op: seconds for op, seconds in CHEAP.items() if op != "decode"}
    dear_stores = {op: seconds for op, seconds in DEAR.items() if op != "decode"}
    records = costs("a", dear_stores) + costs("b", stores)
    records += costs("a", {"decode": 4e-3}, context=2048) + costs(
        "b", {"decode": 6e-3}, context=2048
    )
    (row,) = table(records).to_dict("records")
    assert (row["context"], row["tokens"]) == (2048, pytest.approx(2048 * 2e-6 / (2e-3 - 4e-6)))


def test_a_decode_between_others_lies_on_their_line():
    """Stores at 1024, decodes at 512, 2048 and 8192 in proportion: 3 and 2 ms at 1024."""
    records = []
    for layout, seconds, stores in (("a", 2e-3, DEAR), ("b", 3e-3, CHEAP)):
        records += costs(layout, {op: each for op, each in stores.items() if op != "decode"})
        for context in (512, 2048, 8192):
            for record in costs(layout, {"decode": seconds * context / 1024}, context=context):
                moved = {
                    name: replace(each, compulsory=16.0 * context)
                    for name, each in record.traffic.items()
                }
                records.append(replace(record, traffic=moved))
    found = table(records).set_index("context")
    assert list(found["fitted"]) == [False, True, False, False]
    assert found["tokens"][1024] == pytest.approx(1024 * 2e-6 / (1e-3 - 4e-6))


def test_of_ways_to_do_it_the_fastest_counts():
    slow = [
        replace(record, point=replace(record.point, schedule="cross"))
        for record in costs("b", DEAR)
    ]
    (row,) = table([*costs("a", DEAR), *costs("b", CHEAP), *slow]).to_dict("records")
    assert row["cheaper_bulk"] == pytest.approx(1e-6)

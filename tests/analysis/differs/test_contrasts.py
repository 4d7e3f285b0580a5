"""Points that differ in one thing, from made-up records: whose ratios are planted, or worked out
with numpy.
"""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.differs.contrasts import contrasts, overall
from kvbench.analysis.limits.frames import points
from kvbench.model import Contrast, Record, Sample
from kvbench.model.contrast import value
from tests.made_run import DECODE, MACHINE, MIB, READ, failed, probe, visit

HEAD, POSITION, PAGED = (replace(DECODE, layout=layout) for layout in ("head", "position", "paged"))
NOISE = [1.0, 0.5, 1.1, 0.9, 2.0, 1.0]  # of six launches


def longer(point, context):
    return replace(point, shape=replace(point.shape, context=context, capacity=context))


def launched(rates, noise=NOISE, **facts):
    """GB/s by point, times the noise of each launch."""
    return [
        visit(n, {"point": [rate * times]}, point, **facts)
        for point, rate in rates.items()
        for n, times in enumerate(noise)
    ]


def contrasts_of(records, factor="layout"):
    found = contrasts(records, points(records, MACHINE))
    return found[found["factor"] == factor].reset_index(drop=True)


def row_of(records, factor="layout"):
    (row,) = contrasts_of(records, factor).to_dict("records")
    return row


# ---- one pair ------------------------------------------------------------------------------------


def test_a_pair():
    """As many bytes at 10 and at 8 GB/s; what a launch does to both is no part of the ratio."""
    row = row_of(launched({POSITION: 8.0, HEAD: 10.0}))
    assert (row["factor"], row["base"], row["other"]) == ("layout", "head", "position")
    assert (row["base_name"], row["other_name"]) == (HEAD.name, POSITION.name)
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == pytest.approx((0.8, 0.8, 0.8))
    assert (row["launches"], row["confidence"], row["word"]) == (6, 1 - 2**-5, "slower")
    assert (row["op"], row["dtype"], row["layout"], row["variant"]) == (
        "decode",
        "f16",
        "head",
        "flash",
    )
    assert (row["context"], row["batch"], row["threads"]) == (1024, 1, 2)
    assert (row["residency"], row["regime"]) == ("rotate", "DRAM")


def test_the_ratio_and_its_interval_are_of_launches():
    """The middle of all means of two launches, as logarithms; several rounds of a launch are one
    median. Of 45 means five are left out at each end, by tables of Wilcoxon's.
    """
    ours, theirs = np.random.default_rng(4).uniform(5, 15, (2, 9, 3))
    records = [visit(n, {"point": list(ours[n])}, HEAD) for n in range(9)]
    records += [visit(n, {"point": list(theirs[n])}, POSITION) for n in reversed(range(9))]
    logs = np.log(np.median(1 / ours, axis=1) / np.median(1 / theirs, axis=1))
    means = np.sort([(a + b) / 2 for place, a in enumerate(logs) for b in logs[place:]])
    row = row_of(records)
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == pytest.approx(
        np.exp((means[22], means[5], means[39]))
    )
    # 1, 1, 1, 2, 2, 3 ways to sum to 0, 1, ... 5
    assert row["confidence"] == pytest.approx(1 - 2 * 10 / 2**9)


@pytest.mark.parametrize(
    ("rates", "word"),
    [
        ([11.0] * 6, "faster"),
        ([9.0] * 6, "slower"),
        ([11.0] * 5 + [9.0], "same within noise"),
        ([20.0] * 5, "unknown"),
        ([20.0], "unknown"),
    ],
)
def test_words(rates, word):
    records = [visit(n, {"point": [10.0]}, HEAD) for n in range(6)]
    records += [visit(n, {"point": [rate]}, POSITION) for n, rate in enumerate(rates)]
    assert row_of(records)["word"] == word


def test_only_launches_that_measured_both_count():
    records = [visit(n, {"point": [10.0]}, HEAD) for n in (0, 1, 2)] + [failed(3, HEAD)]
    records += [visit(n, {"point": [5.0]}, POSITION) for n in (1, 2, 3)]
    assert row_of(records)["launches"] == 2
    assert contrasts_of(
        [visit(0, {"point": [10.0]}, HEAD), visit(1, {"point": [5.0]}, POSITION)]
    ).empty


# ---- which is the base ---------------------------------------------------------------------------


def dtypes(**mebibytes):
    """256 MiB of f32 are 128 MiB of f16: at one rate the time of these is half."""
    return [
        r
        for d, mib in mebibytes.items()
        for r in launched({replace(DECODE, dtype=d): 10.0}, walked=mib * MIB)
    ]


def test_the_base_moves_more_bytes():
    row = row_of(dtypes(f16=256, f32=512), "dtype")
    assert (row["base"], row["other"], row["dtype"], row["word"]) == ("f32", "f16", "f32", "faster")
    assert row["ratio"] == pytest.approx(2)


def test_as_many_bytes_but_for_a_page_table_are_as_many():
    assert row_of(dtypes(f16=256, f32=258), "dtype")["base"] == "f16"
    assert row_of(dtypes(f16=256, f32=259), "dtype")["base"] == "f32"


def test_two_values_have_one_base_in_all_pairs():
    """In one context b moves more, in the other a: more by far."""
    a, b = replace(DECODE, dtype="f16"), replace(DECODE, dtype="bf16")
    records = [*launched({a: 9.0}, walked=256 * MIB), *launched({b: 9.0}, walked=300 * MIB)]
    far = [
        *launched({longer(a, 4096): 9.0}, walked=900 * MIB),
        *launched({longer(b, 4096): 9.0}, walked=500 * MIB),
    ]
    assert set(contrasts_of(records, "dtype")["base"]) == {"bf16"}
    assert set(contrasts_of(records + far, "dtype")["base"]) == {"f16"}


# ---- which are pairs -----------------------------------------------------------------------------


def test_what_depends_on_the_factor_may_differ():
    other = replace(DECODE, dtype="i8", scale="f16")
    assert len(contrasts_of(launched({HEAD: 9.0, other: 9.0}), "dtype")) == 1
    shuffled = replace(PAGED, order=1, inner="token", block_tokens=32)
    found = contrasts_of(launched({HEAD: 9.0, PAGED: 9.0, shuffled: 9.0}))
    assert sorted(zip(found["base"], found["other"], strict=True)) == [("head", "paged")] * 2
    assert set(found["other_name"]) == {PAGED.name, shuffled.name}


@pytest.mark.parametrize(
    "other",
    [
        longer(POSITION, 2048),
        replace(POSITION, cpus=(0,)),
        replace(POSITION, residency="hot"),
        replace(POSITION, variant="twopass"),
        replace(POSITION, dtype="f32"),
        replace(POSITION, pages="base"),
        replace(POSITION, shape=replace(DECODE.shape, capacity=2048)),
        replace(HEAD, order=1),
    ],
)
def test_what_differs_in_more_is_no_pair(other):
    assert contrasts_of(launched({HEAD: 9.0, other: 9.0})).empty


def test_contexts_that_are_nearly_one():
    """Those that a cache sizes: a layout's padding makes them a little shorter."""
    rates = {longer(HEAD, 4094): 10.0, longer(POSITION, 4096): 8.0}
    row = row_of(launched(rates))
    assert (row["context"], row["ratio"]) == (4094, pytest.approx(0.8))
    exact = contrasts_of(launched(rates | {longer(HEAD, 4096): 16.0}))
    assert list(exact["context"]) == [4096] and exact["ratio"][0] == pytest.approx(0.5)
    assert contrasts_of(launched({longer(HEAD, 62): 10.0, longer(POSITION, 64): 8.0})).empty


@pytest.mark.parametrize(
    "records", [[], [probe(0, 20.0, READ)], [failed(0)], [visit(0, {"point": [9.0]})]]
)
def test_nothing_to_compare(records):
    for factor in ("layout", "dtype", "variant"):
        found = contrasts_of(records, factor)
        assert found.empty and {"ratio", "word", "base"} <= set(found.columns)
        assert overall(found).empty and {"pairs", "method"} <= set(overall(found).columns)


# ---- side by side --------------------------------------------------------------------------------


def beside(launch, pair, ratios, passes=(2, 2), factor="layout"):
    """A visit of a contrast: by round how many times as long as the first the second takes."""
    words, each = [value(point, factor) for point in pair], 0.01 * (1 + launch)
    rows = [(0, n, each, passes[0]) for n in range(len(ratios))]
    rows += [
        (1, n, each * ratio * passes[1] / passes[0], passes[1]) for n, ratio in enumerate(ratios)
    ]
    samples = tuple(
        Sample(words[p], n, passes, seconds, (), 0.0, 0, 0) for p, n, seconds, passes in rows
    )
    traffic = visit(0, {"point": [9.0]}, HEAD).traffic["point"]
    return Record(
        launch,
        Contrast(factor, pair),
        samples,
        dict.fromkeys(words, traffic),
        {},
        run=visit(0, {}, HEAD).run,
    )


def test_what_rounds_have_side_by_side_counts():
    """Visits of their own say 2 times and more; in the same rounds position takes 1.1 to 1.2 times
    as long.
    """
    own = launched({HEAD: 10.0}) + launched({POSITION: 20.0}, NOISE[::-1])
    ratios = np.linspace(1.1, 1.2, 7)
    found = own + [
        beside(n, (HEAD, POSITION), [0.9, ratio, 1.3], (2, 3)) for n, ratio in enumerate(ratios)
    ]
    row = row_of(found)
    assert row["beside"] and row["launches"] == 7 and row["word"] == "slower"
    assert row["ratio"] == pytest.approx(1 / np.exp(np.median(np.log(ratios))), rel=1e-3)
    assert 1 / 1.2 - 1e-9 <= row["ratio_low"] < row["ratio_high"] <= 1 / 1.1 + 1e-9
    assert not row_of(own)["beside"]


def test_pairs_of_rounds_speak_for_the_others():
    """Paged is in no set; head and position are in one, at one of two contexts."""
    contexts = {longer(HEAD, 2048): 9.0, longer(POSITION, 2048): 1.0}
    found = launched({HEAD: 9.0, POSITION: 9.0, PAGED: 9.0} | contexts)
    rows = overall(contrasts_of(found + [beside(n, (HEAD, POSITION), [1.1] * 3) for n in range(6)]))
    told = {
        row["other"]: (row["pairs"], row["beside"], row["word"])
        for row in rows.to_dict("records")
        if row["base"] == "head"
    }
    assert told == {"position": (1, True, "slower"), "paged": (1, False, "same within noise")}


# ---- all pairs -----------------------------------------------------------------------------------


def many(ratios, noise=NOISE):
    """A pair at each context; `noise` is of POSITION alone."""
    records = []
    for place, ratio in enumerate(ratios):
        records += launched({longer(HEAD, 64 << place): 10.0}, FLAT[: len(noise)])
        records += launched({longer(POSITION, 64 << place): 10.0 * ratio}, noise)
    return contrasts_of(records)


FLAT = [1.0] * 6
WIDE = [0.5, 1.0, 1.0, 1.0, 1.0, 2.0]


def all_of(pairs):
    (row,) = overall(pairs).to_dict("records")
    return row


def test_many_pairs_speak_by_how_they_differ():
    """Eleven from 0.7 to 0.8 lie evenly, as logarithms: ten of their 66 means are left out at each
    end.
    """
    logs = np.linspace(np.log(0.7), np.log(0.8), 11)
    row = all_of(many(np.random.default_rng(2).permutation(np.exp(logs))))
    assert (row["factor"], row["base"], row["other"], row["op"], row["regime"]) == (
        "layout", "head", "position", "decode", "DRAM",
    )  # fmt: skip
    assert (row["pairs"], row["slower"], row["faster"], row["same"], row["word"]) == (
        11,
        0,
        0,
        11,
        "slower",
    )
    means = np.sort([(a + b) / 2 for place, a in enumerate(logs) for b in logs[place:]])
    assert row["ratio"] == pytest.approx(np.exp(np.median(logs)))
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx(np.exp((means[10], means[-11])))
    assert row["method"] == "signed ranks of 11 pairs: Hodges-Lehmann's estimate, 95.8% interval"


def test_few_pairs_speak_by_their_launches():
    """Each of three is above 1, but a launch says otherwise of each."""
    row = all_of(many([1.1, 1.2, 1.3], WIDE))
    assert (row["pairs"], row["same"], row["word"]) == (3, 3, "same within noise")
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == pytest.approx((1.2, 0.6, 2.4))
    assert row["method"] == "median ends of the intervals over launches of 3 pairs"
    row = all_of(many([1.1, 1.2, 1.3], FLAT))
    assert (row["faster"], row["word"]) == (3, "faster")
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx((1.2, 1.2))


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ([1.2] * 7, "faster"),
        ([0.8, 0.8, 0.8, 0.8, 1.2, 1.2, 1.2, 1.2], "depends"),
        ([0.8, 1.2], "depends"),
        ([1.0] * 8, "same within noise"),
        ([1.0] * 8 + [0.8, 1.2], "same within noise"),  # one in ten may be chance
        ([1.0] * 6 + [0.8] * 2 + [1.2] * 2, "depends"),
    ],
)
def test_words_of_many(ratios, word):
    assert all_of(many(ratios, FLAT))["word"] == word

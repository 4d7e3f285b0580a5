"""Rooflines: roofs from the run's own ceilings and answers, points at their intensity, and what is
above a roof.
"""

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from kvbench.report.figures.look import spread
from kvbench.report.figures.roofline import roofline
from tests.made_run import DECODE, MIB, READ, probe, visit
from tests.report.drawn import APPEND, STORES, drawn, found_in, parts, strange_colours
from tests.report.planted import answered, decode

FMA = replace(READ, op="flops", bytes=0, pages="-")
BYTES, PAIRS = (replace(FMA, op=op) for op in ("dot8", "dot16"))
RATES = {"point": [10.0], "twin": [20.0], "core": [50.0]}
FLOPS = 4.0 * 16 * MIB  # of a pass of 16 MiB: 4 FLOP per byte
I8, E4M3 = (replace(DECODE, dtype=dtype, variant="dot") for dtype in ("i8", "e4m3"))
LABELS = re.compile(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>')  # from the top, in points
NAMES = re.compile(r'<text[^>]*(?: y="|translate\([\d.]+ )([\d.]+)[^>]*>peak of ([\w -]+) \(')
SLANTED = re.compile(
    r'<text[^>]* x="([\d.]+)" y="([\d.]+)" transform="rotate\((-[\d.]+) [^>]*>(Memory[^<]*)</text>'
)


def roofs():
    """20 GB/s from DRAM, 200 GFLOP/s, 700 of byte products, 400 of bf16; and those of one thread,
    which are none of theirs.
    """
    return [
        probe(0, 20.0),
        probe(0, 200.0, FMA),
        probe(0, 700.0, BYTES),
        probe(0, 400.0, PAIRS),
        probe(0, 999.0, replace(FMA, cpus=(0,))),
    ]


def figure_of(found):
    figure, text = drawn(lambda found, look: roofline(found, look, "2026-01-02"), found)
    assert not strange_colours(text)
    return figure.table, set(re.findall(r"<text[^>]*>([^<]*)</text>", text)), text


def first(records):
    return figure_of(found_in(records))


def kind(table, word, index="dtype"):
    return table[table["kind"] == word].set_index(index)


def test_points_and_roofs_are_of_most_threads():
    """10 GB/s of 4 FLOP per byte: 40 GFLOP/s. The made-up pass issues 7 bytes."""
    alone = visit(0, RATES, replace(DECODE, cpus=(0,)), flops=FLOPS)
    table, words, text = first([*roofs(), visit(0, RATES, flops=FLOPS), alone])
    (point,) = table.query("kind == 'point'").to_dict("records")
    assert (point["ai"], point["gflops"], point["gflops_low"]) == pytest.approx((4.0, 40.0, 40.0))
    assert point["ai_issued"] == pytest.approx(FLOPS / 7) and point["suspect"] == ""
    assert kind(table, "peak", "computes")["gflops"].to_dict() == pytest.approx({"flops": 200.0})
    assert {"Memory 20 GB/s", "peak of multiply-adds (scalar) 200 GFLOP/s", "GFLOP/s"} <= words
    assert "faster than its limit" not in words and parts(text)[point["row"]] == 3
    assert "2 threads" in words and any("2026-01-02" in word for word in words)


def test_each_bar_of_core_speed_is_under_the_peak_of_its_own_instructions():
    """50 GB/s of 4 FLOP per byte. A peak that nobody uses is not drawn."""
    table, words, _ = first([*roofs(), visit(0, RATES, I8, flops=FLOPS)])
    assert kind(table, "peak", "computes")["gflops"].to_dict() == pytest.approx({"dot8": 700.0})
    assert kind(table, "core speed")["gflops"].to_dict() == pytest.approx({"i8": 200.0})
    decodes = [visit(0, RATES, point, flops=FLOPS) for point in (DECODE, I8, E4M3)]
    table, words, text = first([*roofs(), *decodes])
    own = {"i8": "dot8", "e4m3": "dot16", "f16": "flops"}
    assert kind(table, "core speed")["computes"].to_dict() == own
    names = {"multiply-adds": 200, "bf16 products": 400, "byte products": 700}
    assert {f"peak of {name} (scalar) {rate} GFLOP/s" for name, rate in names.items()} <= words
    assert "to its peak" in words


def test_what_is_answered_has_the_values_of_the_answers():
    """The line gives 12 GB/s and 80 % of core speed, visits of their own 10 and 20 %."""
    found = found_in([*roofs(), visit(0, RATES, flops=FLOPS)])
    own = answered(found, [decode(DECODE, 45.0, 12.0, core=0.8)], [(40, 21.0), (2, 50.0)])
    table, words, _ = figure_of(own)
    (point,) = table.query("kind == 'point'").to_dict("records")
    assert (point["gbps"], point["gflops"], point["tokens_per_second"]) == (12.0, 48.0, 45.0)
    assert kind(table, "core speed")["gflops"]["f16"] == pytest.approx(60.0)
    assert table.query("kind == 'memory'")["gbps"].tolist() == [21.0, 50.0]
    assert {"Memory 21 GB/s (40 of 42 visits)", "Memory 50 GB/s (2 of 42 visits)"} <= words
    assert "f16 flash, head: 45 tokens/s, 12 GB/s" in words


def test_no_share_of_other_rounds_makes_a_bar():
    """The line has no core speed; visits of their own have, and are not mixed with it."""
    found = found_in([*roofs(), visit(0, RATES, flops=FLOPS)])
    table, words, _ = figure_of(answered(found, [decode(DECODE, 45.0, 12.0)]))
    assert table.query("kind == 'core speed'").empty and "core speed" not in words


def test_all_suspects_are_drawn_and_crossed():
    """Also one that is not the fastest, and one of other threads. One that does no arithmetic is
    named.
    """
    slower = replace(DECODE, layout="paged")
    alone = replace(DECODE, cpus=(0,))
    records = [visit(0, RATES, flops=FLOPS), visit(0, STORES, APPEND)]
    records += [visit(0, RATES | {"point": [9.0]}, point, flops=FLOPS) for point in (slower, alone)]
    found = answered(found_in([*roofs(), *records]), [], suspects=[slower, alone, APPEND])
    table, words, _ = figure_of(found)
    crossed = table[table["suspect"] != ""]
    assert sorted(zip(crossed["layout"], crossed["threads"], strict=True)) == [
        ("head", 1),
        ("paged", 2),
    ]
    assert len(table.query("kind == 'point'")) == 3 and "faster than its limit" in words
    about = roofline(found, None, "").about
    assert "because they do no arithmetic: f16." in about


def test_the_fastest_of_each_dtype_is_labelled_and_marks_stand_at_their_intensity():
    """All three have 4 FLOP per byte and 10 GB/s: their marks lie on each other, labels do not."""
    slower = visit(0, RATES | {"point": [9.0]}, replace(DECODE, layout="paged"), flops=FLOPS)
    others = [
        visit(0, RATES, replace(DECODE, dtype=dtype), flops=FLOPS) for dtype in ("i8", "e4m3")
    ]
    table, words, text = first([*roofs(), visit(0, RATES, flops=FLOPS), slower, *others])
    shown = {f"{dtype} flash, head: 10 GB/s" for dtype in ("f16", "i8", "e4m3")}
    assert shown <= words and len(table.query("kind == 'point'")) == 3
    assert table.query("kind == 'point'")["ai"].tolist() == pytest.approx([4.0] * 3)
    marks = re.findall(r'data-point="\d+"[^>]*>\s*<path d="M ([\d.]+)', text)
    assert len(set(marks)) == 2  # its line and the short bar of its core speed: each where it is
    heights = sorted(float(height) for height, words in LABELS.findall(text) if words in shown)
    assert len(heights) == 3
    assert all(below - above > 8.5 for above, below in pairwise(heights))


@pytest.mark.parametrize("other", [21, 50])
def test_names_of_two_lines_of_memory_do_not_overlap(other):
    """Of 20 GB/s, and of one close by or far above. Across the lines a name is 9 points high."""
    found = found_in([*roofs(), visit(0, RATES, flops=FLOPS)])
    states = [(4, 20.0), (3, float(other))]
    _, _, text = figure_of(answered(found, [decode(DECODE, 45.0, 12.0)], states))
    across = {
        words: float(y) * math.cos(math.radians(float(turned)))
        - float(x) * math.sin(math.radians(float(turned)))
        for x, y, turned, words in SLANTED.findall(text)
    }
    lower, upper = "Memory 20 GB/s (4 of 7 visits)", f"Memory {other} GB/s (3 of 7 visits)"
    assert across[lower] > across[upper] + 9


@pytest.mark.parametrize("rates", [(200, 400, 700), (200, 210, 230), (200, 330, 340)])
def test_names_of_peaks_do_not_overlap(rates):
    """Each is 9 points high. From the top they stand in the order of their lines."""
    peaks = [probe(0, float(rate), op) for rate, op in zip(rates, (FMA, PAIRS, BYTES), strict=True)]
    decodes = [visit(0, RATES, point, flops=FLOPS) for point in (DECODE, I8, E4M3)]
    _, _, text = first([probe(0, 20.0), *peaks, *decodes])
    names = sorted((float(y), kind) for y, kind in NAMES.findall(text))
    assert [kind for _, kind in names] == ["byte products", "bf16 products", "multiply-adds"]
    assert all(low - high > 9 for (high, _), (low, _) in pairwise(names))


def test_labels_keep_apart_and_near_their_marks():
    assert spread([0.3, 0.5, 0.9], 0.1) == pytest.approx([0.3, 0.5, 0.9])
    assert spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    assert spread([0.95, 0.96], 0.2) == pytest.approx([0.8, 1.0])

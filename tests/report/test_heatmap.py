"""Context against something else: cells, their ceilings, and why some are empty."""

import re
from dataclasses import replace

import pytest

from kvbench.report.figures.heatmap import heatmap
from tests.made_run import DECODE, MIB, READ, failed, probe, visit
from tests.report.drawn import BARE, RATES, bare, drawn, found_in, tagged, unknown

CEILINGS = [probe(0, 20.0), probe(0, 40.0, replace(READ, bytes=8 * MIB))]


def at(context, **changes):
    return replace(DECODE, shape=replace(DECODE.shape, context=context, capacity=context), **changes)


def test_a_cell_is_a_share_of_the_ceiling_of_its_own_regime():
    """8 GB/s of 20 from DRAM, of 40 from L3."""
    near, far = at(512, residency="hot"), at(4096, residency="hot")
    found = found_in([*CEILINGS, visit(0, RATES, near, walked=8 * MIB, layers=1), visit(0, RATES, far)])
    figure, text = drawn(heatmap, found)
    rows = figure.table.set_index("context")
    assert (rows.loc[512, "regime"], rows.loc[512, "ceiling_fraction"]) == ("L3", pytest.approx(0.2))
    assert (rows.loc[4096, "regime"], rows.loc[4096, "ceiling_fraction"]) == ("DRAM", pytest.approx(0.4))
    assert tagged(text) == set(rows["row"])
    words = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert {"20", "40", "L3", "DRAM", "4k", "512", "% of the read ceiling of the cell's regime"} <= set(words)


def test_empty_cells_say_why():
    lost, odd = at(512, dtype="f32"), at(512, dtype="bf16", residency="rotate")
    small = visit(0, RATES, odd, walked=64 * MIB)
    figure, text = drawn(heatmap, found_in([*CEILINGS, visit(0, RATES, at(512)), failed(0, lost), small]))
    notes = figure.table.set_index("line")["note"]
    assert notes["f16"] == "" and notes["f32"].startswith("failed: the worker ended") and "no ceiling" in notes["bf16"]
    assert {"x", "?"} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", text))


def test_rows_are_what_the_run_varies_most():
    records = [visit(0, RATES, at(c, cpus=tuple(range(t)))) for c in (512, 4096) for t in (1, 2, 3)]
    records += [probe(0, 20.0, replace(READ, cpus=tuple(range(t)))) for t in (1, 2, 3)]
    figure, _ = drawn(heatmap, found_in(records))
    assert figure.title == "Context against threads" and set(figure.table["line"]) == {
        "1 thread, CPUs 0",
        "2 threads, CPUs 0-1",
        "3 threads, CPUs 0-2",
    }
    heads = [replace(at(c), shape=replace(at(c).shape, q_heads=q, kv_heads=q)) for c in (512, 4096) for q in (4, 8)]
    figure, _ = drawn(heatmap, found_in([*CEILINGS, *(visit(0, RATES, point) for point in heads)]))
    assert figure.title == "Context against heads" and "4/4 heads of 64" in set(figure.table["line"])


def test_rows_have_one_order_in_all_panels():
    """From wide to narrow; a page table's few bytes more make no dtype wider."""
    wide, more = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1}, {("head", "f16"), ("paged", "bf16")}
    records = [
        visit(0, RATES, at(context, layout=layout, dtype=dtype), walked=size * (128 + ((layout, dtype) in more)) * MIB)
        for layout in ("head", "paged")
        for dtype, size in wide.items()
        for context in (512, 4096)
    ]
    figure, _ = drawn(heatmap, found_in([*CEILINGS, *records]))
    head, paged = (list(dict.fromkeys(own["line"])) for _, own in figure.table.groupby("panel"))
    assert head == paged and (head[0], head[-1]) == ("f32", "i8")


def test_contexts_that_are_nearly_the_same_share_a_column():
    points = [at(512), at(4096), at(4090, dtype="f32"), at(500, dtype="f32"), at(510, dtype="f32")]
    figure, text = drawn(heatmap, found_in([*CEILINGS, *(visit(0, RATES, point) for point in points)]))
    columns = figure.table.set_index("context")["column"]
    assert columns[4096] == columns[4090] and columns[500] != columns[510] == columns[512]
    assert {"≈4k", "500", "≈512"} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", text))


def test_unstable_cells_are_hatched_and_those_above_a_roof_starred():
    shaken = [visit(n, RATES | {"point": [rate]}) for n, rate in enumerate((2.0, 3.0, 30.0, 40.0))]
    _, text = drawn(heatmap, found_in([*CEILINGS, *shaken]))
    assert "<pattern" in text
    fast = [visit(n, {"point": [30.0 + n / 10]}) for n in range(6)] + [probe(n, 20.0) for n in range(6)]
    figure, text = drawn(heatmap, found_in(fast))
    assert figure.table["above"].all() and "151*" in text and "<pattern" not in text


@pytest.mark.parametrize("name", BARE)
def test_little_to_show(name):
    drawn(heatmap, bare(name))
    drawn(heatmap, unknown(bare(name)))

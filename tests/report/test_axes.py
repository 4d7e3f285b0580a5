"""All axes in one figure: which points each panel has, and that a point has one value."""

from dataclasses import replace

import pytest

from kvbench.report.figures.axes import axes
from kvbench.suite import model
from tests.made_run import DECODE, visit
from tests.report.drawn import drawn, found_in, strange_colours, tagged
from tests.report.planted import PAGE, answered, decode

MODEL = model("llama-3-8b")


def at(context=1024, heads=(32, 8, 128), **changes):
    q, kv, dim = heads
    shape = replace(
        DECODE.shape, context=context, capacity=context, q_heads=q, kv_heads=kv, head_dim=dim
    )
    return replace(DECODE, shape=shape, **changes)


def of(points, rows=(), models=(MODEL,)):
    """16 MiB at so many GB/s a layer."""
    records = [visit(0, {"point": [rate], "twin": [30.0]}, point) for point, rate in points]
    figure, text = drawn(axes, answered(found_in(records, models=models), list(rows)))
    assert not strange_colours(text)
    if text:
        assert tagged(text) == set(figure.table["row"])
    return figure.table, text


def test_a_panel_for_each_axis_that_varies():
    """The layout of f16 alone, two dtypes, three contexts of one of them."""
    points = [(at(), 10.0), (at(4096), 8.0), (at(512), 12.0), (at(layout="paged"), 6.0)]
    table, text = of([*points, (at(dtype="i8"), 5.0)])
    panels = {name: set(rows["point"]) for name, rows in table.groupby("panel")}
    names = {"head": at().name, "paged": at(layout="paged").name, "i8": at(dtype="i8").name}
    assert panels == {
        "context": {at().name, at(4096).name, at(512).name},
        "dtype": set(names.values()),
        "layout": {names["head"], names["paged"]},
    }
    assert "By heads" not in text and "By layout" in text


def test_heads_are_those_of_models():
    other = replace(MODEL, name="other", q_heads=16, kv_heads=16, layers=24)
    points = [(at(), 10.0), (at(heads=(16, 16, 128)), 10.0)]
    table, _ = of(points, models=(MODEL, other))
    rows = table[table["panel"] == "heads"].set_index("model")["tokens_per_second"]
    layer = 10e9 / (16 << 20)  # a second
    assert rows.to_dict() == pytest.approx({"llama-3-8b": layer / 32, "other": layer / 24})


def test_without_a_model_heads_are_a_number():
    points = [(at(heads=(q, 8, 128)), 10.0) for q in (8, 32)]
    page = replace(PAGE, model="", layers=0, context=0)
    records = [visit(0, {"point": [rate], "twin": [30.0]}, point) for point, rate in points]
    figure, text = drawn(axes, answered(found_in(records), [], page=page))
    assert figure.table[figure.table["panel"] == "heads"]["group"].tolist() == [1, 4] and text


def test_a_point_has_the_value_of_its_answer_in_each_panel():
    points = [(at(), 10.0), (at(4096), 8.0), (at(layout="paged"), 6.0), (at(dtype="i8"), 5.0)]
    table, text = of(points, [decode(at(), 77.0, 11.0)])
    own = table[table["point"] == at().name]
    assert set(own["panel"]) == {"context", "dtype", "layout"}
    assert set(own["tokens_per_second"]) == {77.0} and set(own["basis"]) == {"same rounds"}
    others = table[table["point"] != at().name]
    assert set(others["basis"]) == {"visits of their own"} and "a visit of its own" in text
    assert others.groupby("point")["tokens_per_second"].nunique().max() == 1


def test_alone_a_point_has_no_panel():
    table, text = of([(at(), 10.0)])
    assert table.empty and not text

"""A point: its name, by which runs are joined, and the table of its fields."""

from dataclasses import dataclass, fields, replace

import pytest

from kvbench.analysis.measured.columns import POINT as COLUMNS
from kvbench.analysis.measured.columns import facts, names
from kvbench.model import FIELDS, POINT, Point, Shape
from kvbench.model.field import declared, of
from kvbench.model.point import SHAPE, _later
from tests.made_run import DECODE, STORE

PAGED = replace(
    DECODE,
    layout="paged",
    dtype="i8",
    shape=replace(DECODE.shape, layers=3, batch=2, context=62, capacity=64, window=32),
    cpus=(0, 1, 2, 5),
    schedule="weave",
    scale="f16",
    inner="token",
    block_tokens=32,
    order=1,
    pad=0,
    deterministic=True,
)


@pytest.mark.parametrize(
    ("point", "name"),
    [
        (
            DECODE,
            (
                "decode.flash.head.f16.scalar/b1.q8.kv2.d64/"
                "ctx1024.cap1024.win0.layers0/cpu0-1.thp.rotate/"
                "off.f32.head.block16/order-.pad-.det0"
            ),
        ),
        (
            STORE,
            (
                "bulk.-.head.f16.scalar/b1.q8.kv2.d64/"
                "ctx1024.cap1024.win0.layers0/cpu0-1.thp.rotate/"
                "off.f32.head.block16/order-.pad-.det0"
            ),
        ),
        (
            PAGED,
            (
                "decode.flash.paged.i8.scalar/b2.q8.kv2.d64/"
                "ctx62.cap64.win32.layers3/cpu0-2,5.thp.rotate/"
                "weave.f16.token.block32/order1.pad0.det1"
            ),
        ),
        (
            replace(DECODE, dtype="q8_0", v_dtype="q4_0"),
            (
                "decode.flash.head.q8_0+q4_0.scalar/b1.q8.kv2.d64/"
                "ctx1024.cap1024.win0.layers0/cpu0-1.thp.rotate/"
                "off.f32.head.block16/order-.pad-.det0.v_dtypeq4_0"
            ),
        ),
    ],
)
def test_names_stay_as_they_are(point, name):
    assert point.name == name


def test_tables_show_a_pair_as_one_word():
    points = [replace(DECODE, dtype="q8_0", v_dtype=v) for v in ("", "q4_0")]
    assert [facts(point)["dtype"] for point in points] == ["q8_0", "q8_0+q4_0"]
    assert list(names(points).values()) == ["head q8_0", "head q8_0+q4_0"]


def test_every_field_is_declared_and_has_a_column():
    assert {field.name for field in POINT} == {field.name for field in fields(Point)} - {"shape"}
    assert {field.name for field in SHAPE} == {field.name for field in fields(Shape)}
    assert set(FIELDS) >= {*POINT, *SHAPE} and facts(PAGED).keys() >= COLUMNS.keys()


def test_a_later_field_is_named_only_where_it_is_not_the_default():
    """So the names in older runs, which lack the field, stay valid."""

    @dataclass(frozen=True)
    class Made:
        stages: bool = of("flag", False, later=True)

    assert [_later(made, declared(Made)) for made in (Made(), Made(True))] == ["", ".stages1"]

"""A point: its name, by which shipped runs are joined, and the one table of its fields."""

from dataclasses import replace

import pytest

from tests.made_run import DECODE, STORE

PAGED = replace(
    DECODE,
    layout="paged",
    dtype="i8",
    shape=replace(DECODE.shape, layers=3, batch=2, context=62, capacity=64, window=32),
    cpus=(0, 1, 2, 5),
    prefetch="near",
    distance=512,
    scale="f16",
    inner="token",
    block_tokens=32,
    shuffle=1,
    pad=0,
    deterministic=True,
)


@pytest.mark.parametrize(
    ("point", "name"),
    [
        (
            DECODE,
            "decode.flash.head.f16.scalar/b1.q8.kv2.d64/ctx1024.cap1024.win0.layers0/cpu0-1.thp.rotate/"
            "off0.f32.head.block16/order-.pad-.det0",
        ),
        (
            STORE,
            "bulk.-.head.f16.scalar/b1.q8.kv2.d64/ctx1024.cap1024.win0.layers0/cpu0-1.thp.rotate/"
            "off0.f32.head.block16/order-.pad-.det0",
        ),
        (
            PAGED,
            "decode.flash.paged.i8.scalar/b2.q8.kv2.d64/ctx62.cap64.win32.layers3/cpu0-2,5.thp.rotate/"
            "near512.f16.token.block32/order1.pad0.det1",
        ),
    ],
)
def test_names_stay_as_shipped_runs_have_them(point, name):
    assert point.name == name

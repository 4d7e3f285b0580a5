"""A library built with the slowdown reads the rows that it says, and no others."""

from pathlib import Path

import numpy as np
import pytest

from tests.oracle import Shape
from tests.raw import Bound, Raw, compiled, decode_args

HEADS, DIM, CAPACITY = 4, 32, 400


@pytest.fixture(scope="module")
def raw():
    return Raw()


@pytest.fixture(scope="module")
def slowed(tmp_path_factory):
    """Build with compile definitions that read again what `units` of a cache say."""
    made: dict[tuple[str, ...], Slowed] = {}

    def of(*definitions: str) -> Slowed:
        if definitions not in made:
            made[definitions] = Slowed(tmp_path_factory.mktemp("slow") / "slow.so", definitions)
        return made[definitions]

    return of


class Slowed:
    def __init__(self, path: Path, definitions: tuple[str, ...]) -> None:
        names = (
            "decode/slow",
            "walk/walk",
            "walk/schedule",
            "walk/requests",
            "cache/layouts",
            "cache/transposed",
            "tier/variants",
        )
        declared = (
            "int64_t reread(const void *args, const int64_t *units, int64_t count, uintptr_t"
            " *rows);"
        )
        self.ffi, self.lib = compiled(
            path, Path(__file__).with_name("slow.c"), names, declared, *definitions
        )

    def rows(
        self, raw: Raw, bound: Bound, units: list[list[int]], variant: str = "flash"
    ) -> list[int]:
        """Addresses, each K row followed by its V row."""
        q = np.zeros((1, HEADS, DIM), np.float32)
        args = decode_args(raw, bound, q, q.copy(), "scalar", variant)
        found = self.ffi.new("uintptr_t[]", 4 * HEADS * CAPACITY)
        flat = self.ffi.new("int64_t[]", [number for unit in units for number in unit])
        return list(
            found[0 : self.lib.reread(self.ffi.cast("void *", args), flat, len(units), found)]
        )


def shape(layout: str, dtype: str = "f16") -> Shape:
    return Shape(layout, dtype, batch=1, kv_heads=HEADS, head_dim=DIM, capacity=CAPACITY)


def unit(head: int, heads: int, first: int, count: int) -> list[int]:
    """seq, head, heads, q_row, q_rows, first, count, before, gap, partial"""
    return [0, head, heads, 0, 1, first, count, 0, 0, -1]


@pytest.mark.parametrize(
    ("share", "tokens"), [("0.05", 25), ("0.10", 50), ("0.5", 250), ("1", 500)]
)
def test_the_first_rows_of_a_threads_units(raw, slowed, share, tokens):
    """Head by head, with an empty unit between them: the rows of a plane lie one after another."""
    with Bound(raw, shape("head"), [CAPACITY]) as bound:
        c = bound.cache
        units = [unit(1, 1, 50, 350), unit(2, 1, 0, 0), unit(2, 1, 0, 150)]
        found = slowed(f"KVB_SLOW={share}").rows(raw, bound, units)
        order = [(1, token) for token in range(50, 400)] + [(2, token) for token in range(150)]
        places = [
            head * c.k.head_stride + token * c.k.token_stride for head, token in order[:tokens]
        ]
        planes = [int(raw.ffi.cast("uintptr_t", plane)) for plane in (c.k.rows, c.v.rows)]
        assert found == [plane + place for place in places for plane in planes]


def test_only_some_kernels_are_slower(raw, slowed):
    one = slowed(
        "KVB_SLOW=0.1",
        "KVB_SLOW_LAYOUT=LAYOUT_HEAD",
        "KVB_SLOW_DTYPE=DTYPE_F16",
        "KVB_SLOW_VARIANT=VARIANT_FLASH",
    )
    family = slowed("KVB_SLOW=0.1", "KVB_SLOW_LAYOUT=LAYOUT_HEAD", "KVB_SLOW_DTYPE=DTYPE_F16")
    found = {}
    for layout, dtype in (("head", "f16"), ("head", "bf16"), ("position", "f16")):
        with Bound(raw, shape(layout, dtype), [CAPACITY]) as bound:
            for variant in ("flash", "perhead"):
                rows = [
                    len(each.rows(raw, bound, [unit(0, 1, 0, 100)], variant))
                    for each in (one, family)
                ]
                found[variant, layout, dtype] = rows
    assert found.pop(("flash", "head", "f16")) == [20, 20]
    assert found.pop(("perhead", "head", "f16")) == [0, 20]
    assert set(map(tuple, found.values())) == {(0, 0)}

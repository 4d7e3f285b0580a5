"""Types of options: amounts, counts, paths."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from kvbench.errors import BadArgument
from kvbench.units import COUNT, GIB, KIB, MIB, TIB, whole

_LARGEST = 1 << 63


class Amount(click.ParamType):
    """A number with a unit. `units`: the factor of each unit. `such`: examples for an error.
    `exact`: the value is a whole number of the smallest unit, and at least 1.
    """

    def __init__(self, name: str, units: dict[str, Any], such: str, exact: bool = False) -> None:
        self.name, self._units, self._such, self._exact = name, units, such, exact

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z%]*)", str(value).strip())
        if not found or found[2] not in self._units:
            self.fail(f"{str(value)[:60]!r} is not understood; write {self._such}")
        amount = Fraction(found[1]) * self._units[found[2]]
        if self._exact and not 0 < round(amount) < _LARGEST:
            self.fail(f"{str(value)[:60]!r} is out of range; write {self._such}")
        return round(amount) if self._exact else float(amount)


BYTES = Amount(
    "BYTES",
    {
        "": 1,
        "B": 1,
        "kB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "TB": 10**12,
        "KiB": KIB,
        "MiB": MIB,
        "GiB": GIB,
        "TiB": TIB,
    },
    "40GiB, 16GB or 1073741824",
    exact=True,
)
TIME = Amount("TIME", {"": 1, "s": 1, "m": 60, "h": 3600}, "90, 90s, 10m or 2h")
RATE = Amount("GBPS", {"": 1}, "460 or 38.4")
SHARE = Amount("PERCENT", {"": Fraction(1, 100), "%": Fraction(1, 100)}, "1% or 0.5%")


class Count(click.ParamType):
    """A whole number, written as in a suite: 4096 or 4k."""

    name = "N"

    def __init__(self, least: int | None = None) -> None:
        self._least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        text = str(value).strip()
        try:
            count = whole(*found.groups()) if (found := re.fullmatch(COUNT, text)) else int(text)
        except ValueError:
            self.fail(f"{text[:60]!r} is not a whole number; write 4096 or 4k")
        if self._least is not None and count < self._least:
            self.fail(f"{count} is less than {self._least}")
        return count  # whether it fits its purpose, the caller checks


class Named(click.Path):
    """A path that is not empty: click takes an empty one for the current folder."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not str(value):
            self.fail("the name is empty.", param, ctx)
        return Path(str(super().convert(value, param, ctx)))


class Plot(Named):
    """The file of a figure. A bad path is refused before minutes of measuring."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from kvbench.store.files import refuse_output

        path = super().convert(value, param, ctx)
        if path.suffix not in (".png", ".svg"):
            raise BadArgument(f"--plot cannot draw {path}", "name a file that ends in .png or .svg")
        if not path.parent.is_dir():
            raise BadArgument(f"--plot: the folder {path.parent} does not exist", "make it first")
        refuse_output(path, "then draw it again")
        return path

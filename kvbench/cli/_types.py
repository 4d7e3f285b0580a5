"""Values as options take them: bytes, seconds, shares, paths."""

import math
import re
from pathlib import Path
from typing import Any

import click

from kvbench.errors import BadArgument
from kvbench.units import COUNT, GIB, KIB, MIB, TIB, whole

_BYTES = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_LARGEST = 1 << 63


class Bytes(click.ParamType):
    name = "BYTES"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)", str(value).strip())
        if not found or found[2] not in _BYTES:
            self.fail(f"{str(value)[:60]!r} is no number of bytes; write 40GiB, 16GB or 1073741824")
        count = round(float(found[1]) * _BYTES[found[2]]) if "." in found[1] else int(found[1]) * _BYTES[found[2]]
        if not 0 < count < _LARGEST:
            self.fail(f"{str(value)[:60]!r} is out of range; write 1 byte to 8EiB")
        return count


class Count(click.ParamType):
    """A number as axes of a suite have it."""

    name = "N"

    def __init__(self, least: int | None = None) -> None:
        self._least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        text = str(value).strip()
        try:
            count = whole(*found.groups()) if (found := re.fullmatch(COUNT, text)) else int(text)
        except ValueError:
            self.fail(f"{text[:60]!r} is no whole number; write 4096 or 4k")
        if self._least is not None and count < self._least:
            self.fail(f"{count} is less than {self._least}")
        return count  # too small or too large for what it counts: who asked for it says so


class Seconds(click.ParamType):
    name = "TIME"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        text = str(value).strip()
        unit = text[-1:] if text[-1:].isalpha() else ""
        try:
            return float(text.removesuffix(unit)) * _SECONDS[unit]
        except (ValueError, KeyError):
            self.fail(f"{value!r} is no time; write 90, 90s, 10m or 2h")


class Percent(click.ParamType):
    name = "PERCENT"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            share = float(str(value).strip().removesuffix("%")) / 100
        except ValueError:
            share = math.nan
        if not 0 <= share < math.inf:
            self.fail(f"{value!r} is no share; write 1% or 0.5%")
        return share


class Named(click.Path):
    """An empty text names nothing, and least of all the current folder."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not str(value):
            self.fail("the name is empty.", param, ctx)
        return Path(super().convert(value, param, ctx))


class Plot(Named):
    """A figure's file, refused before minutes of measuring and not after them."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from kvbench.store.files import refuse_output

        path = super().convert(value, param, ctx)
        if path.suffix not in (".png", ".svg"):
            raise BadArgument(f"--plot cannot draw {path}", "name a file that ends in .png or .svg")
        if not path.parent.is_dir():
            raise BadArgument(f"--plot: there is no folder {path.parent}", "make it first")
        refuse_output(path, "then draw it again")
        return path

"""A number of bytes, as options take it."""

import re
from typing import Any

import click

from kvbench.units import GIB, KIB, MIB, TIB

_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}
_LARGEST = 1 << 63


class Bytes(click.ParamType):
    name = "BYTES"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)", str(value).strip())
        if not found or found[2] not in _UNITS:
            self.fail(f"{str(value)[:60]!r} is no number of bytes; write 40GiB, 16GB or 1073741824")
        count = round(float(found[1]) * _UNITS[found[2]]) if "." in found[1] else int(found[1]) * _UNITS[found[2]]
        if not 0 < count < _LARGEST:
            self.fail(f"{str(value)[:60]!r} is out of range; write 1 byte to 8EiB")
        return count

"""A time, as options take it."""

from typing import Any

import click

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Seconds(click.ParamType):
    name = "TIME"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        text = str(value).strip()
        unit = text[-1:] if text[-1:].isalpha() else ""
        try:
            return float(text.removesuffix(unit)) * _UNITS[unit]
        except (ValueError, KeyError):
            self.fail(f"{value!r} is no time; write 90, 90s, 10m or 2h")

"""A share, as options take it."""

import math
from typing import Any

import click


class Share(click.ParamType):
    name = "PERCENT"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            share = float(str(value).strip().removesuffix("%")) / 100
        except ValueError:
            share = math.nan
        if not 0 <= share < math.inf:
            self.fail(f"{value!r} is no share; write 1% or 0.5%")
        return share

"""Files and folders as options name them."""

from pathlib import Path
from typing import Any

import click


class Named(click.Path):
    """An empty text names nothing, and least of all the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the name is empty.", param, ctx)
        return Path(super().convert(value, param, ctx))

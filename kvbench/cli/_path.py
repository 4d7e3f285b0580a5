"""A file or folder that somebody names."""

from pathlib import Path
from typing import Any

import click


class Named(click.Path):
    """As a Path. An empty text names nothing, and least of all the current folder."""

    def __init__(self, **more: Any) -> None:
        super().__init__(path_type=Path, **more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the name is empty.", param, ctx)
        return super().convert(value, param, ctx)

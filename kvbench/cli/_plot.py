"""Where a figure that was asked for goes."""

from pathlib import Path

from kvbench.errors import BadArgument

_DRAWN = (".png", ".svg")


def refuse_plot(path: Path | None) -> None:
    """Before minutes of measuring, not after them."""
    if path and path.suffix not in _DRAWN:
        raise BadArgument(f"--plot is {path}", f"a file that ends in {' or '.join(_DRAWN)}")
    if path and not path.parent.is_dir():
        raise BadArgument(f"--plot: there is no folder {path.parent}", "make it first")
    if path:
        from kvbench.store.files import refuse_output

        refuse_output(path, "then draw it again")

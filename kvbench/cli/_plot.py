"""Where a figure that was asked for goes."""

from pathlib import Path

from kvbench.errors import BadArgument

_DRAWN = (".png", ".svg")


def refuse_plot(path: Path | None) -> None:
    """Before minutes of measuring, not after them."""
    from kvbench.store.files import refuse_output

    if path is None:
        return
    if path.suffix not in _DRAWN:
        raise BadArgument(f"--plot is {path}", f"a file that ends in {' or '.join(_DRAWN)}")
    if not path.parent.is_dir():
        raise BadArgument(f"--plot: there is no folder {path.parent}", "make it first")
    refuse_output(path, "then draw it again")

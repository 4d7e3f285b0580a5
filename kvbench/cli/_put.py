"""Text that a command is asked for, to standard output or into a file."""

from pathlib import Path

import click


def put(text: str, out: Path | None, what: str, again: str) -> None:
    """`what` the text is, and what to do `again` where the file cannot be written."""
    from kvbench.store import write_text
    from kvbench.store.files import writing

    if out is None:
        click.echo(text, nl=False)
        return
    with writing(out, again):
        write_text(out, text, asked=True)
    click.echo(f"{what}: {out}", err=True)

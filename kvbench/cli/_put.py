"""Text that a command is asked for, to standard output or into a file."""

from pathlib import Path

from kvbench.cli._streams import say


def put(text: str, out: Path | None, what: str, again: str) -> None:
    """`what` the text is, and what to do `again` where the file cannot be written."""
    from kvbench.store import write_text
    from kvbench.store.files import writing

    if out is None:
        say(text, nl=False)
        return
    with writing(out, again):
        write_text(out, text)
    say(f"{what}: {out}", err=True)

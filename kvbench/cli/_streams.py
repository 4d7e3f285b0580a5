"""The standard streams as commands meet them: a reader that is gone changes neither what they do
nor how they end, and no text makes a terminal do anything.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import click

from kvbench.errors import Unwritable
from kvbench.texts import shown


def say(text: str, *, nl: bool = True, err: bool = False) -> None:
    """The only door: all that commands print."""
    click.echo(shown(text), nl=nl, err=err)


def say_json(found: Any) -> None:
    say(json_text(found))


def tell(found: Any, as_json: bool, lines: Callable[[], Iterable[str]]) -> None:
    """What was found: all of it, or as lines for people."""
    if as_json:
        say_json(found)
    else:
        say("\n".join(lines()))


def draw(figure: Any, path: Path) -> None:
    """A figure of a report, into the file that --plot names."""
    from kvbench.report.figures.look import save

    save(figure.canvas(), path)
    say(f"plot: {path}", err=True)


def json_text(found: Any) -> str:
    """In ASCII: what a terminal would obey, and half a character, as a path may hold it, are
    escaped.
    """
    from kvbench.store import plain

    return json.dumps(plain(found))


def put(text: str, out: Path | None, what: str, again: str) -> None:
    """To standard output or into a file. `what` the text is, and what to do `again` where it cannot
    be written.
    """
    from kvbench.store import write_text
    from kvbench.store.files import writing

    if out is None:
        say(text, nl=False)
        return
    with writing(out, again):
        write_text(out, text, asked=True)
    say(f"{what}: {out}", err=True)


class _Output(io.FileIO):
    """Standard output. Where its reader has seen enough (| head), the rest is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # nor is it tried when the interpreter ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                return len(data)
            raise Unwritable(
                f"cannot write standard output: {error.strerror}", "make room, or write a file"
            ) from None


class _Messages(io.FileIO):
    """Standard error. What cannot be written is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or len(data)  # None where it would have to wait
        except OSError:
            return len(data)


def take_streams() -> None:
    """Where one is closed, what would go there is dropped. One that somebody else has put there is
    left alone.
    """
    sys.stdout = _taken(sys.stdout, sys.__stdout__, _Output)
    sys.stderr = _taken(sys.stderr, sys.__stderr__, _Messages)


def _taken(stream: Any, own: Any, kind: type[io.FileIO]) -> IO[str]:
    if stream is None:
        return open(os.devnull, "w")  # noqa: SIM115
    if stream is not own:
        return stream
    raw = io.BufferedWriter(kind(stream.fileno(), "wb", closefd=False))
    return io.TextIOWrapper(
        raw, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering
    )

"""The standard streams of commands. If a reader goes away, a command works on and ends as usual.
Control characters are made harmless before they reach a terminal.
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
    """Print a text. Every command prints through this function."""
    click.echo(shown(text), nl=nl, err=err)


def say_json(found: Any) -> None:
    """Print a value as JSON."""
    say(json_text(found))


def tell(found: Any, as_json: bool, lines: Callable[[], Iterable[str]]) -> None:
    """Print a result: all of it as JSON, or as lines for people."""
    if as_json:
        say_json(found)
    else:
        say("\n".join(lines()))


def draw(figure: Any, path: Path) -> None:
    """Draw a figure of a report into the file that --plot names."""
    from kvbench.report.figures.look import save

    save(figure.canvas(), path)
    say(f"plot: {path}", err=True)


def json_text(found: Any) -> str:
    """A value as JSON in ASCII. Control characters, and half characters that a path may hold, are
    escaped.
    """
    from kvbench.store import plain

    return json.dumps(plain(found))


def put(text: str, out: Path | None, what: str, again: str) -> None:
    """Write a text to standard output, or into the file `out`. `what`: a word for the text.
    `again`: what the user should do again if the file cannot be written.
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
    """Standard output. If its reader has gone away (| head), the rest is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # so that the interpreter does not try again at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                return len(data)
            raise Unwritable(
                f"cannot write standard output: {error.strerror}",
                "free some space, or write to a file elsewhere",
            ) from None


class _Messages(io.FileIO):
    """Standard error. A text that cannot be written is dropped."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or len(data)  # None where it would have to wait
        except OSError:
            return len(data)


def take_streams() -> None:
    """Replace both streams by the classes above. Texts for a closed stream are dropped. A stream
    that other code has installed stays.
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

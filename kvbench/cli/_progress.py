"""What a run is doing, on standard error: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator

import click

from kvbench.model import Record

_QUIET_SECONDS = 10.0  # between two lines


def follow(records: Iterable[Record], total: int, about: Callable[[Record], str]) -> Iterator[Record]:
    """Pass the records on, and say how far it is. `about`: a few words on the newest one."""
    yield from (_bar if sys.stderr.isatty() else _lines)(records, total, about)


def _bar(records: Iterable[Record], total: int, about: Callable[[Record], str]) -> Iterator[Record]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=total)
        for record in records:
            progress.update(task, advance=1, description=about(record))
            yield record


def _lines(records: Iterable[Record], total: int, about: Callable[[Record], str]) -> Iterator[Record]:
    start = said = time.monotonic()
    for done, record in enumerate(records, 1):
        now = time.monotonic()
        if now - said > _QUIET_SECONDS:
            said = now
            left = (now - start) / done * (total - done)
            click.echo(f"{done} of {total}, {left:.0f} s left: {about(record)}", err=True)
        yield record

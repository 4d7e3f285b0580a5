"""What a run is doing, on standard error: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator

import click

from kvbench.model import Record
from kvbench.units import span

_QUIET_SECONDS = 10.0  # between two lines


def follow(
    records: Iterable[Record],
    total: float,
    weight: Callable[[Record], float],
    about: Callable[[Record], str],
) -> Iterator[Record]:
    """Pass the records on, and say how far it is. `weight`: a record's part of the `total` work, in any unit.

    `about`: a few words on the newest one. Nothing wakes up between two records: a sample may be running.
    """
    yield from (_bar if sys.stderr.isatty() else _lines)(records, total, weight, about)


def _bar(
    records: Iterable[Record], total: float, weight: Callable[[Record], float], about: Callable[[Record], str]
) -> Iterator[Record]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("starting", total=total)
        for record in records:
            progress.update(task, advance=weight(record), description=about(record), refresh=True)
            yield record


def _lines(
    records: Iterable[Record], total: float, weight: Callable[[Record], float], about: Callable[[Record], str]
) -> Iterator[Record]:
    start = said = time.monotonic()
    done = 0.0
    for record in records:
        done += weight(record)
        text, now = about(record), time.monotonic()
        if now - said > _QUIET_SECONDS:
            said = now
            left = (now - start) / done * max(0.0, total - done)
            click.echo(f"{min(done / max(total, done), 1):.0%} done, {span(left)} left: {text}", err=True)
        yield record

"""What a run is doing, on standard error: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kvbench.cli._streams import say
from kvbench.texts import printable
from kvbench.units import span

Done = Any  # a record, or whatever else is passed on
_QUIET_SECONDS = 10.0  # between two lines


def follow(
    records: Iterable[Done],
    total: Callable[[], float],
    weight: Callable[[Done], float],
    about: Callable[[Done], str],
) -> Iterator[Done]:
    """Pass the records on, and say how far it is. `weight`: a record's part of the `total` work, which may
    grow, in any unit.

    `about`: a few words on the newest one. Nothing wakes up between two records: a sample may be running.
    """
    yield from (_bar if sys.stderr.isatty() else _lines)(records, total, weight, about)


def _bar(
    records: Iterable[Done], total: Callable[[], float], weight: Callable[[Done], float], about: Callable[[Done], str]
) -> Iterator[Done]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("starting", total=total())
        for record in records:
            words = printable(about(record))
            progress.update(task, advance=weight(record), total=total(), description=words, refresh=True)
            yield record


def _lines(
    records: Iterable[Done], total: Callable[[], float], weight: Callable[[Done], float], about: Callable[[Done], str]
) -> Iterator[Done]:
    start = said = time.monotonic()
    done = 0.0
    for record in records:
        done += weight(record)
        text, now = about(record), time.monotonic()
        if now - said > _QUIET_SECONDS:
            said = now
            whole = max(total(), done)
            left = (now - start) / done * (whole - done)
            say(f"{done / whole:.0%} done, {span(left)} left: {text}", err=True)
        yield record

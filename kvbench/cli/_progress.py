"""What a run is doing, on standard error: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kvbench.cli._streams import say
from kvbench.texts import printable
from kvbench.units import span

Done = Any  # a record, or whatever else is passed on
Show = Callable[[float, float, str], None]  # work done, all of it, words
_QUIET_SECONDS = 10.0  # between two lines


def follow_each(records: Iterable[Done], count: int, about: Callable[[Done], str]) -> Iterator[Done]:
    """As many records, each as much work as the others."""
    return follow(records, lambda: count, lambda record: 1.0, about)


def follow(
    records: Iterable[Done], total: Callable[[], float], weight: Callable[[Done], float], about: Callable[[Done], str]
) -> Iterator[Done]:
    """Pass the records on, and say how far it is. `weight`: a record's part of the `total` work, which may grow, in any
    unit. `about`: a few words on the newest one. Nothing wakes up between two records: a sample may be running."""
    done = 0.0
    with _bar() if sys.stderr.isatty() else _lines() as show:
        for record in records:
            done += weight(record)
            show(done, max(total(), done), about(record))
            yield record


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("starting")

        def show(done: float, whole: float, words: str) -> None:
            progress.update(task, completed=done, total=whole, description=printable(words), refresh=True)

        yield show


@contextmanager
def _lines() -> Iterator[Show]:
    start = said = time.monotonic()

    def show(done: float, whole: float, words: str) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said > _QUIET_SECONDS:
            said = now
            say(f"{done / whole:.0%} done, {span((now - start) / done * (whole - done))} left: {words}", err=True)

    yield show

"""What a run is doing, on standard error: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from kvbench.cli._streams import say
from kvbench.texts import printable
from kvbench.units import span

Done = Any  # a record, or whatever else is passed on
Show = Callable[[float, float, str], None]  # work done, all of it, words
Tell = Callable[[str], None]  # a line that stays
_QUIET_SECONDS = 10.0  # between two lines


def follow(
    records: Iterable[Done],
    total: Callable[[], float],
    weight: Callable[[Done], float],
    about: Callable[[Done], str],
    note: Callable[[Done], str] = lambda record: "",
) -> Iterator[Done]:
    """Pass the records on, and say how far it is. `weight`: a record's part of the `total` work, which may
    grow, in any unit.

    `about`: a few words on the newest one; `note`: a line that stays. Nothing wakes up between two records: a sample may
    be running.
    """
    done = 0.0
    with _bar() if sys.stderr.isatty() else _lines() as (show, tell):
        for record in records:
            done += weight(record)
            show(done, max(total(), done), about(record))
            if said := note(record):
                tell(printable(said))
            yield record


@contextmanager
def _bar() -> Iterator[tuple[Show, Tell]]:
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

        yield show, partial(progress.console.print, markup=False, highlight=False)


@contextmanager
def _lines() -> Iterator[tuple[Show, Tell]]:
    start = said = time.monotonic()

    def show(done: float, whole: float, words: str) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said > _QUIET_SECONDS:
            said = now
            say(f"{done / whole:.0%} done, {span((now - start) / done * (whole - done))} left: {words}", err=True)

    yield show, partial(say, err=True)

"""Progress on standard error: a bar on a terminal, else a line every ten seconds or so."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kvbench.cli._streams import say
from kvbench.texts import printable
from kvbench.units import span

Done = Any  # a record, or whatever else is passed on
Show = Callable[[float, float, str], None]  # share of the work that is done, seconds left, words
_QUIET_SECONDS = 10.0  # between two lines
_EARLY = 0.01  # share of the work: before that, no time left can be estimated


def follow_each(
    records: Iterable[Done], count: int, about: Callable[[Done], str]
) -> Iterator[Done]:
    """Pass `count` records on and show the progress; each is equally much work."""
    return follow(records, lambda: count, lambda record: 1.0, about)


def follow(
    records: Iterable[Done],
    total: Callable[[], float],
    weight: Callable[[Done], float],
    about: Callable[[Done], str],
    most: Callable[[], float] = lambda: math.inf,
) -> Iterator[Done]:
    """Pass the records on, and show the progress. `weight`: a record's part of the `total` work, in
    any unit; the total may grow. `about`: a few words on the newest record. `most`: seconds until
    a budget ends the work. Nothing wakes up between two records, for a sample may be running.
    """
    done, start = 0.0, time.monotonic()
    with _bar() if sys.stderr.isatty() else _lines() as show:
        for record in records:
            done += weight(record)
            whole = max(total(), done)
            share = done / whole if whole else 1.0
            left = (time.monotonic() - start) * (1 / share - 1) if share >= _EARLY else math.inf
            show(share, min(left, max(0.0, most())), about(record))
            yield record


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        *columns, console=Console(stderr=True), transient=True, auto_refresh=False
    ) as progress:
        task = progress.add_task("starting", total=1.0, left="")

        def show(share: float, left: float, words: str) -> None:
            progress.update(
                task,
                refresh=True,
                completed=share,
                left="" if math.isinf(left) else f"{span(left)} left",
                description=printable(words),
            )

        yield show


@contextmanager
def _lines() -> Iterator[Show]:
    said = time.monotonic()

    def show(share: float, left: float, words: str) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said > _QUIET_SECONDS:
            said = now
            pace = "" if math.isinf(left) else f", {span(left)} left"
            say(f"{share:.0%} done{pace}: {words}", err=True)

    yield show

"""kvbench suites"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import click

from kvbench.cli._options import json_option
from kvbench.cli._streams import say, say_json
from kvbench.model.annotated import Printed, about


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One suite on this machine."""

    name: Annotated[str, about("as sweep and plan take it")]
    count: Annotated[int, about("points on this machine")]
    seconds: Annotated[
        float, about("seconds: forecast of a sweep here, from start to end, as plan has it")
    ]
    question: Annotated[str, about("what it asks")]
    left_out: Annotated[str, about("without points, why most were left out; else empty")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites(Printed):
    """The suites that are shipped."""

    suites: Annotated[tuple[SuiteRow, ...], about("those that are shipped, by rising time")]


_NOTE = """
Times are forecasts of kvbench sweep SUITE, from start to end, with tuning. Up to: launches
are added while questions are open. kvbench score takes less than the suite: it measures the fastest
kernels alone."""


@click.command("suites")
@json_option
def command(as_json: bool) -> None:
    """List the suites: their points and time on this machine, and the question that each answers.

    For more about one suite: kvbench plan SUITE.
    """
    rows, times = _rows()
    rows.sort(key=lambda row: row.seconds)
    if as_json:
        say_json(Suites(suites=tuple(rows)))
        return
    say("\n".join(_lines(rows, times)))
    say(_NOTE, err=True)


def _rows() -> tuple[list[SuiteRow], dict[str, str]]:
    """And their times in words, by suite."""
    from kvbench.cli.understand.plan import by_reason
    from kvbench.machine import available_memory, describe
    from kvbench.plan import Site, expand
    from kvbench.session import Options, foreseen
    from kvbench.suite import find, shipped

    here = Site(describe(), available_memory())
    rows, times = [], {}
    for name in shipped():
        sweep = expand(find(name), here)
        seen = foreseen(sweep, Options(name), here.machine)
        why = "" if sweep.points else next(iter(by_reason(sweep.skips)), "")
        rows.append(
            SuiteRow(sweep.suite.name, len(sweep.points), seen.whole, sweep.suite.question, why)
        )
        times[sweep.suite.name] = seen.text
    return rows, times


def _lines(rows: list[SuiteRow], times: dict[str, str]) -> Iterator[str]:
    width = max(len(row.name) for row in rows)
    longest = max(map(len, times.values()))
    for row in rows:
        why = f" ({row.left_out})" if row.left_out else ""
        yield (
            f"{row.name:<{width}}  {row.count:>5} points  {times[row.name]:<{longest}} "
            f" {row.question}{why}"
        )

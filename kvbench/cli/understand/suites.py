"""kvbench suites"""

from dataclasses import dataclass
from typing import Annotated

import click

from kvbench.cli._options import json_option
from kvbench.cli._streams import say, say_json
from kvbench.model.annotated import Printed, about
from kvbench.units import span


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One suite on this machine."""

    name: Annotated[str, about("as sweep and plan take it")]
    count: Annotated[int, about("points on this machine")]
    seconds: Annotated[float, about("seconds: that a sweep would take here, forecast")]
    question: Annotated[str, about("what it asks")]
    left_out: Annotated[str, about("without points, why most were left out; else empty")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites(Printed):
    """The suites that are shipped."""

    suites: Annotated[tuple[SuiteRow, ...], about("those that are shipped, by rising time")]


@click.command("suites")
@json_option
def command(as_json: bool) -> None:
    """List the suites: their points and time on this machine, and the question that each answers.

    For more about one suite: kvbench plan SUITE.
    """
    from kvbench.cli.understand.plan import by_reason
    from kvbench.machine import available_memory, describe
    from kvbench.plan import Site, expand, forecast
    from kvbench.suite import find, shipped

    here = Site(describe(), available_memory())
    rows = []
    for sweep in (expand(find(name), here) for name in shipped()):
        suite, why = sweep.suite, "" if sweep.points else next(iter(by_reason(sweep.skips)), "")
        rows.append(SuiteRow(suite.name, len(sweep.points), forecast(sweep).seconds, suite.question, why))
    rows.sort(key=lambda row: row.seconds)
    if as_json:
        say_json(Suites(suites=tuple(rows)))
        return
    width = max(len(row.name) for row in rows)
    for row in rows:
        why = f" ({row.left_out})" if row.left_out else ""
        say(f"{row.name:<{width}}  {row.count:>5} points  {span(row.seconds):>10}  {row.question}{why}")

"""kvbench suites"""

import json

import click

from kvbench.cli._options import json_option
from kvbench.cli._streams import say


@click.command("suites")
@json_option
def command(as_json: bool) -> None:
    """List the suites: points and time on this machine, and the question that each answers.

    kvbench plan SUITE says more of one.
    """
    from kvbench.cli.plan import by_reason, site
    from kvbench.plan import expand, forecast
    from kvbench.suite import find, shipped
    from kvbench.units import span

    here = site()
    sweeps = [expand(find(name), here) for name in shipped()]
    rows = [
        {
            "name": sweep.suite.name,
            "count": len(sweep.points),
            "seconds": forecast(sweep).seconds,
            "question": sweep.suite.question,
            "left_out": "" if sweep.points else next(iter(by_reason(sweep.skips)), ""),
        }
        for sweep in sweeps
    ]
    rows.sort(key=lambda row: row["seconds"])
    if as_json:
        say(json.dumps({"version": 1, "suites": rows}))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        why = f" ({row['left_out']})" if row["left_out"] else ""
        say(
            f"{row['name']:<{width}}  {row['count']:>5} points  {span(row['seconds']):>10}  {row['question']}{why}"
        )

"""A history as a table for other tools: every result in a row."""

from kvbench.history.whole import History
from kvbench.texts import csv_text
from kvbench.units import GB

_RUN = ("run", "created", "suite", "build", "environment")
_NUMBERS = ("launches", "efficiency", "low", "high", "seconds")
_LONG = ("machine", *_RUN, "point", *_NUMBERS, "bytes_per_second", "witness")


def exported(history: History) -> str:
    """An unknown number is an empty cell. `efficiency` is the point's rate over its witness's; `seconds`: of a pass."""
    rows = []
    for past in history.pasts:
        wanted = {trend.series.point for trend in past.trends}
        for summary in (history.summaries[ran.path] for ran in past.runs):
            who = (past.fingerprint, *(getattr(summary, name) for name in _RUN))
            for each in sorted(summary.results, key=lambda each: each.point.name):
                if (name := each.point.name) in wanted:
                    numbers = (getattr(each, column) for column in _NUMBERS)
                    rows.append((summary.began, (*who, name, *numbers, each.gbps * GB, each.witness)))
    rows.sort(key=lambda row: row[0])  # over all machines; points stay in the order of their names
    return csv_text([_LONG, *(cells for _, cells in rows)])

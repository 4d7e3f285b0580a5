"""A history as a table for other tools: every result in a row."""

from kvbench.history.index import Index
from kvbench.history.whole import History
from kvbench.texts import csv_text
from kvbench.units import GB

_LONG = ("machine", "run", "created", "suite", "build", "environment", "point", "launches", "efficiency", "low", "high")
_LONG += ("seconds", "bytes_per_second", "witness")


def exported(history: History) -> str:
    """An unknown number is an empty cell. `efficiency` is the point's rate over its witness's; `seconds`: of a pass."""
    rows = []
    with Index(history.root) as index:
        index.update(lambda _: None)
        for machine, fingerprint, _ in index.machines():
            past = next((past for past in history.pasts if past.fingerprint == fingerprint), None)
            wanted = {trend.series.point for trend in past.trends} if past else set()
            runs = {row.id: row for row in index.runs(machine)}
            for run, point, launches, efficiency, low, high, seconds, gbps, witness in index.results(machine):
                if run in runs and point in wanted:
                    ran = runs[run]
                    who = (fingerprint, ran.run, ran.created, ran.suite, ran.build, ran.environment)
                    numbers = (launches, efficiency, low, high, seconds, gbps * GB, witness)
                    rows.append((ran.began, (*who, point, *numbers)))
    rows.sort(key=lambda row: row[0])  # stable: points stay in the order of their names
    return csv_text([_LONG, *(cells for _, cells in rows)])

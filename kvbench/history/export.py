"""A history as tables for other tools: every result in a row, or every run in one as Apache Otava wants it."""

import json

from kvbench.errors import BadArgument, NotComparable
from kvbench.exports.sound import moment
from kvbench.history.index import Index
from kvbench.history.whole import History
from kvbench.texts import cell, csv_text, printable
from kvbench.units import GB

OTAVA = "kvbench-history.csv"  # as its configuration names it
_LONG = ("machine", "run", "created", "suite", "build", "environment", "point", "launches", "efficiency", "low", "high")
_LONG += ("seconds", "bytes_per_second", "witness")
_ATTRIBUTES = ("run_id", "build", "environment")


def exported(history: History, form: str) -> tuple[str, str]:
    """The text of one of FORMS, and what must be said of it."""
    return FORMS[form](history)


def _csv(history: History) -> tuple[str, str]:
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
    return csv_text([_LONG, *(cells for _, cells in rows)]), ""


def _otava_csv(history: History) -> tuple[str, str]:
    """It takes no empty cell: points that some run lacks are left out."""
    past, columns, lost = _wide(history)
    rows = (
        (moment(ran.created).isoformat(timespec="seconds"), ran.run, ran.build, ran.environment)
        + tuple(values[place] for values in columns.values())
        for place, ran in enumerate(past.runs)
    )
    return csv_text([("time", *_ATTRIBUTES, *columns), *rows]), lost


def _otava_yaml(history: History) -> tuple[str, str]:
    past, columns, lost = _wide(history)
    lines = ["tests:", f"  {json.dumps(f'kvbench on {printable(past.machine)}', ensure_ascii=False)}:", "    type: csv"]
    lines += [
        f"    file: {OTAVA}",
        "    time_column: time",
        f"    attributes: [{', '.join(_ATTRIBUTES)}]",
        "    metrics:",
    ]
    for column in map(json.dumps, columns):
        lines += [f"      {column}:", f"        column: {column}", "        direction: 1"]
    return "\n".join(lines) + "\n", lost


FORMS = {"csv": _csv, "otava-csv": _otava_csv, "otava-yaml": _otava_yaml}


def _wide(history: History) -> tuple:
    """The history of a machine, by column the efficiency of all runs, and what is left out."""
    if len(history.pasts) != 1:
        known = ", ".join(past.fingerprint for past in history.pasts)
        hint = f"choose one with --machine: {known}" if known else "there are no runs: kvbench history add"
        raise BadArgument(f"a series is of one machine, and these runs are of {len(history.pasts)}", hint)
    (past,) = history.pasts
    whole = [trend.series for trend in past.trends if len(trend.series.runs) == len(past.runs)]
    if not whole:
        hint = "choose the runs of one suite, in a folder of their own, or --format csv"
        raise NotComparable("no point was measured in every run, and a series has no gaps", hint)
    left = len(past.trends) - len(whole)
    lost = f"left out: {left} of {len(past.trends)} points, which some run lacks" if left else ""
    return past, {cell(f"{series.point} efficiency"): series.efficiency for series in whole}, lost

"""A history as tables for other tools: every result in a row, or every run in one as Apache Otava wants it."""

from kvbench.errors import BadArgument, NotComparable
from kvbench.exports.otava import configured, timed
from kvbench.history.whole import History
from kvbench.texts import cell, csv_text, printable
from kvbench.units import GB

OTAVA = "kvbench-history.csv"  # as its configuration names it
_RUN = ("run", "created", "suite", "build", "environment")
_NUMBERS = ("launches", "efficiency", "low", "high", "seconds")
_LONG = ("machine", *_RUN, "point", *_NUMBERS, "bytes_per_second", "witness")
_ATTRIBUTES = ("run_id", "build", "environment")


def exported(history: History, form: str) -> tuple[str, str]:
    """The text of one of FORMS, and what must be said of it."""
    return FORMS[form](history)


def _csv(history: History) -> tuple[str, str]:
    """`efficiency` is the point's rate over its witness's; `seconds`: of a pass."""
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
    return csv_text([_LONG, *(cells for _, cells in rows)]), ""


def _otava_csv(history: History) -> tuple[str, str]:
    """It takes no empty cell: points that some run lacks are left out."""
    past, columns, lost = _wide(history)
    rows = (
        (timed(ran.created), ran.run, ran.build, ran.environment) + tuple(values[place] for values in columns.values())
        for place, ran in enumerate(past.runs)
    )
    return csv_text([("time", *_ATTRIBUTES, *columns), *rows]), lost


def _otava_yaml(history: History) -> tuple[str, str]:
    past, columns, lost = _wide(history)
    return configured(printable(past.machine), OTAVA, _ATTRIBUTES, dict.fromkeys(columns, 1)), lost


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

"""Tables of steps with several queries, each beside the same step with one query."""

from kvbench.analysis.answers import Answers
from kvbench.analysis.means.findings import Findings
from kvbench.report.cells import NOTHING, answered, texts, titled, within, worded
from kvbench.report.sheet import Columns, Sheet, plain, sheet
from kvbench.report.words import said as words
from kvbench.report.words.phrases import narrow
from kvbench.units import counted


def drafting(found: Answers) -> Sheet:
    """Steps with several queries for the page's workload: a row for each dtype."""
    own = found.speculation
    columns: Columns = {
        "dtype": ("dtype", str),
        "kernel": (lambda row: f"{row['variant']}, {row['layout']}", str),
        **{
            f"{counted(count, 'query')} ({counted(count - 1, 'draft')})": answered(
                f"of {count}", narrow
            )
            for count in own.counts
        },
    }
    rows = [
        {name: getattr(line, name) for name in line.__slots__}
        | {
            f"of {count}": step.times if (step := line.at(count)) else NOTHING
            for count in own.counts
        }
        for line in own.page
    ]
    title, about = texts("drafting")
    where = words("speculate", "where", own.page[0]) if own.page else ""
    return sheet("drafting", title.format(where), about, columns, rows)


def queries(found: Findings) -> Sheet:
    """Steps of several queries, each beside the same with one."""
    columns: Columns = {
        **plain("dtype", "variant", "layout"),
        "heads a KV head": ("group", str),
        "context": ("context", "{:,}".format),
        **plain("threads", "mask", "queries", "drafts"),
        "times as long as one query": answered("times"),
        "interval": (lambda row: within(row["times"]), str),
        "core time, likewise": answered("core", narrow),
        "what limits": worded("limit", "first", "limit"),
        "verdict": (lambda row: str(row["worth"]), str),
    }
    rows = [
        {name: getattr(line, name) for name in line.__slots__}
        | {name: getattr(step, name) for name in step.__slots__}
        for line in found.answers.speculation.lines
        for step in line.steps
    ]
    places = {name: place for place, name in enumerate(found.points["name"])}
    return titled("queries", columns, rows, [places[row["point"]] for row in rows])

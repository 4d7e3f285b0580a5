"""The page of a machine: who it is, its runs and scores, and what each of them says. A command
makes all of it.
"""

from collections.abc import Iterator

from kvbench.report.ending import short, tables
from kvbench.report.kept import KeptMachine, KeptRun, KeptScore
from kvbench.report.parts import bullets, code, engine_table, prose, spaced
from kvbench.report.words import paragraphs, said
from kvbench.report.words.findings import sentences
from kvbench.report.words.first import badge, hardware
from kvbench.texts import markdown as plain
from kvbench.texts import markdown_table, wrapped

MADE = "<!-- Made by `kvbench report results/* --tables`. Do not edit: it is made anew. -->"
_RUN = ("place", "question", "made", "launches", "graded")  # cells of a run
_HEADS = ("run", "question", "made", "launches", "grade")
# the answers of suites that ask one thing; other suites show their first screen
_TOPICS = ("mixed", "scores", "speculate", "latency", "step", "serve")


def page(machine: KeptMachine) -> str:
    return "\n".join(_lines(machine)) + "\n"


def _lines(machine: KeptMachine) -> Iterator[str]:
    yield from (MADE, "", f"# {plain(machine.name)}", "")
    yield from prose(f"{_who(machine)}.")
    if machine.runs:
        rows = [[said("kept", cell, run) for cell in _RUN] for run in machine.runs]
        yield from ("", *markdown_table(_HEADS, rows))
    for own in machine.scores:
        yield from ("", *_score(own))
    for run in machine.runs:
        yield from ("", *_run(run))
    if machine.tables:
        files = (said("kept", "file", each) for each in machine.tables)
        yield from ("", "## Tables", "", *bullets(files))


def _who(machine: KeptMachine) -> str:
    facts = [plain(machine.cpu), said("kept", "kind", machine)]
    known = [plain(hardware(run.found.machine, run.found.checks)) for run in machine.runs[:1]]
    return " · ".join([*facts, *known])


def _score(own: KeptScore) -> Iterator[str]:
    yield from ("## Score", "", *prose(said("kept", "score", own)), "")
    first, *rest = paragraphs("score", "lines", own.score)
    yield from code([*wrapped([first], ""), *wrapped(rest)])


def _run(run: KeptRun) -> Iterator[str]:
    yield from (f"## {plain(run.name)}", "")
    if run.engines:
        yield from _peers(run)
    elif run.quick or not (told := list(_told(run))):
        yield from code(short(run.found))
    else:
        yield from told


def _peers(run: KeptRun) -> Iterator[str]:
    """Other engines: the table, and what it says in all."""
    assert run.engines
    yield from (*prose(_grade(run)), "", *engine_table(run.engines, run), "")
    summary = paragraphs("peers", "summary", run.found.beside)
    yield from spaced(prose(plain(each)) for each in summary)


def _told(run: KeptRun) -> Iterator[str]:
    """A suite's own answer: its sentences and tables, as a terminal shows them. Nothing if it has
    none.
    """
    said_ = [plain(each.text) for each in sentences(run.found) if each.topic in _TOPICS]
    own = [each for each in tables(run.found.answers) if each.topic in _TOPICS]
    if not said_ and not own:
        return
    yield from (*prose(_grade(run)), "", *bullets(said_))
    for each in own:
        yield from ("", *code([*each.lines, *wrapped([each.rule] if each.rule else [])]))


def _grade(run: KeptRun) -> str:
    grade, reason = badge(run.found.answers)
    return f"**{grade}.** {plain(reason)}"

"""kvbench report"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Long
from kvbench.cli._options import refuse_both
from kvbench.cli._streams import json_text, put, say
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, KvbenchError
from kvbench.units import counted

_TEXTS = ("md", "json", "csv")


@click.command(
    "report",
    cls=Long,
    groups={"Output": "format out redact", "Pages of a repository": "tables"},
    examples={
        "kvbench report runs/mine": "Write a page into the run directory.",
        "kvbench report runs/mine results/zen4-kvm-2/quick --out both": "Compare two machines.",
        "kvbench report results/* --tables": "Rewrite the tables of Markdown pages.",
    },
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=Named())
@click.option(
    "-o",
    "--out",
    type=Named(),
    help=(
        "For html: a folder [default: report/ in RUN]. For other formats: a file [default: standard"
        " output]."
    ),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", *_TEXTS]),
    show_default="html",
    help="html: a page; md: Markdown for a pull request; json: everything; csv: all points.",
)
@click.option(
    "--redact", "hide", is_flag=True, help="Leave out host names, the CPU's name and paths."
)
@click.option(
    "--tables",
    is_flag=True,
    help=(
        "Each RUN is a folder of one machine's runs. Write a README.md into it, and rewrite the"
        " marked parts of the *.md files beside these folders and of README.md one folder above. A"
        " part stands between <!-- kvbench: NAME --> and <!-- end -->; NAME is scores, machines,"
        " engines RUN [DTYPE...] or screen RUN [short]."
    ),
)
def command(
    runs: tuple[Path, ...], out: Path | None, form: str | None, hide: bool, tables: bool
) -> None:
    """Write a page with the answers and figures of each RUN. The page needs no network.

    A RUN is a folder that kvbench sweep has written, finished or not. The numbers of each figure
    are written beside it as CSV. Several runs get a page each, one page that compares them, and a
    table of their ratios on the terminal. If RUNs are scores, archives of scores, or folders of
    these, such as results/*, a gallery lists all machines.
    """
    from kvbench.store.names import MANIFEST

    if tables:
        _tables(runs, format=form, out=out, redact=hide)
        return
    form = form or "html"
    if form == "html" and (len(runs) > 1 or not (runs[0] / MANIFEST).exists()):
        runs = _gallery(runs, out)
        if not runs:
            return
    if form == "html" and out is None and len(runs) > 1:
        raise BadArgument(
            "--out: several runs need a folder for their pages", "name one: -o report"
        )
    studies = [_study(path, hide) for path in runs]
    if form in _TEXTS:
        put(_text(studies, form), out, "report", "then call kvbench report again")
    else:
        from kvbench.report.write import BESIDE, own

        _draw(
            studies, ["DIR" if hide else str(path) for path in runs], out or own(runs[0] / BESIDE)
        )


def _tables(paths: tuple[Path, ...], **others: object) -> None:
    """Rewrite the pages. `others`: options that do not go with --tables, as they were given."""
    from kvbench import shelf

    for name in others:
        refuse_both(tables=True, **{name: others[name]})
    made = shelf.pages(shelf.machines_of(paths))
    changed = shelf.write(made)
    for path in made:
        say(f"{path}: {'changed' if path in changed else 'as it was'}")


def _gallery(paths: tuple[Path, ...], out: Path | None) -> tuple[Path, ...]:
    """Write a gallery of the paths that hold a score. Return the other paths that are runs; return
    all paths if none holds a score.
    """
    from kvbench.report.gallery import write_gallery
    from kvbench.store.names import MANIFEST
    from kvbench.submission import found_in, of

    places = {path: list(found_in(path)) for path in paths}
    left = tuple(path for path, found in places.items() if not found)
    if len(left) == len(places):
        return paths
    scores, notes = [], []
    for place in (place for found in places.values() for place in found):
        try:
            scores.append(of(place))
        except KvbenchError as error:
            notes.append(f"{place} is left out: {error.args[0]}")
    runs = tuple(path for path in left if (path / MANIFEST).exists())
    notes += [f"{path} has no score" for path in left if path not in runs and not path.is_file()]
    for note in notes:
        say(note, err=True)
    page = write_gallery(
        (out or Path("gallery")) / ("scores.html" if runs else "index.html"), scores, notes
    )
    say(f"scores of {counted(len(scores), 'machine')}: {page}")
    return runs


def _study(path: Path, hide: bool) -> tuple[Any, Any]:
    from kvbench.report.redact import redact
    from kvbench.results import Run, load

    run = load(path)
    if hide:
        manifest, machine, checks, records = redact(
            run.manifest, run.machine, run.checks, run.records
        )
        run = Run(run.path, manifest, machine, records, checks)
    return run.findings(), run.manifest


def _text(studies: list[Any], form: str) -> str:
    from kvbench.report.data import Reports, points, report
    from kvbench.report.markdown import markdown

    if form == "md":
        return "\n".join(markdown(found, manifest) for found, manifest in studies)
    if form == "csv":
        return points([found for found, _ in studies])
    facts = [report(found, manifest) for found, manifest in studies]
    return json_text(facts[0] if len(facts) == 1 else Reports(runs=tuple(facts))) + "\n"


def _draw(studies: list[Any], places: list[str], out: Path) -> None:
    from kvbench.report.machines import text
    from kvbench.report.write import write

    if len(studies) > 1:
        say("\n".join([*text(studies), ""]))
    for (found, manifest), place in zip(studies, places, strict=True):
        if lines := list(_said(found, manifest, place, len(studies) == 1)):
            say("\n".join([f"run {found.run}", *lines, ""]))
    say(f"report: {write(out, studies)}")


def _said(found: Any, manifest: Any, place: str, whole: bool) -> Iterator[str]:
    """Lines on what the run lacks, then, if `whole`, all that it says. The command that goes on
    stays in one line, so that it can be copied.
    """
    from kvbench.report.ending import text
    from kvbench.report.words.gaps import gaps, resume
    from kvbench.texts import wrapped

    for sentence in gaps(found, manifest, place):
        yield from [f"  {sentence}"] if resume(manifest, place) in sentence else wrapped([sentence])
    if whole:
        yield from text(found)

"""kvbench score"""

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from kvbench.cli._options import isa_option, json_option, plugin_option, tuning_option
from kvbench.cli._streams import put, say, say_json
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, Exit


@click.command("score")
@click.argument("run", metavar="[RUN]", required=False, type=Named())
@click.option("--out", type=Named(), help="The run directory. [default: a new one below runs/]")
@click.option("--resume", is_flag=True, help="Finish the run in --out.")
@click.option("--markdown", "as_markdown", is_flag=True, help="A table to paste instead of text.")
@click.option("--badge", type=Named(dir_okay=False), help="Write an SVG with the line, too.")
@click.option("--pages", help="Kind of pages to ask the system for: base, thp or huge. [default: thp]")
@click.option(
    "--library", type=click.Path(exists=True, dir_okay=False, resolve_path=True), help="Another build: an open score."
)
@plugin_option
@isa_option
@tuning_option
@json_option
def command(
    run: Path | None,
    out: Path | None,
    resume: bool,
    as_markdown: bool,
    badge: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """The number to quote: tokens per second of attention, by a workload that is the same on all machines.

    With RUN, say the score of a run that is there, or of an archive. results/README.md has the rules.
    """
    from kvbench.report.words import paragraphs, template
    from kvbench.submission import of

    given = {name: value for name, value in asked.items() if value is not None}
    if run is None:
        run = _measured(given, out, resume)
        if run is None:
            return Exit.INTERRUPTED
    elif given or out or resume:
        raise BadArgument("RUN is there already, and options of measuring are given", "leave out one or the other")
    found = of(run)
    if badge:
        put(template("score", "badge", found), badge, "badge", "then call kvbench score RUN --badge again")
    if as_json:
        say_json(found)
    else:
        lines = "\n  ".join(paragraphs("score", "lines", found))
        say(template("score", "markdown", found) if as_markdown else lines, nl=not as_markdown)
    return Exit.UNCLEAR if found.state == "invalid" else Exit.FINE


def _measured(asked: dict[str, Any], out: Path | None, resume: bool) -> Path | None:
    """The run directory; None where it was interrupted."""
    from kvbench.session import Session, scoring
    from kvbench.store.keep import is_vacant
    from kvbench.submission import refuse_changed, seal
    from kvbench.units import span

    if resume and (out is None or asked):
        raise BadArgument("--resume finishes the run in --out as it was begun", "name it with --out, and nothing else")
    if not resume and out and not is_vacant(out):
        raise BadArgument(f"{out} holds something already", "name another --out, or finish that run with --resume")
    begun: Session | None = None
    try:
        if resume:
            refuse_changed(out)
            begun = Session.resume(out)
        else:
            seconds, filling = scoring.forecast(asked)
            say(f"score: about {span(seconds)}, {span(filling)} of it to fill memory and to begin", err=True)
            kernels = scoring.pick(asked, _followed)
            say(f"score: picked {', '.join(kernels)}", err=True)
            begun = scoring.begin(asked, kernels, out, shlex.join(["kvbench", *sys.argv[1:]]))
        with begun:
            _run(begun)
            with scoring.begin_longer(begun) as longer:
                _run(longer)
        say(f"run: {begun.directory.path}", err=True)
        seal(begun.directory.path)
        return Path(begun.directory.path)
    except KeyboardInterrupt:
        again = f"--resume --out {shlex.quote(str(begun.directory.path))}" if begun else ""
        say(f"kvbench: interrupted; to go on: kvbench score {again}".rstrip(), err=True)
        return None


def _run(session: Any) -> None:
    """However it ends, what there is can be read."""
    try:
        weights = session.weights()
        for _ in _followed(session.records(), session.left(), lambda record: weights[record.point.name]):
            pass
    finally:
        session.finish()
        if session.remark:
            say(session.remark, err=True)


def _followed(records: Iterable[Any], total: float, weight: Callable[[Any], float] = lambda _: 1.0) -> Iterator[Any]:
    from kvbench.cli._progress import follow
    from kvbench.report.course import Newest

    return follow(records, lambda: total, weight, Newest())

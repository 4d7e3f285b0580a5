"""kvbench score"""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._measuring import command_line, finished, follow_all, given, say_busy
from kvbench.cli._options import FILE, isa_option, json_option, plugin_option, tuning_option
from kvbench.cli._progress import follow_each
from kvbench.cli._signals import begun_anew, interrupted_line, resumable
from kvbench.cli._streams import say, tell
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, Exit


@click.command("score")
@click.argument("run", metavar="[RUN]", required=False, type=Named())
@click.option("--out", type=Named(), help="The run directory. [default: a new one below runs/]")
@click.option("--resume", is_flag=True, help="Finish the run in --out.")
@click.option(
    "--pages", help="Kind of pages to ask the system for: base, thp or huge. [default: thp]"
)
@click.option("--library", type=FILE, help="Another build: an open score.")
@plugin_option
@isa_option
@tuning_option
@json_option
def command(run: Path | None, out: Path | None, resume: bool, as_json: bool, **asked: Any) -> int:
    """The number to quote: tokens per second of attention, by a workload that is the same on all
    machines.

    With RUN, say the score of a run that is there, or of an archive. results/README.md has the
    rules.
    """
    from kvbench.report.words import paragraphs
    from kvbench.submission import of

    asked = given(asked)
    if run is None:
        run = _measured(asked, out, resume)
        if run is None:
            return Exit.INTERRUPTED
    elif asked or out or resume:
        raise BadArgument(
            "RUN is there already, and options of measuring are given", "leave out one or the other"
        )
    found = of(run)
    tell(found, as_json, lambda: ["\n  ".join(paragraphs("score", "lines", found))])
    return Exit.UNCLEAR if found.state == "invalid" else Exit.FINE


def _measured(asked: dict[str, Any], out: Path | None, resume: bool) -> Path | None:
    """The run directory; None where it was interrupted."""
    from kvbench.session import Session, scoring
    from kvbench.submission import refuse_changed

    if resume and (out is None or asked):
        raise BadArgument(
            "--resume finishes the run in --out as it was begun",
            "name it with --out, and nothing else",
        )
    if resume and out:
        refuse_changed(out)
        resumable("score", out)
        begun = Session.resume(out)
    else:
        begun_anew(command_line())
        scoring.refuse_no_room(out)
        begun = _begun(asked, out)
    try:
        _finished(begun)
    except KeyboardInterrupt:
        say(interrupted_line(), err=True)
        return None
    say(f"run: {begun.directory.path}", err=True)
    return Path(begun.directory.path)


def _begun(asked: dict[str, Any], out: Path | None) -> Any:
    """The session of a score, of the fastest kernels, which are timed here."""
    from kvbench.report.course import Newest
    from kvbench.session import scoring
    from kvbench.units import span

    seconds, filling = scoring.forecast(asked)
    say(
        f"score: about {span(seconds)}, {span(filling)} of it to fill memory and to begin", err=True
    )
    say_busy("taskset -c LIST")
    kernels = scoring.pick(asked, partial(follow_each, about=Newest()))
    say(f"score: picked {', '.join(kernels)}", err=True)
    return scoring.begin(asked, kernels, out, command_line())


def _finished(begun: Any) -> None:
    """With its longer part, and sealed."""
    from kvbench.session import scoring
    from kvbench.submission import seal

    resumable("score", begun.directory.path)
    with begun:
        with finished(begun):
            follow_all(begun)
        with scoring.begin_longer(begun) as longer, finished(longer):
            follow_all(longer)
    seal(begun.directory.path)

"""kvbench score"""

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._measuring import command_line, finished, follow_all, given
from kvbench.cli._options import FILE, isa_option, json_option, plugin_option, tuning_option
from kvbench.cli._progress import follow_each
from kvbench.cli._streams import say, tell
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, Exit


@click.command("score")
@click.argument("run", metavar="[RUN]", required=False, type=Named())
@click.option("--out", type=Named(), help="The run directory. [default: a new one below runs/]")
@click.option("--resume", is_flag=True, help="Finish the run in --out.")
@click.option("--pages", help="Kind of pages to ask the system for: base, thp or huge. [default: thp]")
@click.option("--library", type=FILE, help="Another build: an open score.")
@plugin_option
@isa_option
@tuning_option
@json_option
def command(run: Path | None, out: Path | None, resume: bool, as_json: bool, **asked: Any) -> int:
    """The number to quote: tokens per second of attention, by a workload that is the same on all machines.

    With RUN, say the score of a run that is there, or of an archive. results/README.md has the rules.
    """
    from kvbench.report.words import paragraphs
    from kvbench.submission import of

    asked = given(asked)
    if run is None:
        run = _measured(asked, out, resume)
        if run is None:
            return Exit.INTERRUPTED
    elif asked or out or resume:
        raise BadArgument("RUN is there already, and options of measuring are given", "leave out one or the other")
    found = of(run)
    tell(found, as_json, lambda: ["\n  ".join(paragraphs("score", "lines", found))])
    return Exit.UNCLEAR if found.state == "invalid" else Exit.FINE


def _measured(asked: dict[str, Any], out: Path | None, resume: bool) -> Path | None:
    """The run directory; None where it was interrupted."""
    from kvbench.report.course import Newest
    from kvbench.session import Session, scoring
    from kvbench.store.run import is_vacant
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
            kernels = scoring.pick(asked, partial(follow_each, about=Newest()))
            say(f"score: picked {', '.join(kernels)}", err=True)
            begun = scoring.begin(asked, kernels, out, command_line())
        with begun:
            with finished(begun):
                follow_all(begun)
            with scoring.begin_longer(begun) as longer, finished(longer):
                follow_all(longer)
        say(f"run: {begun.directory.path}", err=True)
        seal(begun.directory.path)
        return Path(begun.directory.path)
    except KeyboardInterrupt:
        again = f"--resume --out {shlex.quote(str(begun.directory.path))}" if begun else ""
        say(f"kvbench: interrupted; to go on: kvbench score {again}".rstrip(), err=True)
        return None

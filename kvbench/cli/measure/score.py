"""kvbench score"""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Long
from kvbench.cli._measuring import command_line, finished, follow_all, given, say_busy
from kvbench.cli._options import (
    isa_option,
    json_option,
    plugin_option,
    refuse_both,
    same,
    tuning_option,
)
from kvbench.cli._progress import follow_each
from kvbench.cli._signals import begun_anew, interrupted_line, resumable
from kvbench.cli._streams import say, tell
from kvbench.cli._types import Named
from kvbench.errors import BadArgument, Exit


@click.command(
    "score",
    cls=Long,
    groups={
        "How": "pages library plugin isa tuning",
        "An archive to publish": "pack name check",
        "Output": "out resume json",
    },
    examples={
        "kvbench score --out runs/score": "Measure the score of this machine.",
        "kvbench score --pack runs/score --out mine.tar.gz": "Pack it, for others to check.",
    },
)
@click.argument("run", metavar="[RUN]", required=False, type=Named())
@same("pages", "thp")
@same("library", "the installed one")
@plugin_option
@isa_option
@tuning_option
@click.option(
    "--pack", is_flag=True, help="Pack the score in RUN into the archive that --out names."
)
@click.option(
    "--name",
    help="With --pack: name of the machine in the archive. [default: its fingerprint]",
)
@click.option(
    "--check",
    is_flag=True,
    help="Check RUN, an archive: say in one line whether it holds a valid score.",
)
@click.option(
    "--out",
    type=Named(),
    help=(
        "Run directory [default: a new one below runs/]; with --pack: the archive to write, such as"
        " mine.tar.gz."
    ),
)
@click.option("--resume", is_flag=True, help="Finish the run in --out.")
@json_option
def command(run: Path | None, out: Path | None, as_json: bool, **asked: Any) -> int:
    """Measure the number to quote: tokens per second of attention, by one workload for all
    machines.

    With RUN, print the score of a run directory or of an archive. The folder results/ has the
    rules. With --library or --plugin the score is open: compare it with open scores only.

    --pack writes an archive of RUN without host names, paths and the CPU's name; --name can give a
    name. --check takes an archive from anybody: it unpacks only the files of a score, and computes
    the score anew. Valid means consistent, not true: kvbench cannot tell an invented journal from
    a measured one.
    """
    from kvbench.report.words import paragraphs, said
    from kvbench.submission import checked, of, pack

    packed, name, check, resume = (asked.pop(each) for each in ("pack", "name", "check", "resume"))
    asked = given(asked)
    _refuse_both(run, packed, check, name)
    if run is None:
        run = _measured(asked, out, resume)
        if run is None:
            return Exit.INTERRUPTED
    elif asked or resume or out and not packed:
        raise BadArgument(
            "RUN is already measured, so options for measuring do not go with it",
            "leave out RUN, or these options",
        )
    if packed or check:
        found = pack(run, _archive(out), name or "") if packed else checked(run)
        topics = ("verdict", "machine", "consistent") if check else ("verdict", "machine")
        line = "; ".join(filter(None, (said("score", topic, found) for topic in topics)))
    else:
        found = of(run)
        line = "\n  ".join(paragraphs("score", "lines", found))
    tell(found, as_json, lambda: [line])
    return Exit.UNCLEAR if found.state == "invalid" else Exit.FINE


def _refuse_both(run: Path | None, packed: bool, check: bool, name: str | None) -> None:
    refuse_both(pack=packed, check=check)
    if run is None and (packed or check):
        raise BadArgument(
            f"{'--pack' if packed else '--check'} needs a RUN",
            "kvbench score --pack RUN --out FILE, or kvbench score --check FILE",
        )
    if name is not None and not packed:
        raise BadArgument("--name only works with --pack", "add --pack")


def _archive(out: Path | None) -> Path:
    from kvbench.submission import ENDING

    if out is None or not out.name.endswith(ENDING):
        raise BadArgument(
            f"--out is {out}" if out else "--pack needs --out", f"a file that ends in {ENDING}"
        )
    return out


def _measured(asked: dict[str, Any], out: Path | None, resume: bool) -> Path | None:
    """Measure a score, and return its run directory; None if it was interrupted."""
    from kvbench.session import Session, scoring
    from kvbench.submission import refuse_changed

    if resume and (out is None or asked):
        raise BadArgument(
            "--resume needs --out, and takes no other options of the run",
            "kvbench score --resume --out DIR",
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
    """Begin the session of a score: time all kernels briefly, and pick the fastest."""
    from kvbench.report.course import newest
    from kvbench.session import scoring
    from kvbench.units import span

    seconds, filling = scoring.forecast(asked)
    say(
        f"score: about {span(seconds)}, of which {span(filling)} fill memory before timing begins",
        err=True,
    )
    say_busy("taskset -c LIST")
    kernels = scoring.pick(asked, partial(follow_each, about=newest))
    say(f"score: picked {', '.join(kernels)}", err=True)
    return scoring.begin(asked, kernels, out, command_line())


def _finished(begun: Any) -> None:
    """Measure the score, then its longer and its loaded part, and seal the run directory."""
    from kvbench.session import scoring
    from kvbench.submission import seal

    resumable("score", begun.directory.path)
    with begun:
        with finished(begun):
            follow_all(begun)
        with scoring.begin_longer(begun) as longer, finished(longer):
            follow_all(longer)
        _follow_loaded(begun)
    seal(begun.directory.path)


def _follow_loaded(begun: Any) -> None:
    """Measure latency beside a load. If that cannot be measured, the score is still valid."""
    from kvbench.session import scoring

    try:
        loaded = scoring.begin_loaded(begun)
    except scoring.UNCHASED as error:
        say(f"score: no latency beside a load: {error.args[0]}", err=True)
        return
    with loaded, finished(loaded):
        follow_all(loaded)

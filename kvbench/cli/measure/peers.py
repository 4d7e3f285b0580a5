"""kvbench peers"""

from functools import partial
from pathlib import Path
from typing import Any

import click

from kvbench.cli._measuring import command_line, concluded, given
from kvbench.cli._options import (
    json_option,
    launches_option,
    out_option,
    report_option,
    same,
    tuning_option,
    with_options,
)
from kvbench.cli._streams import say, tell
from kvbench.errors import BadArgument, unknown_word

_AXES = ("context", "dtype", "threads")


@click.command("peers")
@click.option(
    "--model",
    help=(
        "Models whose heads to take, such as llama-3-8b,llama-2-7b; or one file. [default: the"
        " suite's]"
    ),
)
@with_options(*(same(name, "the suite's") for name in _AXES))
@click.option(
    "--peers", "wanted", help="Engines, such as ggml,numpy. [default: all that are installed]"
)
@click.option(
    "--ggml", type=click.Path(exists=True, dir_okay=False), help="Another library of ggml."
)
@click.option(
    "--cke",
    type=click.Path(exists=True),
    help="The C-Kernel-Engine's library, or a folder that holds it.",
)
@launches_option
@out_option
@click.option("--resume", is_flag=True, help="Finish the run in --out.")
@report_option
@tuning_option
@json_option
def command(out: Path | None, resume: bool, report: bool, as_json: bool, **asked: Any) -> int:
    """Time other engines' decode attention beside ours: same values, same CPUs, same rounds.

    Engines come with pip install 'kvbench[peers]', 'kvbench[torch]', or an entry point
    kvbench.peers of another package. --model takes names of suites/models.toml, or one file: a
    config.json or the folder that holds it, or a .gguf. --context, --dtype and --threads take
    several values, too, such as 4k,16k. The run directory is an ordinary one:
    report, compare and history work on it.
    """
    from kvbench.plan.expansion import NO_PEER
    from kvbench.report.peers import launches
    from kvbench.session import Options, Session

    if resume and (out is None or any(asked.values())):
        raise BadArgument(
            "--resume finishes the run in --out as it was begun",
            "name it with --out, and nothing else",
        )
    with (
        Session.resume(out)
        if resume and out
        else Session.begin(Options(**_options(asked)), out, command_line())
    ) as session:
        say(launches(session.directory.manifest.plan.launches), err=True)
        for skip in session.directory.manifest.skips:
            if skip.reason == NO_PEER:
                say(f"left out: {skip.detail}", err=True)
        return concluded(session, "peers", partial(_tell, report=report, as_json=as_json))


def _options(asked: dict[str, Any]) -> dict[str, Any]:
    from kvbench.peers.known import entries

    paths = {name: path for name in ("ggml", "cke") if (path := asked.pop(name))}
    wanted = asked.pop("wanted")
    names = wanted.split(",") if wanted else list(entries())
    for name in names:
        if name not in entries():
            raise unknown_word("--peers", name, entries())
    axes = (
        *_heads(asked.pop("model")),
        *(f"{name}={value}" for name in _AXES if (value := asked.pop(name))),
    )
    own = tuple(f"{name}={paths.get(name, '')}" for name in names) if wanted or paths else ()
    return {"suite": "peers", "axes": axes, "peers": own, **given(asked)}


def _heads(text: str | None) -> tuple[str, ...]:
    """Axes for --model: names of suites/models.toml, or the heads of one file."""
    from kvbench.checkpoint import is_file, walked
    from kvbench.model import HEADS

    if not text:
        return ()
    names = text.split(",")
    files = [name for name in names if is_file(name)]
    if not files or len(names) == 1:
        found = [walked(name, "--model") for name in names]
        return (
            tuple(f"{key}={getattr(found[0], key)}" for key in HEADS)
            if files
            else (f"model={text}",)
        )
    walked(files[0], "--model")
    raise BadArgument(
        f"--model {text[:60]} names a file among others",
        "names of suites/models.toml, or one file alone",
    )


def _tell(run: Any, report: bool, as_json: bool) -> None:
    from kvbench.report.peers import compared, text
    from kvbench.report.write import BESIDE, own, write

    found = run.findings()
    page = str(write(own(run.path / BESIDE), [(found, run.manifest)])) if report else ""
    tell(
        compared(found, run.manifest.skips, str(run.path), page),
        as_json,
        lambda: [*text(found), "", f"  {'report' if page else 'run'}    {page or run.path}"],
    )

"""kvbench peers"""

from collections.abc import Callable
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

_AXES = ("context", "q_len", "dtype", "threads")
_LIBRARIES = ("ggml", "cke")  # that have an option of their own; --build is for all


def _build(engine: str, said: str) -> Callable[..., Any]:
    return click.option(
        f"--{engine}", type=click.Path(exists=True), multiple=True, metavar="PATH", help=said
    )


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
@_build("ggml", "Another library of ggml. Two are two rows, with their ratio.")
@_build("cke", "The C-Kernel-Engine's library, or a folder that holds it.")
@click.option(
    "--build",
    "named",
    multiple=True,
    metavar="ENGINE[@LABEL]=PATH",
    help="Another library of any engine. May be repeated: two of an engine are two rows.",
)
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="ENGINE[@LABEL]=PATH",
    help="An engine that another Python has, such as vllm=vllm/bin/python. May be repeated.",
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
    config.json or the folder that holds it, or a .gguf. --context, --q-len, --dtype and
    --threads take several values, too, such as 4k,16k. The run directory is an ordinary one:
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
    from kvbench.peers.builds import builds, engine_of
    from kvbench.peers.known import entries

    own = [f"{engine}={path}" for engine in _LIBRARIES for path in asked.pop(engine)]
    named, pythons, wanted = asked.pop("named"), asked.pop("pythons"), asked.pop("wanted")
    names = wanted.split(",") if wanted else list(entries())
    built, elsewhere = map(engine_of, named), map(engine_of, pythons)
    options = {"--peers": names, "--build": built, "--python": elsewhere}
    for option, engines in options.items():
        for engine in engines:
            if engine not in entries():
                raise unknown_word(option, engine, entries())
    paths = (*own, *named)
    builds(names, paths, pythons)  # refuses what names none
    pathed = {*map(engine_of, paths)}
    axes = (
        *_heads(asked.pop("model")),
        *(f"{name}={value}" for name in _AXES if (value := asked.pop(name))),
    )
    plain = [name for name in names if name not in pathed] if wanted or paths else ()
    return {
        "suite": "peers",
        "axes": axes,
        "peers": (*plain, *paths),
        "pythons": pythons,
        **given(asked),
    }


def _heads(text: str | None) -> tuple[str, ...]:
    """Axes for --model: names of suites/models.toml, or the heads of one file."""
    from kvbench.checkpoint import is_file, walked
    from kvbench.model import HEADS, MODEL_SAYS

    if not text:
        return ()
    names = text.split(",")
    files = [name for name in names if is_file(name)]
    if not files or len(names) == 1:
        found = [walked(name, "--model") for name in names]
        return (
            tuple(f"{key}={getattr(found[0], key)}" for key in (*HEADS, *MODEL_SAYS))
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

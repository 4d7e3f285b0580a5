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
_LIBRARIES = ("ggml", "cke")  # engines with an option of their own; --build takes any engine


def _build(engine: str, said: str) -> Callable[..., Any]:
    return click.option(
        f"--{engine}", type=click.Path(exists=True), multiple=True, metavar="PATH", help=said
    )


@click.command("peers")
@click.option(
    "--model",
    help=(
        "Models whose heads to measure, such as llama-3-8b,llama-2-7b; or one file. [default: the"
        " suite's]"
    ),
)
@with_options(*(same(name, "the suite's") for name in _AXES))
@click.option(
    "--peers",
    "wanted",
    help="Engines to measure, such as ggml,numpy. [default: all that are installed]",
)
@_build("ggml", "Another library of ggml. May be repeated: two of them are compared.")
@_build("cke", "The C-Kernel-Engine's library, or its folder. May be repeated.")
@click.option(
    "--build",
    "named",
    multiple=True,
    metavar="ENGINE[@LABEL]=PATH",
    help="Another library of any engine. May be repeated: two builds of one engine are compared.",
)
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="ENGINE[@LABEL]=PATH",
    help="Take an engine from another Python, such as vllm=vllm/bin/python. May be repeated.",
)
@launches_option
@out_option
@click.option("--resume", is_flag=True, help="Finish the run in --out.")
@report_option
@tuning_option
@json_option
def command(out: Path | None, resume: bool, report: bool, as_json: bool, **asked: Any) -> int:
    """Time other engines' decode attention beside ours: same values, same CPUs, same rounds.

    Engines come with pip install 'kvbench[peers]' or 'kvbench[torch]'. Another package can add one
    by an entry point kvbench.peers. --model takes names such as llama-3-8b (see
    suites/models.toml), or one file: a config.json or its folder, or a .gguf file. --context,
    --q-len, --dtype and --threads take several values, such as 4k,16k. The result is a run
    directory, so kvbench report, compare and history can read it.
    """
    from kvbench.plan.expansion import NO_PEER
    from kvbench.report.peers import launches
    from kvbench.session import Options, Session

    if resume and (out is None or any(asked.values())):
        raise BadArgument(
            "--resume needs --out, and takes no other options of the run",
            "kvbench peers --resume --out DIR",
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
    builds(names, paths, pythons)  # refuses a path that is not a build of its engine
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
    """Axes that --model gives: models by name, or the heads of one file."""
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
        f"--model {text[:60]} names a file beside other models",
        "give names of suites/models.toml, or one file",
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

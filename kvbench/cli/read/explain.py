"""kvbench explain"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kvbench.cli._measuring import command_line, measured
from kvbench.cli._options import batch_option, json_option, same, weights_option
from kvbench.cli._streams import draw, say, say_json
from kvbench.cli._types import RATE, Count, Named, Plot
from kvbench.errors import BadArgument, Exit
from kvbench.units import COUNT, whole

_SUITE = "explain"


@click.command("explain")
@click.argument("source", metavar="MODEL")
@batch_option
@weights_option
@click.option(
    "--machine",
    type=Named(),
    help="Run directory to take rates from. [default: measure this machine, a minute]",
)
@click.option(
    "--measured",
    multiple=True,
    metavar="RATE@CONTEXT",
    help="Tokens/s that you measured, such as 5.2@8192: what is missing? With --engine it may be"
    " repeated.",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Predict the tokens/s of an engine, such as ggml, from its own attention in a run of"
    " kvbench peers, which --machine names.",
)
@same("context", "of --engine: those of --measured, else those of the run")
@same("dtype", "of --engine's cache: all that the run has")
@click.option(
    "--cores",
    type=Count(1),
    help="Also compute tokens/s on a server of so many cores, from core speeds: with --bandwidth.",
)
@click.option(
    "--bandwidth", type=RATE, help="GB/s that memory gives all of these cores, such as 460."
)
@click.option(
    "--plot", type=Plot(), help="Also draw bytes and tokens/s against context, as .png or .svg."
)
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="A page to paste into an issue instead of text."
)
@json_option
def command(
    source: str,
    batch: int,
    machine: Path | None,
    plot: Path | None,
    as_json: bool,
    as_markdown: bool,
    **asked: Any,
) -> int:
    """Say what limits the decoding of MODEL on this machine: weights, KV cache or core, over all
    its contexts.

    MODEL is a name of suites/models.toml, a config.json or the folder that holds it, or a .gguf
    file. Weights count as they are stored, of a mixture of experts those that a step meets. An
    engine's tokens/s are predicted from the weights' bytes and from its own attention, as a run of
    kvbench peers timed it.
    """
    from kvbench.checkpoint import find

    asked |= {
        "measured": tuple(map(_asked, asked["measured"])),
        "contexts": tuple(map(_tokens, filter(None, (asked["context"] or "").split(",")))),
        "dtypes": tuple(filter(None, (asked["dtype"] or "").split(","))),
    }
    _refuse_half(asked["cores"], asked["bandwidth"])
    _refuse_without(machine=machine, **asked)
    # before anything large is imported: what it refuses costs nothing
    name, model, why = find(source)
    from kvbench.report.explain import explain_markdown, explain_text, lines
    from kvbench.sizing.explained import decoder_of

    place = machine or _run_of(decoder_of(name, model, batch))
    if place is None:
        return Exit.INTERRUPTED
    found = _explained(name, model, why, batch, place, **asked)
    if plot:
        from kvbench.report.figures.sizes import explained

        draw(explained(found), plot)
    if as_json:
        say_json(replace(found, lines=tuple(lines(found))))
    else:
        text = explain_markdown(found) if as_markdown else "\n".join(explain_text(found))
        say(text, nl=not as_markdown)
    return Exit.FINE


def _explained(name: str, model: Any, why: str, batch: int, place: Path, **asked: Any) -> Any:
    """With the server and the engine that were asked for. What an engine's step is made of says
    more of a measured rate than reads do.
    """
    from kvbench.sizing.engine import predict
    from kvbench.sizing.explained import explain
    from kvbench.sizing.known import known
    from kvbench.sizing.served import serve

    rates, measured, engine = known(place), asked["measured"], asked["engine"]
    rate = measured[0] if measured and not engine else None
    found = explain(name, model, rates, batch, why, asked["weights"], rate)
    if asked["cores"] is not None:
        found = serve(found, rates, asked["cores"], asked["bandwidth"])
    if engine:
        found = predict(found, rates, engine, asked["dtypes"], asked["contexts"], measured)
    return found


def _refuse_half(cores: int | None, bandwidth: float | None) -> None:
    """A server has both."""
    if (cores is None) != (bandwidth is None):
        raise BadArgument(
            "--cores and --bandwidth are of one server", "give both, such as 96 and 460"
        )
    if bandwidth == 0:
        raise BadArgument("--bandwidth is 0", "GB/s of the server's memory, such as 460")


def _refuse_without(machine: Path | None, **asked: Any) -> None:
    """What an engine alone has, and what it needs."""
    engine, measured = asked["engine"], asked["measured"]
    if engine and machine is None:
        raise BadArgument("--engine needs a run of kvbench peers", "name it with --machine")
    if not engine and (asked["context"] or asked["dtype"] or len(measured) > 1):
        raise BadArgument(
            "--context, --dtype and a second --measured are of an engine", "name it with --engine"
        )
    if not engine and any(not context for _, context in measured):
        raise BadArgument("--measured: at 0 tokens there is no cache", "such as 5.2@8192")


def _tokens(text: str) -> int:
    if not (found := re.fullmatch(COUNT, text.strip())):
        raise BadArgument(f"--context: {text[:60]!r} is no number of tokens", "such as 0,2k,8k")
    return whole(*found.groups())


def _asked(text: str) -> tuple[float, int]:
    found = re.fullmatch(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)@{COUNT}", text)
    if not found or not float(found[1]):
        raise BadArgument(
            f"--measured: {text[:60]!r} is not understood",
            "tokens per second and tokens, such as 5.2@8192",
        )
    return float(found[1]), whole(found[2], found[3])


def _run_of(decoder: Any) -> Path | None:
    """A new run directory of the model's shape; None where it was interrupted. No kernel walks
    latent rows: then the suite's own shape has to do, for the reads.
    """
    from kvbench.session import Options, Session

    heads = () if decoder.latent else ("q_heads", "kv_heads", "head_dim")
    axes = tuple(f"{name}={getattr(decoder, name)}" for name in heads)
    options = Options(_SUITE, axes=axes)
    with Session.begin(options, None, command_line()) as session:
        return session.run().path if measured(session) else None

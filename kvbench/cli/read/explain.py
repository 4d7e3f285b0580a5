"""kvbench explain"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kvbench.cli._measuring import command_line, measured
from kvbench.cli._options import batch_option, json_option, weights_option
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
    metavar="RATE@CONTEXT",
    help="Tokens/s that you measured, such as 5.2@8192: what is missing?",
)
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
    measured: str | None,
    cores: int | None,
    bandwidth: float | None,
    machine: Path | None,
    plot: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Say what limits the decoding of MODEL on this machine: weights, KV cache or core, over all
    its contexts.

    MODEL is a name of suites/models.toml, a config.json or the folder that holds it, or a .gguf
    file. Weights count as they are stored, of a mixture of experts those that a step meets.
    """
    from kvbench.checkpoint import find

    rate = _asked(measured) if measured is not None else None
    _refuse_half(cores, bandwidth)
    # before anything large is imported: what it refuses costs nothing
    name, model, why = find(source)
    from kvbench.report.explain import explain_markdown, explain_text, lines
    from kvbench.sizing.explained import decoder_of, explain
    from kvbench.sizing.known import known
    from kvbench.sizing.served import serve

    decoder = decoder_of(name, model, batch)
    place = machine or _run_of(decoder)
    if place is None:
        return Exit.INTERRUPTED
    rates = known(place)
    found = explain(name, model, rates, batch, why, asked["weights"], rate)
    if cores is not None and bandwidth is not None:
        found = serve(found, rates, cores, bandwidth)
    if plot:
        from kvbench.report.figures.sizes import explained

        draw(explained(found), plot)
    if as_json:
        say_json(replace(found, lines=tuple(lines(found))))
    else:
        page = asked["as_markdown"]
        say(explain_markdown(found) if page else "\n".join(explain_text(found)), nl=not page)
    return Exit.FINE


def _refuse_half(cores: int | None, bandwidth: float | None) -> None:
    """A server has both."""
    if (cores is None) != (bandwidth is None):
        raise BadArgument(
            "--cores and --bandwidth are of one server", "give both, such as 96 and 460"
        )
    if bandwidth == 0:
        raise BadArgument("--bandwidth is 0", "GB/s of the server's memory, such as 460")


def _asked(text: str) -> tuple[float, int]:
    found = re.fullmatch(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)@{COUNT}", text)
    if not found or not float(found[1]) or not whole(found[2], found[3]):
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

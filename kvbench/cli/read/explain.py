"""kvbench explain"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Long
from kvbench.cli._measuring import command_line, measured
from kvbench.cli._options import batch_option, json_option, same, weights_option
from kvbench.cli._streams import draw, say, say_json
from kvbench.cli._types import RATE, Count, Named, Plot
from kvbench.errors import BadArgument, Exit
from kvbench.sizing.draft import Draft
from kvbench.sizing.draft import asked as draft_of
from kvbench.units import COUNT, whole

_SUITE = "explain"
_TOLD = 8192  # tokens at which a pair stands beside its halves


@click.command(
    "explain",
    cls=Long,
    groups={
        "The model and the machine": "users dtype weights machine measured",
        "Drafting tokens": "draft accept draft-cost",
        "An engine": "engine context",
        "A server": "cores bandwidth",
        "Output": "plot markdown json",
    },
    examples={
        "kvbench explain gpt-oss-20b --measured 5.2@32k": "What limits it, and what is missing.",
        "kvbench explain qwen3-8b --draft 4 --accept .7,.45,.33,.21": "Does drafting pay here?",
    },
)
@click.argument("source", metavar="MODEL")
@batch_option
@weights_option
@click.option(
    "--machine",
    type=Named(),
    help="Run directory to take rates from. [default: measure this machine, a minute; with --draft"
    " two]",
)
@click.option(
    "--measured",
    multiple=True,
    metavar="RATE@CONTEXT",
    help="Tokens/s that you measured, such as 5.2@8192: what is missing? With --engine it may be"
    " repeated.",
)
@click.option(
    "--draft",
    type=Count(),
    metavar="N",
    help="Tokens that are drafted for each step: does it pay to verify them? With --accept.",
)
@click.option(
    "--accept",
    metavar="SHARES",
    help="Share of the steps in which each draft is accepted, as engines print it: such as"
    " .7,.45,.33,.21. One number stands for it, its square, its cube, ...",
)
@click.option(
    "--draft-cost",
    metavar="COST",
    help="What drafting for a step costs: a share of a plain step such as 0.1, a time such as 5ms,"
    " or the bytes of the draft's weights such as 400M, which are read N times. [default: what it"
    " may cost is said]",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Predict the tokens/s of an engine, such as ggml, from its own attention in a run of"
    " kvbench peers, which --machine names.",
)
@same("context", "of --engine: those of --measured, else those of the run")
@same(
    "dtype",
    "all that are known; of --engine's cache: all that the run has; of --draft's: 16 bits",
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
    asked["draft"] = _draft(asked["draft"], asked.pop("accept"), asked.pop("draft_cost"))
    _refuse_without(machine=machine, **asked)
    # before anything large is imported: what it refuses costs nothing
    name, model, why = find(source)
    from kvbench.report.explain import explain_markdown, explain_text, lines
    from kvbench.sizing.explained import decoder_of

    place = machine or _run_of(decoder_of(name, model, batch), asked["draft"], asked["dtypes"])
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
    from kvbench.sizing.drafting import drafted
    from kvbench.sizing.engine import predict
    from kvbench.sizing.explained import explain
    from kvbench.sizing.halves import beside_halves, shown
    from kvbench.sizing.known import known
    from kvbench.sizing.served import serve

    rates, measured, engine = known(place), asked["measured"], asked["engine"]
    rate = measured[0] if measured and not engine else None
    among_all = bool(engine or asked["draft"])
    dtypes = shown(() if engine else asked["dtypes"], among_all)
    found = explain(name, model, rates, batch, why, asked["weights"], rate, dtypes)
    found = replace(found, pairs=beside_halves(found, _TOLD))
    if asked["draft"]:
        found = replace(found, drafting=drafted(found, rates, asked["draft"], asked["dtypes"]))
    if asked["cores"] is not None:
        found = serve(found, rates, asked["cores"], asked["bandwidth"])
    if engine:
        found = predict(found, rates, engine, asked["dtypes"], asked["contexts"], measured)
    return found


def _draft(drafts: int | None, accept: str | None, cost: str | None) -> Draft | None:
    if drafts is None and accept is None and cost is None:
        return None
    if drafts is None or accept is None:
        raise BadArgument(
            "--draft, --accept and --draft-cost are of one step",
            "give the first two, such as --draft 4 --accept .7,.45,.33,.21",
        )
    return draft_of(drafts, accept, cost)


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
    if not engine and (asked["context"] or len(measured) > 1):
        raise BadArgument(
            "--context and a second --measured are of an engine", "name it with --engine"
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


def _run_of(decoder: Any, draft: Draft | None, dtypes: tuple[str, ...]) -> Path | None:
    """A new run directory of the model's shape; None where it was interrupted. No kernel walks
    latent rows: then the suite's own shape has to do, for the reads. The suite has no pairs.
    """
    from kvbench.model.planes import is_pair
    from kvbench.session import Options, Session
    from kvbench.sizing.halves import shown

    heads = () if decoder.latent else ("q_heads", "kv_heads", "head_dim")
    axes = tuple(f"{name}={getattr(decoder, name)}" for name in heads)
    if any(map(is_pair, dtypes)):
        axes = (*axes, f"dtype={','.join(shown(dtypes, among_all=False))}")
    if draft and not decoder.latent:
        axes = (*axes, f"q_len=1,{draft.queries}")
    options = Options(_SUITE, axes=axes)
    with Session.begin(options, None, command_line()) as session:
        return session.run().path if measured(session) else None

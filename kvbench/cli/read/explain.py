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
_TOLD = 8192  # tokens: the context at which a pair of formats is compared with its halves


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
        "kvbench explain gpt-oss-20b --measured 5.2@32k": "What limits it? What does it miss?",
        "kvbench explain qwen3-8b --draft 4 --accept .7,.45,.33,.21": "Does drafting pay here?",
    },
)
@click.argument("source", metavar="MODEL")
@batch_option
@weights_option
@click.option(
    "--machine",
    type=Named(),
    help="Run directory to take rates from. [default: measure this machine: one minute, or two"
    " with --draft]",
)
@click.option(
    "--measured",
    multiple=True,
    metavar="RATE@CONTEXT",
    help="Tokens/s that you measured, such as 5.2@8192: how much does memory allow? With --engine"
    " it may be repeated.",
)
@click.option(
    "--draft",
    type=Count(),
    metavar="N",
    help="Number of tokens drafted for each step: does it pay to verify them? Needs --accept.",
)
@click.option(
    "--accept",
    metavar="SHARES",
    help="For each draft, the share of steps that accept it, as engines print it, such as"
    " .7,.45,.33,.21. One number such as .7 means .7, .7 squared, .7 cubed, ...",
)
@click.option(
    "--draft-cost",
    metavar="COST",
    help="Cost of drafting for one step: a share of a plain step such as 0.1, a time such as 5ms,"
    " or the bytes of the draft model's weights such as 400M, read N times. [default: print the"
    " highest cost at which drafting pays]",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Predict the tokens/s of an engine, such as ggml, from the time of its own attention."
    " --machine must name a run of kvbench peers.",
)
@same("context", "with --engine: those of --measured, else those of the run")
@same("dtype", "all; with --engine: all that the run has; with --draft: 16 bits")
@click.option(
    "--cores",
    type=Count(1),
    help="Also compute tokens/s on a server with this many cores, from core speeds. Needs"
    " --bandwidth.",
)
@click.option(
    "--bandwidth", type=RATE, help="GB/s of that server's memory for all its cores, such as 460."
)
@click.option(
    "--plot", type=Plot(), help="Also draw bytes and tokens/s against context, as .png or .svg."
)
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print Markdown, to paste into an issue."
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
    """Say what limits the decoding of MODEL on this machine at each context: weights, KV cache or
    core.

    MODEL is a name such as llama-3-8b (see suites/models.toml), a config.json or its folder, or a
    .gguf file. Weights count in their stored format. Of a mixture of experts, only the experts that
    a step uses count. With --engine, tokens/s are predicted from the bytes of the weights and the
    time of the engine's own attention, measured by kvbench peers.
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
    # before anything large is imported, so that a bad model is refused at once
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
    """The explanation, with the server, drafts and engine asked for. With an engine, --measured is
    compared with the parts of its step instead of with reads.
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
            "--draft, --accept and --draft-cost go together",
            "give at least the first two, such as --draft 4 --accept .7,.45,.33,.21",
        )
    return draft_of(drafts, accept, cost)


def _refuse_half(cores: int | None, bandwidth: float | None) -> None:
    """Refuse a server with only one of cores and bandwidth."""
    if (cores is None) != (bandwidth is None):
        raise BadArgument(
            "--cores and --bandwidth go together", "give both, such as --cores 96 --bandwidth 460"
        )
    if bandwidth == 0:
        raise BadArgument("--bandwidth is 0", "give GB/s of the server's memory, such as 460")


def _refuse_without(machine: Path | None, **asked: Any) -> None:
    """Refuse --engine without a run, and options that only work with --engine."""
    engine, measured = asked["engine"], asked["measured"]
    if engine and machine is None:
        raise BadArgument("--engine needs a run of kvbench peers", "name it with --machine")
    if not engine and (asked["context"] or len(measured) > 1):
        raise BadArgument(
            "--context and a second --measured need an engine", "name it with --engine"
        )
    if not engine and any(not context for _, context in measured):
        raise BadArgument("--measured: at 0 tokens the cache is empty", "such as 5.2@8192")


def _tokens(text: str) -> int:
    if not (found := re.fullmatch(COUNT, text.strip())):
        raise BadArgument(f"--context: {text[:60]!r} is not a number of tokens", "such as 0,2k,8k")
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
    """Measure the model's shape, and return the new run directory; None if interrupted. For a model
    with latent rows, which no kernel walks, the suite's own shape is measured, for its reads.
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

"""profile --grow: the time of a decode step against its context."""

from typing import Any

import click

from kvbench.cli._streams import say, say_json
from kvbench.cli._types import Count
from kvbench.errors import BadArgument
from kvbench.model.point import STEP
from kvbench.model.shape import lengths_word
from kvbench.texts import wrapped
from kvbench.units import counted, cpu_text, duration

_LEAST = 8  # tokens: fewer steps give no useful fit
_OTHERS = {"samples": "--samples", "sample_time": "--sample-time"}

grow_option = click.option(
    "--grow",
    type=Count(),
    metavar="TOKENS",
    help=(
        "With OP step: decode this many tokens in a row, starting at --context, and time each step."
        " Such as 256."
    ),
)


def refuse_beside(
    op: str, grow: int, plugin: tuple[str, ...], residency: str, neighbour: Any, **_: Any
) -> None:
    """Refuse options that --grow cannot be combined with."""
    source = click.get_current_context().get_parameter_source
    if op != STEP:
        raise BadArgument(f"--grow times whole steps, but OP is {op}", "kvbench profile step")
    if grow < _LEAST:
        raise BadArgument(f"--grow is {grow}: too few steps to fit a line", f"at least {_LEAST}")
    if residency != "rotate":
        raise BadArgument(
            f"--grow does not go with --residency {residency}: a step visits its layers in turn",
            "use --residency rotate",
        )
    given = [option for name, option in _OTHERS.items() if _asked(source(name))]
    given += ["--plugin"] * bool(plugin) + ["--neighbour"] * bool(neighbour)
    if given:
        raise BadArgument(
            f"--grow does not go with {given[0]}: each step of kvbench's own kernels is timed once",
            f"leave {given[0]} out",
        )


def _asked(source: Any) -> bool:
    return source is click.core.ParameterSource.COMMANDLINE


def show_growth(facts: Any, name: str, as_json: bool) -> None:
    """Print the times of a growing step. `name`: of its model; may be empty."""
    from kvbench.report.words import paragraphs

    if as_json:
        say_json(facts)
        return
    told = [wrapped([each], "") for each in paragraphs("growth", "findings", facts)]
    lines = [*_heading(facts, name), "", *_table(facts)]
    for each in told:
        lines += ["", *each]
    say("\n".join(lines))


def _heading(facts: Any, name: str) -> list[str]:
    point, shape = facts.point, facts.point.shape
    batch = f"{shape.batch} sequences ({lengths_word(shape.lengths)}), " if shape.batch > 1 else ""
    window = f", window {shape.window:,}" if shape.window else ""
    window += f" but every {shape.full_every}th" if shape.full_every else ""
    return [
        f"{facts.kernel}  {name}".rstrip(),
        (
            f"  {facts.tokens:,} tokens in a row, from a context of {shape.context:,};"
            f" {batch}{facts.layers} layers{window}"
        ),
        (
            f"  {shape.q_heads} query heads on {shape.kv_heads} KV heads, head_dim"
            f" {shape.head_dim}; {counted(point.threads, 'thread')} on CPUs {cpu_text(point.cpus)};"
            f" schedule {facts.schedule}"
        ),
        (
            "  verified: the first step, the last step and all stored tokens; largest error"
            f" {facts.max_abs_err:.2g}"
        ),
    ]


def _table(facts: Any) -> list[str]:
    """Times at several contexts along the way."""
    rows: list[tuple[str, ...]] = [
        ("context", "step", "fitted line", "same step again", "decodes alone")
    ]
    rows += [
        (f"{row.context:,.0f}", *map(_seconds, (row.seconds, row.fit, row.again, row.decodes)))
        for row in facts.rows
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "   ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else duration(value)

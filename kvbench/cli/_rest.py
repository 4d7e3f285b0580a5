"""profile --engine: where another engine's time goes beyond plain reads of memory."""

import textwrap
from typing import Any

import click

from kvbench.cli._streams import say, say_json
from kvbench.errors import BadArgument, unknown_word
from kvbench.texts import WIDTH, wrapped
from kvbench.units import counted, cpu_text, duration

_OURS = (
    "variant",
    "schedule",
    "between",
    "chase",
    "plugin",
    "neighbour",
    "grow",
    "tuning",
    "deterministic",
)
_PAGED = ("block_tokens", "order")

engine_option = click.option(
    "--engine",
    metavar="NAME[=PATH]",
    help=(
        "With OP decode: profile another engine, such as ggml. PATH names a build of it: its"
        " library, or a Python that has it."
    ),
)


def show_rest(
    op: str,
    engine: str,
    samples: int,
    sample_time: float,
    patience: float | None,
    as_json: bool,
    **asked: Any,
) -> None:
    from kvbench.analysis.limits.rest import split
    from kvbench.cli._measuring import say_busy
    from kvbench.machine import describe
    from kvbench.peers.builds import Build, build_at
    from kvbench.peers.known import entries, known
    from kvbench.plan.calls import calls_of
    from kvbench.worker import visit_rest

    _refuse_beside(op)
    name, _, path = engine.partition("=")
    if name not in entries():
        raise unknown_word("--engine", name, entries())
    build = build_at(path, "--engine NAME=PATH") if path else Build()
    found = known(name, build.path, build.python)
    if found.lacking:
        raise BadArgument(f"{name}: {found.lacking}", "kvbench peers lists engines")
    point = _point(op, name, build, found.kind, **asked)
    say_busy()
    calls = calls_of(point, describe(), found.kind)
    facts = split(visit_rest(calls, build, samples, sample_time, patience), calls, found)
    if as_json:
        say_json(facts)
    else:
        say("\n".join(_lines(facts, path)))


def _refuse_beside(op: str) -> None:
    """Refuse another op than decode, and options that only kvbench's own kernels have."""
    if op != "decode":
        raise BadArgument(f"--engine needs OP decode, but OP is {op}", "kvbench profile decode")
    if given := [name for name in _OURS if _asked(name)]:
        raise BadArgument(
            f"--{given[0]} works with kvbench's own kernels only, not with --engine", "leave it out"
        )


def _asked(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def _point(op: str, engine: str, build: Any, kind: Any, **asked: Any) -> Any:
    """The point to profile. The layout and format default to the engine's own, all other values to
    those of the suite of engines.
    """
    from kvbench.cli._point import point_of
    from kvbench.gate.engines import SUITE
    from kvbench.model import DEFAULTS, HEADS
    from kvbench.native import default_library
    from kvbench.suite import find

    library = default_library()
    usual = {name: values[0] for name, values in find(SUITE, library).grids[0].items()}
    asked |= {} if _asked("layout") else {"layout": kind.kept}
    if not _asked("dtype") and DEFAULTS["dtype"] not in kind.formats:
        asked["dtype"] = next(iter(kind.formats), DEFAULTS["dtype"])
    if not any(asked[name] for name in ("model", *HEADS)):
        asked["model"] = usual["model"]
    asked |= {name: usual[name] for name in _PAGED if not _asked(name)}
    return point_of(op, library, {engine: build}, engine=engine, **asked)


def _lines(facts: Any, build: str) -> list[str]:
    from kvbench.report.words import paragraphs, said

    lines = [*wrapped([said("rest", "sentence", facts)], ""), *_heading(facts, build), ""]
    lines += _table(facts)
    for each in paragraphs("rest", "meaning", facts):
        lines += ["", *wrapped([each], "")]
    return lines


def _heading(facts: Any, build: str) -> list[str]:
    point, shape = facts.point, facts.point.shape
    which = ", ".join(filter(None, (facts.release, build, facts.flags)))
    queries = f", {counted(shape.q_len, 'query')} a step" if shape.q_len > 1 else ""
    rates = f"{facts.gbps:.1f} GB/s, plain reads {facts.read_gbps:.1f} GB/s"
    return [
        *wrapped([f"{facts.function}: {which}"]),
        (
            f"  {shape.q_heads} query heads on {shape.kv_heads} KV heads, head_dim"
            f" {shape.head_dim}, context {shape.context:,}{queries};"
            f" {counted(point.threads, 'thread')} on CPUs {cpu_text(point.cpus)}"
        ),
        (
            f"  a pass takes {duration(facts.seconds)}: {rates};"
            f" {counted(facts.slices, 'layer')} in rotation"
        ),
        f"  verified, every call: largest error {facts.max_abs_err:.2g}",
    ]


def _table(facts: Any) -> list[str]:
    from kvbench.report.words import said

    lines = [f"  {'part':<9}{'of a pass':>9}   {'interval':<18}measured by"]
    for own in facts.parts:
        found = own.share
        share = f"{found.value:.1%}" if found else "-"
        within = f"{found.low:.1%} to {found.high:.1%}" if found else ""
        begin = f"  {own.part:<9}{share:>9}   {within:<18}"
        lines += textwrap.wrap(
            begin + said("rest", "of", facts, own), WIDTH, subsequent_indent=" " * len(begin)
        )
    lines.append(f"  Intervals are over the {counted(facts.rounds, 'round')} of this one visit.")
    return lines

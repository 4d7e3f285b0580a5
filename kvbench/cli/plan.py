"""kvbench plan"""

import json
from collections.abc import Iterable
from typing import Any

import click

from kvbench.cli._options import axis_option, json_option, plugin_option
from kvbench.cli._streams import say


@click.command("plan")
@click.argument("suite", metavar="SUITE")
@axis_option
@plugin_option
@json_option
def command(suite: str, axes: tuple[str, ...], plugin: str | None, as_json: bool) -> None:
    """What a sweep of SUITE would measure here, and nothing is measured: points, time, memory, what is left out.

    SUITE is one of kvbench suites, or a path that ends in .toml. An axis is set as a suite sets it: --axis
    context=1k,8k --axis dtype=f16.
    """
    from kvbench.native import library_of
    from kvbench.plan import expand, forecast, refuse_empty, refuse_too_large, refuse_without_plugin
    from kvbench.suite import find
    from kvbench.suite.override import from_options

    library = library_of(None, plugin)
    asked, here = find(suite, library), site(library)
    sweep = expand(asked.with_axes(from_options(axes, library)) if axes else asked, here)
    seen = forecast(sweep)
    refuse_too_large(sweep)
    refuse_empty(sweep, here)
    refuse_without_plugin(sweep, here)
    if as_json:
        say(json.dumps(_facts(sweep, seen)))
    else:
        say("\n".join([*_heading(sweep, seen), *_varying(sweep), *_skipped(sweep)]))


def site(library: Any = None) -> Any:
    """This machine, now."""
    from kvbench.machine import available_memory, describe
    from kvbench.plan import Site

    return Site(describe(), available_memory(), library=library)


def _facts(sweep: Any, seen: Any) -> dict[str, Any]:
    from kvbench.plan.forecast import FILL, READ
    from kvbench.store import plain

    plan = sweep.plan
    return {
        "version": 1,
        "suite": sweep.suite.name,
        "question": sweep.suite.question,
        "count": len(sweep.points),
        "launches": plan.launches,
        "samples": plan.samples,
        "sample_time": plan.sample_time,
        "seconds": seen.seconds,
        "assumed": {"fill_bytes_per_second": FILL, "read_bytes_per_second": READ},
        "memory": {"needed": seen.memory, "available": sweep.memory},
        "axes": {axis: [written(value) for value in values] for axis, values in sweep.varying().items()},
        "skips": [
            {"reason": reason, "count": len(skips), "detail": skips[0].detail, "example": _example(sweep, skips[0])}
            for reason, skips in by_reason(sweep.skips).items()
        ],
        "points": [plain(point) for point in sweep.points],
        "ceilings": [plain(point) for point in plan.points[len(sweep.points) :]],
    }


def written(value: Any) -> Any:
    """As a suite writes it."""
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _heading(sweep: Any, seen: Any) -> list[str]:
    from kvbench.plan.forecast import FILL, READ
    from kvbench.units import GB, duration, size, span

    plan = sweep.plan
    needs = f"{size(seen.memory)}, most of it for {seen.largest.kernel} at context {seen.largest.shape.context}"
    return [
        f"{sweep.suite.name}: {sweep.suite.question}",
        f"  {len(sweep.points)} points and {len(plan.points) - len(sweep.points)} ceilings, {plan.launches} launches of "
        f"{plan.samples} samples of {duration(plan.sample_time)}",
        f"  time: about {span(seen.seconds)}, {seen.timed / seen.seconds:.0%} of it in samples "
        f"(assumed: a thread fills {FILL / GB:g} GB/s, all read {READ / GB:g} GB/s)",
        f"  memory: {needs}; {size(sweep.memory)} available",
    ]


def _varying(sweep: Any) -> list[str]:
    """An axis that all points have in common is not shown."""
    found = sweep.varying()
    width = max((len(axis) for axis in found), default=0)
    lines = [f"    {axis:<{width}}  {' '.join(_short(value) for value in values)}" for axis, values in found.items()]
    return ["", "  varied", *lines] if lines else []


def _short(value: Any) -> str:
    from kvbench.suite.values import count_text

    if isinstance(value, bool):
        return str(value).lower()
    return count_text(value) if isinstance(value, int) else "default" if value is None else str(value)


def _skipped(sweep: Any) -> list[str]:
    lines = []
    for reason, skips in by_reason(sweep.skips).items():
        lines.append(f"    {len(skips):>5}  {reason}: {skips[0].detail}")
        if example := _example(sweep, skips[0]):
            lines.append(f"           such as {' '.join(f'{axis}={_short(value)}' for axis, value in example.items())}")
    return ["", f"  left out: {len(sweep.skips)}", *lines] if lines else []


def by_reason(skips: Iterable[Any]) -> dict[str, list[Any]]:
    """Those with most first."""
    found: dict[str, list[Any]] = {}
    for skip in skips:
        found.setdefault(skip.reason, []).append(skip)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _example(sweep: Any, skip: Any) -> dict[str, Any]:
    return {axis: written(value) for axis, value in sweep.named(skip).items()}

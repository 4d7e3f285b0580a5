"""kvbench machine"""

from pathlib import Path
from typing import Any

import click

from kvbench.cli._options import (
    cpus_option,
    isa_option,
    json_option,
    override_option,
    same,
    seed_option,
    threads_option,
)
from kvbench.cli._streams import draw, json_text, put, say, tell
from kvbench.cli._types import Named, Plot
from kvbench.errors import Exit

_AGAIN = "then measure again"


@click.command("machine")
@click.option(
    "--quick",
    is_flag=True,
    help="Measure fewer sizes, CPU sets and page kinds: a minute on two idle cores.",
)
@click.option(
    "--loaded",
    is_flag=True,
    help=(
        "Also measure memory latency on one core while the other cores of its NUMA node decode,"
        " read and copy: a minute and a half more."
    ),
)
@click.option("--identify", is_flag=True, help="Describe the machine without measuring it.")
@threads_option
@cpus_option
@isa_option
@same("pages", "thp, and without --quick also base")
@override_option
@seed_option
@click.option(
    "--out", type=Named(dir_okay=False), help="Also write the profile as JSON to this file."
)
@click.option("--plot", type=Plot(), help="Also draw read bandwidth against size, as .png or .svg.")
@json_option
def command(**asked: Any) -> int:
    """Measure what this machine can do: bandwidth, latency, peak arithmetic and clock.

    Reads, stores and copies are measured in every cache level and in memory, with up to --threads
    threads. A sweep does not use these rates: it measures its own. With --loaded, --threads threads
    work while one more thread measures latency by a pointer chase, on a core of its own; --threads
    all then means all cores but one.
    """
    from kvbench.analysis.measured.machines import profile
    from kvbench.machine import describe
    from kvbench.machine.placement import place
    from kvbench.machine.preflight import preflight
    from kvbench.machine.tree import Files
    from kvbench.report.machine_text import identity, text
    from kvbench.store.files import refuse_output

    if asked["out"]:
        refuse_output(asked["out"], _AGAIN)
    files = Files()
    machine = describe(files, asked["override"])
    cpus = place(machine, asked["cpus"], asked["threads"])
    if asked["identify"]:
        tell(profile(machine), asked["as_json"], lambda: identity(machine))
        return 0
    if not files.live:
        say(
            f"kvbench: facts are read from {files.root}, but rates are measured on this machine",
            err=True,
        )
    checks = preflight(files, machine, cpus)
    records = _measure(machine, cpus, asked)
    found = profile(machine, checks, records)
    tell(found, asked["as_json"], lambda: text(found))
    if found.ceilings:
        _keep(found, asked["out"], asked["plot"])
    return _tell_failures(records)


def _tell_failures(records: list[Any]) -> int:
    failed = [record for record in records if record.error]
    if not failed:
        return Exit.FINE
    first = f"first {failed[0].point.kernel}: {failed[0].error}"
    say(f"kvbench: {len(failed)} of {len(records)} visits failed, {first}", err=True)
    return Exit.ERRORS


def _measure(machine: Any, cpus: tuple[int, ...], asked: dict[str, Any]) -> list[Any]:
    from kvbench.cli._progress import follow
    from kvbench.plan import visits
    from kvbench.report.course import newest
    from kvbench.runner import run

    memory = _memory()
    plan = _probes(machine, cpus, memory, asked)
    said = f"{len(plan.points)} probes"
    needs: dict[Any, Any] = {}
    if asked["loaded"]:
        plan, needs, beside = _with_decodes(plan, machine, memory, asked)
        said = f"{said} and {beside}"
    say(f"{said} in {plan.launches} launches, run {plan.run}", err=True)
    weights = visits(plan, needs)
    return list(
        follow(
            run(plan, machine, needs),
            lambda: plan.launches * sum(weights.values()),
            lambda record: weights[record.point],
            newest,
        )
    )


def _memory() -> int:
    from kvbench.machine import available_memory
    from kvbench.machine.tree import Files

    return min(available_memory(), available_memory(Files("/")))


def _probes(machine: Any, cpus: tuple[int, ...], memory: int, asked: dict[str, Any]) -> Any:
    from dataclasses import replace

    from kvbench.model.point import COMPUTE, FLOPS
    from kvbench.native import default_library
    from kvbench.plan import Scope, probes
    from kvbench.runner import new_run

    library = default_library()
    best = library.isa(asked["isa"])
    tiers = (*(isa for isa in library.isas() if isa != best), best)
    pages = _pages(asked["pages"], asked["quick"])
    seed = 1 if asked["seed"] is None else asked["seed"]
    products = tuple(
        kernel.op
        for kernel in library.kernels()
        if kernel.op in COMPUTE and kernel.op != FLOPS and kernel.isa == best and kernel.runnable
    )
    scope = Scope(cpus, tiers, memory, pages, asked["quick"], seed, products)
    return replace(probes(machine, scope), run=new_run())


def _with_decodes(
    plan: Any, machine: Any, memory: int, asked: dict[str, Any]
) -> tuple[Any, dict[Any, Any], str]:
    """The plan extended by decodes with a chase beside them; what those decodes need; and a few
    words on them, with the time of the plan.
    """
    from dataclasses import replace

    from kvbench.plan import forecast
    from kvbench.session.loaded import decodes
    from kvbench.units import counted, cpu_text

    sweep = decodes(
        machine,
        memory,
        asked["threads"],
        asked["quick"],
        cpus=asked["cpus"],
        isa=asked["isa"],
        pages=_pages(asked["pages"], True)[0],
        seed=plan.seed,
    )
    own = sweep.points
    sweep = replace(sweep, plan=replace(plan, points=(*plan.points, *own)))
    seen = forecast(sweep)
    cpus = cpu_text(own[0].cpus)
    what = f"{counted(len(own), 'decode')} on CPUs {cpus} beside a chase: {seen.text},"
    return replace(sweep.plan, patience=seen.patience), sweep.needs, what


def _pages(asked: str | None, quick: bool) -> tuple[str, ...]:
    """Kinds of pages to measure, the usual kind first."""
    from kvbench.native import default_library, pages_given

    if asked is not None:
        default_library().number("pages", asked)
        return (asked,)
    base, *others = pages_given(1)
    usual = "thp" if "thp" in others else base
    return (usual,) if quick or usual == base else (usual, base)


def _keep(found: Any, path: Path | None, plot: Path | None) -> None:
    if path:
        put(json_text(found) + "\n", path, "profile", _AGAIN)
    if plot:
        from kvbench.report.figures.sizes import reads

        draw(reads(found), plot)

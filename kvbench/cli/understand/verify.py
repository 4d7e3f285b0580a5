"""kvbench verify"""

import math
from typing import Any

import click

from kvbench.cli._options import json_option, patience_option, plugin_option, same
from kvbench.cli._streams import say, tell
from kvbench.errors import BadArgument, BadLibrary, Exit
from kvbench.grouping import grouped

_EXAMPLE = "plugin.c"  # installed beside the library


@click.command("verify")
@click.option(
    "--quick",
    is_flag=True,
    help="Check fewer cases; plant faults only in kernels of the best instruction set.",
)
@same("isa", "all that run here", envvar="KVBENCH_ISA")
@plugin_option
@patience_option
@click.option("--example", is_flag=True, help="Only print the C code of an example plug-in.")
@click.option("--include", is_flag=True, help="Only print the folder of the headers for plug-ins.")
@json_option
def command(
    quick: bool,
    isa: str | None,
    plugin: tuple[str, ...],
    patience: float | None,
    example: bool,
    include: bool,
    as_json: bool,
) -> int:
    """Check every kernel that runs here against a float64 reference.

    Then plant faults, and check that each fault is noticed. With --plugin, check only the kernels
    of the plug-in, each in a process of its own. A kernel that gives no answer within a minute is
    stopped; --patience changes that time.

    \b
    A plug-in of your own:
      kvbench verify --example > my.c
      cc -O3 -march=native -shared -fPIC -I "$(kvbench verify --include)" -o my.so my.c -lm
      kvbench verify --plugin my.so
    """
    from kvbench.native import library_of
    from kvbench.verify import PATIENCE, check_plugin
    from kvbench.verify.kernels import Verified

    if example or include:
        return _printed(example, include)
    library = library_of(None, plugin)
    isa = library.isa(isa) if isa else None
    if plugin:
        results, faults = check_plugin(library, isa, quick, patience or PATIENCE)
    else:
        results, faults = _checked(library, isa, quick)
    if not results:
        raise BadArgument(
            f"--isa {isa}: {' and '.join(plugin)} has no kernel for it", "leave --isa out"
        )
    wrong = sum(not r.passed for r in results) + sum(f.caught < f.planted for f in faults)
    whole = (
        f"{len(results)} kernels, {len(faults)} faults:"
        f" {f'{wrong} failed' if wrong else 'all well'}"
    )
    shown = Verified(passed=not wrong, kernels=tuple(results), faults=tuple(faults))
    tell(
        shown,
        as_json,
        lambda: [*_kernels(results, library.foreign_variants), "", *_faults(faults), whole],
    )
    return Exit.FAILED if wrong else Exit.FINE


def _printed(example: bool, include: bool) -> int:
    from kvbench.native import library_path

    if example and include:
        raise BadArgument("--example and --include exclude each other", "give only one of them")
    folder = library_path().parent
    if include:
        say(str(folder))
        return Exit.FINE
    path = folder / _EXAMPLE
    try:
        say(path.read_text().rstrip())
    except OSError as error:
        raise BadLibrary(f"cannot read {path}: {error.strerror}", "install kvbench again") from None
    return Exit.FINE


def _checked(library: Any, isa: str | None, quick: bool) -> tuple[list[Any], list[Any]]:
    from kvbench.verify import check, plant, plant_in_steps, steps_of

    every = [*library.kernels(), *steps_of(library)]
    kernels = [kernel for kernel in every if isa in (None, kernel.isa)]
    best = [kernel for kernel in kernels if kernel.isa == library.isa(isa)] if quick else kernels
    return list(check(library, kernels, quick)), [
        *plant(library, best),
        *plant_in_steps(library, best),
    ]


def _kernels(results: list[Any], foreign: tuple[str, ...]) -> list[str]:
    """One line for each op and tier (for a plug-in, each variant too), and one line for each kernel
    that failed.
    """
    rows = grouped(
        ((f"{r.op} {r.variant}" if r.variant in foreign else r.op, r.isa), r) for r in results
    )
    width = max([10, *(len(op) for op, _ in rows)])
    lines = [f"{'op':<{width}} {'tier':<8} {'right':>9}   worst error / allowed"]
    for (op, isa), group in rows.items():
        right, worst = sum(r.passed for r in group), max(_share(r.error_share) for r in group)
        lines.append(f"{op:<{width}} {isa:<8} {right:>4} of {len(group):>2}   {worst:.2f}")
        lines += [_complaint(r) for r in group if not r.passed]
    return lines


def _share(known: float | None) -> float:
    return math.inf if known is None else known


def _complaint(result: Any) -> str:
    return (
        f"  WRONG {result.id}:"
        f" {result.note or f'{_share(result.error_share):.3g} times the allowed error'}"
    )


def _faults(faults: list[Any]) -> list[str]:
    width = max([18, *(len(fault.name) for fault in faults)])
    lines = [f"{'planted fault':<{width}} {'caught':>10}   least error / allowed"]
    for f in faults:
        missed = "" if f.caught == f.planted else "   MISSED"
        lines.append(
            f"{f.name:<{width}} {f.caught:>4} of {f.planted:>3}   {_share(f.margin):.3g}{missed}"
        )
    return lines

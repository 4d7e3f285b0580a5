"""kvbench compare"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kvbench.cli._help import Long
from kvbench.cli._judgement import exit_code, export_option, tell, wanted
from kvbench.cli._options import json_option
from kvbench.cli._streams import say
from kvbench.cli._types import SHARE, Named
from kvbench.errors import BadArgument, Exit
from kvbench.model import Point
from kvbench.units import now

_NO_VERDICT = (
    "Each run measured the rates above by itself, perhaps days apart, so they decide nothing. The"
    " verdict follows from the ratios below: each point over reads timed in its own rounds."
)


@click.command(
    "compare",
    cls=Long,
    groups={"What counts": "min-effect noise", "Output": "gate export bless json"},
    examples={
        "kvbench compare runs/base runs/head --gate": "Exit with a code for CI.",
        "kvbench compare results/mine/quick runs/new --bless": "Compare, then keep the new run.",
    },
)
@click.argument("base", type=Named())
@click.argument("head", type=Named())
@click.option("--gate", is_flag=True, help="Let the exit code tell the verdict; see below.")
@click.option(
    "--min-effect",
    "smallest",
    type=SHARE,
    help=(
        "Smallest change that counts, as a share of the time, such as 2%. [default: 5% for a point,"
        " 3% for a family of points]"
    ),
)
@click.option(
    "--noise",
    "others",
    multiple=True,
    metavar="RUN",
    type=Named(),
    help=(
        "Another run of the same build as BASE. Differences as small as those between it and BASE"
        " count as noise. May be repeated."
    ),
)
@export_option
@click.option(
    "--bless",
    is_flag=True,
    help="After the comparison, replace BASE by a copy of HEAD. BASE may be missing.",
)
@json_option
def command(
    base: Path,
    head: Path,
    gate: bool,
    bless: bool,
    exports: tuple[str, ...],
    as_json: bool,
    **how: Any,
) -> int:
    """Say whether the run HEAD is slower or faster than the run BASE.

    BASE and HEAD are folders that kvbench sweep has written on the same machine. The time of each
    point is divided by the time of reads in the same rounds, and the launches of both runs are
    compared. Without --gate, the exit code is 0 for every verdict.
    """
    from kvbench.results import load
    from kvbench.store.run import is_vacant

    if bless and is_vacant(base):
        return _bless(base, head)
    asked = [wanted(word, as_json) for word in exports]
    runs = [load(path) for path in (base, head, *how.pop("others"))]
    found, names = _found(runs, **how)
    tell(found, names, asked, as_json, lambda: _sides(runs[:2]))
    if bless:
        _bless(base, head)
    return exit_code(found.verdict) if gate else Exit.FINE


def _bless(base: Path, head: Path) -> int:
    """Replace `base` by a copy of `head`. A run with errors is refused as a baseline."""
    from kvbench.results import load
    from kvbench.store import keep

    if failed := [record for record in load(head).records if record.error]:
        raise BadArgument(
            f"--bless: {len(failed)} visits of {head} failed, first: {failed[0].error}",
            "finish or repeat the run first",
        )
    keep(head, base)
    say(f"baseline: {base}", err=True)
    return 0


def _found(runs: Sequence[Any], smallest: float | None) -> tuple[Any, dict[str, str]]:
    """The comparison, and short names of its points. `runs`: base, head, then other runs of the
    build of base.
    """
    from kvbench.analysis.differs.compare import compare, learn, short
    from kvbench.report.words.compared import told

    sides = [_side(run) for run in runs]
    seen = [side.run for side in sides[2:]]
    if taken := {run for run in seen if run in (sides[0].run, sides[1].run) or seen.count(run) > 1}:
        raise BadArgument(
            f"--noise: run {min(taken)} is named twice",
            "name runs other than base and head, each once",
        )
    learned = learn([sides[0], *sides[2:]]) if seen else None
    return told(*compare(sides[0], sides[1], now(), smallest, learned)), short(sides[0], sides[1])


def _side(run: Any) -> Any:
    from kvbench.analysis.differs.compare import Side

    points = tuple(point for point in run.manifest.plan.points if isinstance(point, Point))
    return Side(
        run.manifest.run,
        run.manifest.identity,
        run.machine,
        points,
        run.records,
        run.manifest.engines,
    )


def _sides(runs: Sequence[Any]) -> list[str]:
    """Lines on what each run measured, with a note that these rates decide nothing."""
    from kvbench.report.machines import text
    from kvbench.texts import wrapped

    lines = text([(run.findings(), run.manifest) for run in runs], ("base", "head"))
    return [*lines, "", *wrapped([_NO_VERDICT])]

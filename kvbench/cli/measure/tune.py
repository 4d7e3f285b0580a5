"""kvbench tune"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import click

from kvbench.cli._measuring import given, say_busy
from kvbench.cli._options import json_option, tuning_option, which_options
from kvbench.cli._progress import follow_each
from kvbench.cli._streams import say, tell
from kvbench.model.annotated import Printed, about
from kvbench.model.tuning import PARTS, Choice

_GAIN = {"gain": "times as fast as the default", "gain_low": "from", "gain_high": "to"}


@dataclass(frozen=True, slots=True)
class TunedClass:
    """A class of points, and the schedule that they are read by."""

    name: Annotated[
        str, about("tier, kernel, layout, head_dim, group, threads and level, parted by slashes")
    ]
    choice: Annotated[Choice, about("and its gain")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedClasses(Printed):
    """What was chosen."""

    suite: Annotated[str, about("whose points were tuned for")]
    file: Annotated[str, about("that holds what was measured; empty where it could not be written")]
    classes: Annotated[tuple[TunedClass, ...], about("of points that ask for no schedule")]


@click.command("tune")
@click.argument("suite", metavar="[SUITE]", required=False)
@which_options
@tuning_option
@click.option("--fresh", is_flag=True, help="Ignore the timings of earlier runs.")
@json_option
def command(fresh: bool, as_json: bool, **asked: Any) -> None:
    """Find the fastest schedule for each class of points in SUITE (default: quick).

    A schedule says how rows are read and prefetched. All of them are timed. A sweep does the same
    in its first launch. The timings are kept for later runs with this library on this machine.
    """
    from kvbench.analysis.measured.schedules import schedules
    from kvbench.report.ruled import Column, ruled
    from kvbench.session import Options
    from kvbench.session.session import tune

    say_busy()
    suite, tunings, file, remarks = tune(
        Options(**given(asked)),
        fresh,
        partial(follow_each, about=lambda record: record.point.kernel),
    )
    for remark in remarks:
        say(remark, err=True)
    classes = tuple(TunedClass(tuned.of, tuned.choice) for tuned in tunings)
    shown = TunedClasses(suite=suite, file=file, classes=classes)
    columns = [*(Column(part, part) for part in PARTS), Column("preset", "schedule")]
    columns += [Column(name, head, "{:.2f}".format) for name, head in _GAIN.items()]
    tell(shown, as_json, lambda: ruled(schedules(tunings), [*columns, Column("rounds", "rounds")]))

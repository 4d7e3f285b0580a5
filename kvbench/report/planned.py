"""What a sweep would measure, and which schedules were chosen, as values and as lines of text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from kvbench.analysis.measured.schedules import schedules
from kvbench.grouping import grouped
from kvbench.model import Point, Probe, Tuned
from kvbench.model.annotated import Printed, about
from kvbench.model.shape import lengths_word
from kvbench.model.tuning import PARTS, Choice
from kvbench.plan import Forecast, Sweep
from kvbench.plan.forecast import FILL, READ, READ_EACH
from kvbench.report.course import then
from kvbench.report.ruled import Column, ruled
from kvbench.suite.values import count_text
from kvbench.units import GB, counted, duration, size

Written = str | int | float | bool | None  # a value as a suite writes it
_GAIN = {"gain": "times as fast as the default", "gain_low": "from", "gain_high": "to"}


@dataclass(frozen=True, slots=True)
class Assumed:
    """Rates that the forecast assumes."""

    fill_bytes_per_second: Annotated[float, about("bytes per second: that one thread fills")]
    read_bytes_per_second: Annotated[float, about("bytes per second: that all threads read")]


@dataclass(frozen=True, slots=True)
class PlanMemory:
    """The memory that the sweep needs."""

    needed: Annotated[int, about("bytes: most memory in use at one time")]
    available: Annotated[int, about("bytes: memory that is available now")]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Combinations that were left out for one reason."""

    reason: Annotated[str, about("the reason")]
    count: Annotated[int, about("number of combinations")]
    detail: Annotated[str, about("details of the first combination")]
    example: Annotated[dict[str, Written], about("values of the first combination, by axis")]


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """Points that a round samples one after another, to compare them."""

    factor: Annotated[str, about("the axis in which the points differ")]
    points: Annotated[tuple[str, ...], about("names of the points")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSweep:
    """What a sweep would measure."""

    version: Annotated[
        Literal[2],
        about("of this format, 2: `order` of a point, was `shuffle`; a ceiling has no `distance`"),
    ] = 2
    suite: Annotated[str, about("name of the suite")]
    question: Annotated[str, about("the question of the suite")]
    count: Annotated[int, about("number of points")]
    launches: Annotated[int, about("number of fresh processes; each visits all points")]
    samples: Annotated[int, about("number of samples in a visit")]
    sample_time: Annotated[float, about("seconds: length of a sample")]
    seconds: Annotated[
        float, about("seconds: forecast of the whole sweep, with launches that may be added")
    ]
    assumed: Annotated[Assumed, about("rates that the forecast assumes")]
    memory: Annotated[PlanMemory, about("memory of the sweep")]
    axes: Annotated[dict[str, tuple[Written, ...]], about("axes that vary, with their values")]
    skips: Annotated[
        tuple[LeftOut, ...], about("combinations that are left out, the most frequent reason first")
    ]
    points: Annotated[tuple[Point, ...], about("points that would be measured")]
    ceilings: Annotated[tuple[Probe, ...], about("rates of the machine that would be measured")]
    contrasts: Annotated[tuple[PlannedSet, ...], about("points that would be timed side by side")]
    line: Annotated[
        tuple[str, ...],
        about("dtypes whose fastest kernels are then timed side by side; may be empty"),
    ]


@dataclass(frozen=True, slots=True)
class TunedClass:
    """A class of points, and the schedule chosen for them."""

    name: Annotated[
        str, about("tier, kernel, layout, head_dim, group, threads and level, split by slashes")
    ]
    choice: Annotated[Choice, about("the schedule, and its gain over the default")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedClasses(Printed):
    """The schedules that kvbench sweep --tune-only has chosen."""

    suite: Annotated[str, about("suite whose points were tuned")]
    file: Annotated[str, about("file with the timings; empty if it could not be written")]
    classes: Annotated[
        tuple[TunedClass, ...], about("classes of the points whose schedule is auto")
    ]


def facts(sweep: Sweep, seen: Forecast) -> PlannedSweep:
    plan, skips = sweep.plan, by_reason(sweep.skips).items()
    return PlannedSweep(
        suite=sweep.suite.name,
        question=sweep.suite.question,
        count=len(sweep.points),
        launches=plan.launches,
        samples=plan.samples,
        sample_time=plan.sample_time,
        seconds=seen.whole,
        assumed=Assumed(FILL, READ),
        memory=PlanMemory(seen.memory, sweep.memory),
        axes={axis: tuple(map(_written, values)) for axis, values in sweep.varying().items()},
        skips=tuple(
            LeftOut(why, len(own), own[0].detail, _example(sweep, own[0])) for why, own in skips
        ),
        points=tuple(sweep.points),
        ceilings=tuple(each for each in plan.points if isinstance(each, Probe)),
        contrasts=tuple(
            PlannedSet(each.factor, tuple(p.name for p in each.points)) for each in sweep.contrasts
        ),
        line=tuple(point.dtype for point in sweep.line),
    )


def _written(value: Any) -> Written:
    """A value, as a suite writes it."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def planned_text(sweep: Sweep, seen: Forecast) -> list[str]:
    return [*_heading(sweep, seen), *_varying(sweep), *_skipped(sweep)]


def tuned_text(tunings: Sequence[Tuned]) -> list[str]:
    columns = (
        *(Column(part, part) for part in PARTS),
        Column("preset", "schedule"),
        *(Column(name, head, "{:.2f}".format) for name, head in _GAIN.items()),
        Column("rounds", "rounds"),
    )
    return ruled(schedules(tunings), columns)


def _heading(sweep: Sweep, seen: Forecast) -> list[str]:
    plan, largest = sweep.plan, seen.largest
    assert largest is not None  # for there are points
    needs = (
        f"{size(seen.memory)}, most of it for {largest.kernel} at context {largest.shape.context}"
    )
    return [
        f"{sweep.suite.name}: {sweep.suite.question}",
        (
            f"  {len(sweep.points)} points,"
            f" {len(plan.points) - len(sweep.points) - len(sweep.contrasts)} ceilings and"
            f" {counted(len(sweep.contrasts), 'contrast')}, {plan.launches} launches of"
            f" {plan.samples} samples of {duration(plan.sample_time)}"
        ),
        (
            f"  time: {seen.text} from start to end, {seen.timed / seen.seconds:.0%} of the planned"
            f" launches in samples (estimate: {FILL / GB:g} GB/s per thread to fill memory,"
            f" {READ / GB:g} GB/s in total to read it, or {READ_EACH / GB:g} GB/s per thread where"
            " that is more)"
        ),
        *([f"  then: {then(plan.launches)}"] if sweep.line else []),
        f"  memory: {needs}; {size(sweep.memory)} available",
    ]


def _varying(sweep: Sweep) -> list[str]:
    """Lines: each axis in which points differ, with its values."""
    found = sweep.varying()
    width = max((len(axis) for axis in found), default=0)
    lines = [
        f"    {axis:<{width}}  {' '.join(_short(value) for value in values)}"
        for axis, values in found.items()
    ]
    return ["", "  varied", *lines] if lines else []


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "default"
    if isinstance(value, float):
        return f"{value:.9g}"
    return count_text(value) if isinstance(value, int) else lengths_word(str(value))


def _skipped(sweep: Sweep) -> list[str]:
    lines = []
    for reason, skips in by_reason(sweep.skips).items():
        lines.append(f"    {len(skips):>5}  {reason}: {skips[0].detail}")
        if example := _example(sweep, skips[0]):
            lines.append(
                "           such as"
                f" {' '.join(f'{axis}={_short(value)}' for axis, value in example.items())}"
            )
    return ["", f"  left out: {counted(len(sweep.skips), 'combination')}", *lines] if lines else []


def by_reason(skips: Iterable[Any]) -> dict[str, list[Any]]:
    """Skips by their reason, the most frequent reason first."""
    found = grouped((skip.reason, skip) for skip in skips)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _example(sweep: Sweep, skip: Any) -> dict[str, Written]:
    return {axis: _written(value) for axis, value in sweep.named(skip).items()}

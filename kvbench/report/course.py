"""Texts on a sweep while it is measured: the plan, the newest visit, how it ended."""

from collections.abc import Iterator, Sequence
from itertools import count

from kvbench.analysis.answers.answer import Held
from kvbench.analysis.differs.questions import Open
from kvbench.analysis.measured.estimates import enough
from kvbench.analysis.measured.machines import describe_record
from kvbench.analysis.measured.rates import measured
from kvbench.model import MEMORY, OURS, Check, Contrast, Point, Probe, Record
from kvbench.report.words import said
from kvbench.store import Manifest
from kvbench.texts import wrapped
from kvbench.units import counted, size, span


def heading(
    manifest: Manifest,
    place: str,
    checks: Sequence[Check],
    done: Sequence[Record],
    time: str,
    budget: float | None,
) -> Iterator[str]:
    """Lines printed before measuring. `done`: records that the run already has. `time`: the
    forecast in words. `budget`: seconds that the run may take.
    """
    plan, forecast = manifest.plan, manifest.forecast
    kinds = {Point: "point", Probe: "ceiling", Contrast: "contrast"}
    counts = [
        counted(sum(isinstance(each, kind) for each in plan.points), name)
        for kind, name in kinds.items()
    ]
    launches, memory = counted(plan.launches, "launch"), size(forecast.get("memory", 0))
    yield f"{manifest.suite}: {manifest.question}"
    yield (
        f"{', '.join(counts)} in {launches}: {time} from start to end and {memory} of memory, into"
        f" {place}"
    )
    if manifest.has_line:
        yield f"then: {then(plan.launches)}"
    if budget:
        yield f"it stops after the budget of {span(budget)}, within a launch if need be"
    if manifest.looks:
        yield (
            f"while questions are not decided, launches of their points are added, up to"
            f" {manifest.looks} launches"
        )
    elif not enough(plan.launches) and not any(
        getattr(point, "engine", OURS) != OURS for point in plan.points
    ):
        least = next(number for number in count(plan.launches) if enough(number))
        yield f"{launches} cannot decide a question: {least} can (--launches {least})"
    if classes := int(forecast.get("tuned", 0)):
        yield f"tuning {counted(classes, 'class')} of points in the first launch"
    if done:
        visits = (len(plan.points) + manifest.has_line) * plan.launches
        yield f"{len(done)} of {visits} visits are already done"
    if budget and (launch := forecast.get("seconds", 0) / plan.launches) > budget:
        yield (
            f"a launch takes about {span(launch)}, more than the budget, so some points will not be"
            " measured"
        )
    if warned := [check.name for check in checks if check.status == "warn"]:
        yield f"may disturb the run (see kvbench doctor): {', '.join(warned)}"


def then(launches: int) -> str:
    """Say what follows the planned launches, and in how many."""
    return f"the fastest kernel of each dtype side by side, {counted(launches, 'launch')}"


def newest(record: Record) -> str:
    """A few words on a visit: its rate, and its share of plain reads of memory in the same rounds
    if it has them.
    """
    point = record.point
    if isinstance(point, Contrast):
        said = f"{counted(len(point.points), 'point')} side by side: {point.factor}"
        return f"{said}: {record.error}" if record.error else said
    if isinstance(point, Probe):
        return describe_record(record)
    assert isinstance(point, Point)  # what else is visited
    text = f"{point.kernel}, context {point.shape.context}, {counted(point.threads, 'thread')}"
    if not record.complete:
        return f"{text}: {record.error}"
    found = measured([record])
    tuned = "".join(f", tuned: {each.choice.preset}" for each in record.tuned)
    share = found.shares.get(MEMORY)
    over = f", {share.median:.0%} of {Held.MEMORY}" if share else ""
    return f"{text}: {found.rates['point'].median:.3g} GB/s{over}{tuned}"


def ending(
    manifest: Manifest, place: str, records: Sequence[Record], left: Sequence[Open] = ()
) -> list[str]:
    """Lines printed after a sweep. `left`: questions that are not decided."""
    launches = len({record.launch for record in records})
    planned = manifest.plan.launches * (1 + manifest.has_line)
    failed = {
        each.point.name: each.error
        for each in records
        if each.error and isinstance(each.point, Probe)
    }
    first = next((f"{name}: {error}" for name, error in failed.items()), "")
    peak = max((record.peak for record in records), default=0)
    parts = {
        "open": (said("gaps", "nearest", left) or "no question") if manifest.looks else "",
        "stopped": f"after {launches} of {planned} launches" if launches < planned else "",
        "failed": f"{counted(len(failed), 'ceiling')}, first {first}" if failed else "",
        "left out": said("gaps", "left_out", manifest.skips) if manifest.skips else "",
        "memory": f"{size(peak)} at most, {size(manifest.forecast.get('memory', 0))} forecast",
    }
    return [
        *wrapped((f"{name:<10}{told}" for name, told in parts.items() if told), hanging=10),
        f"  run       {place}",
    ]

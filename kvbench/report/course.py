"""What is said of a sweep while it is measured: what it will be, its newest visit, how it ended."""

import math
from collections.abc import Iterator, Sequence
from itertools import count

from kvbench.analysis.differs.questions import Open
from kvbench.analysis.measured.ceilings import value
from kvbench.analysis.measured.estimates import enough
from kvbench.analysis.measured.machines import describe_record
from kvbench.model import OURS, Check, Contrast, Point, Probe, Record
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
    """`done`: what was measured before. `time`: that it takes, by its forecast; `budget`: seconds
    that it may take.
    """
    plan, forecast = manifest.plan, manifest.forecast
    kinds = {Point: "point", Probe: "ceiling", Contrast: "contrast"}
    counts = [
        counted(sum(isinstance(each, kind) for each in plan.points), name)
        for kind, name in kinds.items()
    ]
    launches = counted(plan.launches, "launch")
    yield f"{manifest.suite}: {manifest.question}"
    memory = size(forecast.get("memory", 0))
    yield (
        f"{', '.join(counts)} in {launches}: {time} from start to end and {memory} of memory, into"
        f" {place}"
    )
    if budget:
        yield f"its budget of {span(budget)} ends it, within a launch if need be"
    if manifest.looks:
        yield (
            f"up to {manifest.looks} launches are made while questions are open, of their points"
            " alone"
        )
    elif not enough(plan.launches) and not any(
        getattr(point, "engine", OURS) != OURS for point in plan.points
    ):
        least = next(number for number in count(plan.launches) if enough(number))
        yield f"{launches} cannot settle a question: that takes {least} (--launches {least})"
    if classes := int(forecast.get("tuned", 0)):
        yield f"tuning {counted(classes, 'class')} of points in the first launch"
    if done:
        yield f"{len(done)} of {len(plan.points) * plan.launches} visits are done already"
    if budget and (launch := forecast.get("seconds", 0) / plan.launches) > budget:
        yield (
            f"a launch takes about {span(launch)}, more than the budget, which ends it before all"
            " is measured"
        )
    if warned := [check.name for check in checks if check.status == "warn"]:
        yield f"what may disturb it, see kvbench doctor: {', '.join(warned)}"


class Newest:
    """A few words on a visit: its rate, beside what the run's own reads of such a footprint gave so
    far.
    """

    def __init__(self) -> None:
        self._reads: dict[tuple[int, ...], dict[int, float]] = {}  # GB/s by CPUs and bytes

    def __call__(self, record: Record) -> str:
        point = record.point
        if isinstance(point, Contrast):
            said = f"{counted(len(point.points), 'point')} side by side: {point.factor}"
            return f"{said}: {record.error}" if record.error else said
        rate = max(
            (value(record, sample) for sample in record.samples if sample.program == "point"),
            default=0.0,
        )
        reads = self._reads.setdefault(point.cpus, {})
        if isinstance(point, Probe):
            # one that failed says nothing of how fast reads are
            if point.op == "read" and rate > 0:
                reads[point.bytes] = max(reads.get(point.bytes, 0.0), rate)
            return describe_record(record)
        assert isinstance(point, Point)  # what else is visited
        text = f"{point.kernel}, context {point.shape.context}, {counted(point.threads, 'thread')}"
        if record.error:
            return f"{text}: {record.error}"
        near = min(reads, key=lambda count: abs(math.log(count / record.footprint)), default=0)
        tuned = "".join(f", tuned: {each.choice.preset}" for each in record.tuned)
        share = f", {rate / reads[near]:.0%} of reads of {size(near)}" if near else ""
        return f"{text}: {rate:.3g} GB/s{share}{tuned}"


def ending(
    manifest: Manifest, place: str, records: Sequence[Record], left: Sequence[Open] = ()
) -> list[str]:
    """`left`: questions that are open."""
    launches, planned = len({record.launch for record in records}), manifest.plan.launches
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

"""What is said of a sweep while it is measured: what it will be, its newest visit, how it ended."""

import math
from collections.abc import Sequence
from itertools import count

from kvbench.analysis.differs.questions import Open
from kvbench.analysis.measured.ceilings import value
from kvbench.analysis.measured.launches import enough
from kvbench.analysis.measured.machines import describe_record
from kvbench.model import Check, Contrast, Point, Probe, Record
from kvbench.report.gaps import left_out
from kvbench.store import Manifest
from kvbench.texts import WIDTH
from kvbench.units import counted, cut, size, span

_OPEN = 6  # questions that are told, those that are nearest to an answer first


def heading(manifest: Manifest, place: str, checks: Sequence[Check], done: Sequence[Record], limit: float) -> list[str]:
    """`done`: what was measured before. `limit`: seconds that it may take."""
    plan, forecast = manifest.plan, manifest.forecast
    points, probes = (sum(isinstance(each, kind) for each in plan.points) for kind in (Point, Probe))
    sets = counted(len(plan.points) - points - probes, "contrast")
    seconds = forecast.get("seconds", 0)
    lines = [
        f"{manifest.suite}: {manifest.question}",
        f"{counted(points, 'point')}, {counted(probes, 'ceiling')} and {sets} in {counted(plan.launches, 'launch')}: "
        f"at most {span(limit)} and {size(forecast.get('memory', 0))} of memory, into {place}",
    ]
    if manifest.looks:
        lines.append(f"up to {manifest.looks} launches are made while questions are open, of their points alone")
    elif not enough(plan.launches):
        least = next(number for number in count(plan.launches) if enough(number))
        lines.append(
            f"{counted(plan.launches, 'launch')} cannot settle a question: that takes {least} (--launches {least})"
        )
    if classes := int(forecast.get("tuned", 0)):
        lines.append(f"tuning {counted(classes, 'class')} of points in the first launch")
    if done:
        lines.append(f"{len(done)} of {len(plan.points) * plan.launches} visits are done already")
    launch = seconds / plan.launches
    if launch > limit:
        lines.append(f"a launch takes about {span(launch)}, more than the budget: one is made all the same")
    warned = [check.name for check in checks if check.status == "warn"]
    if warned:
        lines.append(f"what may disturb it, see kvbench doctor: {', '.join(warned)}")
    return lines


class Newest:
    """A few words on a visit: its rate, beside what the run's own reads of such a footprint gave so far."""

    def __init__(self) -> None:
        self._reads: dict[tuple[int, ...], dict[int, float]] = {}  # GB/s by CPUs and bytes

    def __call__(self, record: Record) -> str:
        point = record.point
        if isinstance(point, Contrast):
            said = f"{counted(len(point.points), 'point')} side by side: {point.factor}"
            return f"{said}: {record.error}" if record.error else said
        rate = max((value(record, sample) for sample in record.samples if sample.program == "point"), default=0.0)
        reads = self._reads.setdefault(point.cpus, {})
        if isinstance(point, Probe):
            if point.op == "read":
                reads[point.bytes] = max(reads.get(point.bytes, 0.0), rate)
            return describe_record(record)
        text = f"{point.kernel}, context {point.shape.context}, {counted(len(point.cpus), 'thread')}"
        if record.error:
            return f"{text}: {record.error}"
        footprint = record.footprint("point")
        near = min(reads, key=lambda count: abs(math.log(count / footprint)), default=0)
        tuned = "".join(f", tuned: {each.choice.preset}" for each in record.tuned)
        share = f", {rate / reads[near]:.0%} of reads of {size(near)}" if near else ""
        return f"{text}: {rate:.3g} GB/s{share}{tuned}"


def left_open(found: Sequence[Open], manifest: Manifest, every: bool = True) -> list[str]:
    """Where launches were added while there were such questions: those that are left, and what they would take."""
    if not manifest.looks:
        return []
    nearest = sorted(found, key=lambda each: each.needs)
    if not every:
        many = (
            f"{counted(len(nearest), 'question')}; the nearest takes about {counted(nearest[0].needs, 'launch')}"
            if nearest
            else "nothing"
        )
        return [f"  open      {many}"]
    lines = [
        f"  {each.ratio:.2f} ({each.low:.2f}..{each.high:.2f}), about {counted(each.needs, 'launch')}: {each.question}"
        for each in nearest[:_OPEN]
    ]
    if left := nearest[_OPEN:]:
        lines.append(f"  and {len(left)} more, up to about {counted(left[-1].needs, 'launch')}")
    head = "left open, and how many launches in all would decide it:" if found else "no question is left open"
    return [head, *(cut(line, WIDTH) for line in lines)]


def ending(manifest: Manifest, place: str, records: Sequence[Record]) -> list[str]:
    launches, planned = len({record.launch for record in records}), manifest.plan.launches
    lines = [f"  stopped   after {launches} of {planned} launches"] if launches < planned else []
    failed = {each.point.name: each.error for each in records if each.error and isinstance(each.point, Probe)}
    for name, error in list(failed.items())[:1]:
        lines.append(f"  failed    {counted(len(failed), 'ceiling')}, first {name}: {error}")
    if why := left_out(manifest):
        lines.append(cut(f"  left out  {why}", WIDTH))
    peak = max((record.peak for record in records), default=0)
    return [
        *lines,
        f"  memory    {size(peak)} at most, {size(manifest.forecast.get('memory', 0))} forecast",
        f"  run       {place}",
    ]

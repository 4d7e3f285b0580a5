"""What a run lacks, in sentences: a report says it before anything else."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from kvbench.analysis.differs.questions import Open
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.launches import COVERAGE, held
from kvbench.model import Point, Probe
from kvbench.store import Manifest
from kvbench.units import counted

_RESUME = "To go on: kvbench sweep --resume"


def gaps(found: Findings, manifest: Manifest) -> list[str]:
    return [
        *_visits(found, manifest),
        *_failed(found),
        *_launches(found, manifest),
        *_ceilings(found, manifest),
        *_left_out(manifest),
        *filter(None, [manifest.looks and nearest(found.open)]),
    ]


def left_out(manifest: Manifest) -> str:
    """What was asked for and cannot be measured here, by reason; empty where nothing is."""
    details = {skip.reason: skip.detail for skip in reversed(manifest.skips)}  # of the first
    reasons = Counter(skip.reason for skip in manifest.skips).most_common()
    why = "; ".join(f"{reason}: {number} ({details[reason]})" for reason, number in reasons)
    return f"{counted(len(manifest.skips), 'combination')} of the suite's values; {why}" if why else ""


def _left_out(manifest: Manifest) -> Iterator[str]:
    if why := left_out(manifest):
        yield f"Not measured here: {why}."


def _visits(found: Findings, manifest: Manifest) -> Iterator[str]:
    """A visit that failed was made."""
    planned = sum(isinstance(point, Point) for point in manifest.plan.points)
    every, visited = planned * manifest.plan.launches, len(found.points)
    of_each = found.points[["launches", "set_aside", "failed"]].fillna(0).sum(axis=1)
    made = int(of_each.clip(upper=manifest.plan.launches).sum())  # some have more, where launches were added
    if not planned:
        yield "The suite has no points: only ceilings were measured."
    elif not visited:
        yield f"None of {counted(planned, 'point')} was measured. {_RESUME}."
    elif made < every:
        never = f" {counted(planned - visited, 'point')} were never measured." if visited < planned else ""
        yield f"The run is not finished: {made} of {every} visits are done.{never} {_RESUME}."


def _failed(found: Findings) -> Iterator[str]:
    lost = found.points[found.points["gbps"].isna()]
    if len(lost):
        which = "Every point" if len(lost) == len(found.points) else f"{len(lost)} of {len(found.points)} points"
        yield f"{which} failed in every launch: {lost['error'].iloc[0]}"
    some = int(((found.points["failed"] > 0) & found.points["gbps"].notna()).sum())
    if some:
        yield f"{counted(some, 'point')} failed in some launches. The numbers are from the others."


def _launches(found: Findings, manifest: Manifest) -> Iterator[str]:
    made = int(found.samples["launch"].nunique())
    if made < manifest.plan.launches:
        yield f"{made or 'None'} of {counted(manifest.plan.launches, 'planned launch')} gave samples."
    if made and held(made, COVERAGE) < COVERAGE:
        enough = next(number for number in count(made) if held(number, COVERAGE) >= COVERAGE)
        few = f"{made} launches are" if made > 1 else "One launch is"
        yield f"{few} too few for {COVERAGE:.0%} intervals: {enough} are needed. Until then nothing is decided."


def _ceilings(found: Findings, manifest: Manifest) -> Iterator[str]:
    lost = len(
        {point for point in manifest.plan.points if isinstance(point, Probe)} - {c.probe for c in found.ceilings}
    )
    if not found.ceilings:
        yield "No ceiling was measured: the machine's bandwidth is unknown."
        return
    if lost:
        yield f"{counted(lost, 'ceiling')} gave no number."
    if not any(c.level == "DRAM" and c.probe.op == "read" for c in found.ceilings):
        yield "No read of memory was measured: shares of it are unknown."


def nearest(found: Sequence[Open]) -> str:
    """How many questions are open, and that which is nearest to an answer; empty where none is."""
    if not found:
        return ""
    first = min(found, key=lambda each: each.needs)
    needs = f"The nearest needs about {counted(first.needs, 'launch')} in all: {first.question}."
    return f"{counted(len(found), 'question')} still open. {needs}"

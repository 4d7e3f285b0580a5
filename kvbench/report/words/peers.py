"""Sentences on other engines' kernels beside ours."""

from collections.abc import Sequence

from kvbench.analysis.means.peers import Cell, mean_times
from kvbench.report.words.phrases import number
from kvbench.units import counted

TITLE = "How fast are other engines on the same values?"
ABOUT = (
    "Single-token decode attention of each engine, timed in the same rounds on the same values and CPUs, every other process "
    "stopped meanwhile. GB/s: K, V and scales once for each KV head as that engine stores them, over time. Share: of a "
    "plain read of the same rows beside it. Again: ours once more after the peers of each round, which shows drift."
)
MISSING = "No peer was measured beside ours: run kvbench peers."


def summary(found: Sequence[Cell]) -> list[str]:
    known = [cell for cell in found if cell.times]
    if not known:
        return ["No peer has a rate."]
    behind = [cell for cell in known if cell.times < 1]
    said = [
        f"Ours take {number(1 / mean_times(known))} of the time of the fastest peer, by the geometric mean of "
        f"{counted(len(known), 'cell')}: they are {number(mean_times(known))} times as fast."
    ]
    said += [f"{cell(each)}: {each.best} is {number(1 / each.times)} times as fast as ours." for each in behind]
    drifts = [abs(each.drift - 1) for each in found if each.drift]
    said += [f"Ours before and after the peers of a round differ by {max(drifts):.0%} at most."] if drifts else []
    return said


def cell(found: Cell) -> str:
    return (
        f"{found.model or 'no known model'}, {found.dtype}, {counted(found.threads, 'thread')}, {found.context} tokens"
    )

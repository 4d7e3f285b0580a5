"""The line: for each dtype the fastest kernel at the workload of a run's page, all timed side by
side. Its launches follow the planned ones, and are equally many. Its kernels are chosen once, by
their medians in the planned launches. Until then the kernels with the largest caches stand in for
them.
"""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from kvbench.analysis.answers.workload import workload
from kvbench.analysis.limits import frames
from kvbench.analysis.means.models import tokens
from kvbench.analysis.measured.columns import FOUND, POINT, facts, table
from kvbench.grouping import grouped
from kvbench.model import OURS, Contrast, Machine, Needs, Plan, Point, Record
from kvbench.model.chases import NONE
from kvbench.model.contrast import KERNEL, NoLine
from kvbench.plan import Sweep
from kvbench.plan.witnesses import fit
from kvbench.regime import classify
from kvbench.results import geometries

_Needs = Mapping[Point, Needs]


def expected(sweep: Sweep, machine: Machine) -> tuple[Point, ...]:
    """Predict the line, as if the kernels with the largest caches were the fastest; empty if there
    will be no line.
    """
    once = dict.fromkeys(("seconds", "seconds_low", "seconds_high"), 1.0)
    own = [each for each in sweep.points if each.op == "decode" and each.shape.q_len == 1]
    own = [each for each in own if each.chase == NONE]
    if not own:
        return ()
    rows = (
        facts(point) | once | {"regime": _regime(point, sweep.needs[point], machine)}
        for point in own
    )
    found = _at_workload(table(rows, POINT | FOUND), sweep.models)
    largest = {point.name: -sweep.needs[point].arena for point in own}
    points = _firsts(_candidates(sweep.plan, found), largest)
    return points if not _lacking(points, sweep.needs, sweep.memory) else ()


def chosen(
    plan: Plan,
    records: Iterable[Record],
    machine: Machine,
    models: Sequence[str],
    needs: _Needs,
    memory: int,
) -> Contrast | NoLine:
    """Choose the line, or say why there is none. `records`: only those of planned launches count.
    `memory`: bytes available.
    """
    own = [record for record in records if record.launch < plan.launches]
    points = frames.points(own, machine)
    seconds = dict(zip(points["name"], points["seconds"], strict=True))
    found = _at_workload(points, models)
    line = _firsts(_candidates(plan, found), seconds)
    return _lacking(line, needs, memory) or Contrast(KERNEL, line)


def _regime(point: Point, needed: Needs, machine: Machine) -> str:
    evicted = point.residency == "evicted"
    return classify(machine, point.cpus, needed.walked, evicted=evicted).word


def _at_workload(points: pd.DataFrame, models: Sequence[str]) -> tuple[str, ...]:
    """Names of the workload's points with one query and no chase."""
    own = (points["engine"] == OURS) & (points["q_len"] == 1) & (points["chase"] == NONE)
    ours = points[own]
    return workload(tokens(ours, geometries(models)), ours).points


def _candidates(plan: Plan, names: Sequence[str]) -> list[Point]:
    """Our own engine's points, in the order of the plan. Plug-ins are left out: they have their own
    processes.
    """
    own = (point for point in plan.points if isinstance(point, Point))
    return [point for point in own if point.name in names and not plan.is_foreign(point)]


def _firsts(points: Sequence[Point], rank: Mapping[str, float]) -> tuple[Point, ...]:
    """For each dtype the point of least rank, in the order of the plan."""
    each = grouped((point.dtype, point) for point in points)
    found = {min(own, key=lambda point: rank[point.name]) for own in each.values()}
    return tuple(point for point in points if point in found)


def _lacking(points: Sequence[Point], needs: _Needs, memory: int) -> NoLine:
    if len(points) < 2:
        return NoLine.FEW
    return NoLine.NONE if fit(points, needs, memory) else NoLine.LARGE

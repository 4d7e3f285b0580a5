"""What a gate compares, and at which points."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kvbench.errors import BadArgument
from kvbench.machine import describe
from kvbench.model import Machine, Plan, Point
from kvbench.model.chases import NONE
from kvbench.plan import Sweep
from kvbench.runner import new_run

_PATIENCE = 120.0  # seconds without a sign of life after which a visit counts as hung


@dataclass(frozen=True, slots=True)
class Rivals:
    """The two sides and the plan. `base`, `head`: their names for people. `how`: how they are
    measured, for notes. `unmeasured`: why nothing need be measured, or "". `missing`: points that
    one side lacks, each with the reason. `notes`: other differences. `changed`: returns the sides
    that have changed since, or "".
    """

    machine: Machine
    plan: Plan
    base: str
    head: str
    how: str
    unmeasured: str = ""
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changed: Callable[[], str] = str


def unchanged(base: str, head: str) -> Rivals:
    """Rivals with the same sources, of which neither was built."""
    nothing = Plan(points=(), launches=1, samples=1, sample_time=1.0, seed=0)
    why = "nothing was measured: base and head are built from the same sources"
    return Rivals(describe(), nothing, base, head, how="", unmeasured=why)


def refuse_chases(sweep: Sweep) -> None:
    """Refuse points with a chase: duels cannot time it."""
    if any(point.chase != NONE for point in sweep.points):
        raise BadArgument(
            f"{sweep.suite.source} has points with a chase, which a gate cannot time",
            "name another --suite",
        )


def planned(plan: Plan, points: tuple[Point, ...], seed: int | None, **facts: Any) -> Plan:
    """A suite's plan as a gate's run on these points. Without a seed, one is drawn."""
    seed = secrets.randbits(31) if seed is None else seed
    return replace(plan, points=points, seed=seed, run=new_run(), patience=_PATIENCE, **facts)

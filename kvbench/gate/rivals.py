"""What a gate compares, and on which points."""

from collections.abc import Callable
from dataclasses import dataclass

from kvbench.machine import describe
from kvbench.model import Machine, Plan


@dataclass(frozen=True, slots=True)
class Rivals:
    """`base` and `head`: what people call them. `how` they are measured, as notes say it.
    `unmeasured`: why nothing need be measured, or "". `missing`: points that one side lacks, each
    with the reason. `notes`: what else differs. `changed`: sides that are no longer what they were,
    or "".
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
    """Of two sides whose sources are the same: neither need be built to know what they are."""
    nothing = Plan(points=(), launches=1, samples=1, sample_time=1.0, seed=0)
    why = "nothing was measured: base and head are built from the same sources"
    return Rivals(describe(), nothing, base, head, how="", unmeasured=why)

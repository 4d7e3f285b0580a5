"""What a gate compares, and on which points."""

from collections.abc import Callable
from dataclasses import dataclass

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

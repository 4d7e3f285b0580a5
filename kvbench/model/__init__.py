"""The values that pass between the parts: frozen, and without behaviour beyond what they say about themselves."""

from kvbench.model.arena_map import ArenaMap, Buffer
from kvbench.model.kernel import Kernel, Times, Traffic
from kvbench.model.machine import PLACES, Check, Cpu, DataCache, Fact, Machine, Node
from kvbench.model.point import HEADS, Point, Probe, Shape, Skip
from kvbench.model.record import SIDES, Ceiling, Job, Plan, Record, Sample, Visit
from kvbench.model.verdict import Comparison, Judged

__all__ = [
    "HEADS",
    "PLACES",
    "SIDES",
    "ArenaMap",
    "Buffer",
    "Ceiling",
    "Check",
    "Comparison",
    "Cpu",
    "DataCache",
    "Fact",
    "Job",
    "Judged",
    "Kernel",
    "Machine",
    "Node",
    "Plan",
    "Point",
    "Probe",
    "Record",
    "Sample",
    "Shape",
    "Skip",
    "Times",
    "Traffic",
    "Visit",
]

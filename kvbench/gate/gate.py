"""Run a gate, from its rivals to its verdict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvbench.analysis.measured.columns import machine_name, names
from kvbench.errors import NotComparable, Unwritable
from kvbench.gate.duels import pairs
from kvbench.gate.rivals import Rivals
from kvbench.gate.stages import Stages
from kvbench.gate.verdict import judged
from kvbench.model import BESIDE, SIDES, Comparison, Record
from kvbench.runner import Execute
from kvbench.store.files import streams
from kvbench.texts import csv_text
from kvbench.units import now

BUDGET = 240.0  # seconds
_PROGRAMS, _SUMS = (*SIDES, *BESIDE.values()), ("switches", "steal", "throttled")
_HEADING = (
    "stage",
    "launch",
    "point",
    "pair",
    *(f"{own}_s" for own in _PROGRAMS),
    "switches",
    "steal_s",
    "throttled",
)
Follow = Callable[[Stages], Iterator[tuple[str, Record]]]


def gate(
    rivals: Rivals,
    budget: float = BUDGET,
    out: Path | None = None,
    follow: Follow = Stages.measure,
    execute: Execute | None = None,
) -> tuple[Comparison, dict[str, str]]:
    """Measure and judge. Also return short names of the points. `out`: a folder that gets every
    pair as soon as it is taken. `follow` measures the stages, and may show progress.
    """
    plan, machine = rivals.plan, rivals.machine
    with _kept_pairs(out) as keep:
        stages = Stages(plan, machine, budget, execute)
        missing = [*rivals.missing]
        for stage, record in follow(stages) if plan.points else ():
            keep(stage, record)
        if sides := rivals.changed():
            raise NotComparable(
                f"{sides} changed while it was measured", "leave both builds as they are"
            )
        if plan.points:
            missing += [
                f"{point}: not measured: the budget ended it" for point in stages.unmeasured()
            ]
        name = machine_name(machine, machine.fingerprint)
        measured = [rivals.unmeasured] if rivals.unmeasured else stages.notes()
        notes = [*rivals.notes, *measured]
        said = judged(stages.course(), rivals, name, now(), missing, notes)
        return said, names(stages.points)


@contextmanager
def _kept_pairs(folder: Path | None) -> Iterator[Callable[[str, Record], None]]:
    """A function that writes a record's pairs into pairs.csv in `folder`; without a folder it does
    nothing. Seconds are those of a pass.
    """
    if folder is None:
        yield lambda stage, record: None
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # a pipe would make it wait, a link would lead elsewhere
        streams(folder / "pairs.csv", asked=False)
        file = (folder / "pairs.csv").open("w", newline="")
    except OSError as error:
        raise Unwritable(f"cannot write {folder}: {error.strerror}", "name another --out") from None
    with file:
        file.write(csv_text([_HEADING]))

        def add(stage: str, record: Record) -> None:
            file.write(csv_text(_rows(stage, record)))
            file.flush()

        yield add


def _rows(stage: str, record: Record) -> Iterator[tuple[Any, ...]]:
    for pair in pairs(record):
        sums = (sum(getattr(sample, what) for sample in pair.values()) for what in _SUMS)
        times = (pair[name].pass_seconds[0] for name in _PROGRAMS)
        yield stage, record.launch, record.point.name, pair["base"].round, *times, *sums

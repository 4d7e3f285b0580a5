"""A gate from its builds to its verdict."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from kvbench.analysis.measured.columns import machine_name, names
from kvbench.gate.builds import Build
from kvbench.gate.pairs import kept_pairs
from kvbench.gate.rivals import Request, rivals
from kvbench.gate.stages import Stages
from kvbench.gate.verdict import judged
from kvbench.model import Comparison, Record
from kvbench.runner import Execute
from kvbench.units import now

BUDGET = 240.0  # seconds
Follow = Callable[[Stages], Iterator[tuple[str, Record]]]


def gate(
    base: Build,
    head: Build,
    asked: Request,
    budget: float = BUDGET,
    out: Path | None = None,
    follow: Follow = Stages.measure,
    execute: Execute | None = None,
) -> tuple[Comparison, dict[str, str]]:
    """And short names of its points. `out`: a folder that gets every pair as soon as it is taken. `follow` measures the
    stages, and may say how far it is."""
    with TemporaryDirectory(prefix="kvbench-", ignore_cleanup_errors=True) as folder, kept_pairs(out) as keep:
        found = rivals(base, head, asked, Path(folder))
        stages = Stages(found.plan, found.machine, budget, execute)
        for stage, record in follow(stages) if found.plan.points else ():
            keep(stage, record)
        said = judged(
            stages.course(),
            base.text,
            head.text,
            machine_name(found.machine, found.machine.fingerprint),
            now(),
            found.missing,
            [*found.notes, *([found.unmeasured] if found.unmeasured else stages.notes())],
        )
        return said, names(found.plan.points)

"""What points of a run are held against: the regime of a footprint, and the run's own ceilings for it."""

from collections.abc import Sequence
from functools import cache

from kvbench.analysis.ceilings import ceiling_for
from kvbench.errors import NotComparable
from kvbench.model import Ceiling, Fact, Machine, Point
from kvbench.regime import Capacities, Regime, classify

READ, COPY = ("read",), ("copy", "copy_nt")  # ops that a decode and a store are held against


class Roofs:
    """Points of a sweep ask the same again and again: each question is answered once."""

    def __init__(self, machine: Machine, ceilings: Sequence[Ceiling], run: str, measured: Capacities | None) -> None:
        self._machine, self._ceilings, self._run, self._measured = machine, ceilings, run, measured
        self._regime, self._ceiling = cache(self._regime_of), cache(self._ceiling_of)

    def regime(self, point: Point, footprint: float) -> Regime:
        return self._regime(point.cpus, footprint, point.residency == "evicted")

    def ceiling(self, ops: tuple[str, ...], point: Point, level: str, footprint: float) -> tuple[Ceiling | None, str]:
        """The best of the ops at this footprint; or None, and why there is none."""
        return self._ceiling(ops, point.isa, point.cpus, point.pages, level, footprint)

    def dram(self, point: Point) -> tuple[Ceiling | None, str]:
        """What the point's threads read from DRAM."""
        return self._ceiling(READ, point.isa, point.cpus, point.pages, "DRAM", None)

    def fma(self, point: Point) -> Ceiling | None:
        return self._ceiling(("flops",), point.isa, point.cpus, point.pages, None, None)[0]

    @property
    def peak(self) -> Fact | None:
        """GB/s that the machine's DRAM allows in theory."""
        return self._machine.facts.get("dram_peak")

    def _regime_of(self, cpus: tuple[int, ...], footprint: float, evicted: bool) -> Regime:
        return classify(self._machine, cpus, footprint, evicted=evicted, measured=self._measured)

    def _ceiling_of(
        self,
        ops: tuple[str, ...],
        isa: str,
        cpus: tuple[int, ...],
        pages: str,
        level: str | None,
        footprint: float | None,
    ) -> tuple[Ceiling | None, str]:
        asked = {"isa": isa, "cpus": cpus, "pages": pages, "level": level, "footprint": footprint}
        found, notes = [], []
        for op in ops:
            try:
                found.append(ceiling_for(self._ceilings, run=self._run, op=op, **asked))
            except NotComparable as error:
                notes.append(error.args[0])
        best = max(found, key=lambda ceiling: ceiling.median, default=None)
        if best and best.median <= 0:
            return None, f"its {best.probe.op} ceiling is {best.median:g}"
        return best, "" if best else notes[0]

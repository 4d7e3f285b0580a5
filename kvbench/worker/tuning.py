"""The tuner: chooses the schedule of points that ask for none, by timing presets on the memory of
the first point of a class.

for heat in heats:
    for round in rounds:
        for preset in shuffled(presets): a sample of a few milliseconds    # taken by worker/loop.py
    the default and the presets near the fastest go on, unless the choice is clear already
the ratios of each round join those of earlier runs; model/tuning.py says which preset follows
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import TypeGuard

from kvbench.grouping import grouped
from kvbench.model import Machine, Tuned, choose, pooled, quotients
from kvbench.model.tuning import Ratios, called
from kvbench.plan.classes import class_of, near_memory, tunable
from kvbench.worker.bench import Bench
from kvbench.worker.decoding import Decoding
from kvbench.worker.loop import Program, rounds

_Make = Callable[[str, str], Program]  # from a name and a schedule
HEATS, ROUNDS = 3, 7
SECONDS = 0.004  # of a sample
NEAR = math.log(1.05)  # slower than the fastest by more: does not go on


class Tuner:
    """Chooses schedules. `evidence`: of earlier runs, by class; None if nothing is tuned. `chosen`:
    the run's presets by class.
    """

    def __init__(
        self,
        machine: Machine,
        evidence: Mapping[str, Ratios] | None,
        chosen: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._machine, self._evidence, self._chosen = machine, evidence, dict(chosen)
        self._taken: list[Tuned] = []

    def choose(self, bench: Bench, presets: Sequence[str] = (), of: str = "") -> None:
        """Set the bench's schedule to one of `presets`, or of all. `of`: whose choice, if not
        everybody's.
        """
        if self._tunes(bench):
            parts = *class_of(bench.point, bench.needs, self._machine), *filter(None, [of])
            bench.ran = self._best(
                parts, bench.under, bench.ran, presets or bench.room.library.words("schedule")
            )

    def choose_far(self, bench: Bench) -> None:
        """Set the schedule of the bench's copies in memory, if any. Called before choose()."""
        point, needs = bench.point, bench.needs
        if self._tunes(bench) and near_memory(point, needs, self._machine):
            parts = class_of(point, needs, self._machine, far=True)
            presets = bench.room.library.words("schedule")
            bench.far_schedule = self._best(parts, bench.rotated, bench.ran, presets)

    def _tunes(self, bench: Bench) -> TypeGuard[Decoding]:
        """Whether the tuner tunes this bench: a decode, or a step, which has all that is used
        here.
        """
        return self._evidence is not None and bool(bench.ran) and tunable(bench.point)

    def _best(
        self, parts: tuple[str, ...], program: _Make, default: str, presets: Sequence[str]
    ) -> str:
        name = called(parts)
        if name not in self._chosen:
            seen = ratios(program, default, presets)
            choice = choose(pooled((self._evidence or {}).get(name, {}), seen), default)
            self._taken.append(Tuned(name, parts, choice, seen))
            self._chosen[name] = choice.preset
        return self._chosen[name]

    def taken(self) -> tuple[Tuned, ...]:
        """What was measured since the last call."""
        found, self._taken = tuple(self._taken), []
        return found


def ratios(program: _Make, default: str, presets: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """By preset: log of its time over the default's, round by round."""
    programs = {preset: program(preset, preset) for preset in presets}
    found: dict[str, list[float]] = {preset: [] for preset in presets}
    left = list(presets)
    for heat in range(HEATS):
        samples = rounds([programs[preset] for preset in left], ROUNDS, SECONDS, heat)
        taken = grouped((sample.program, sample) for sample in samples)
        for preset, own in taken.items():
            found[preset] += map(math.log, quotients(own, taken[default]))
        middle = {preset: median(values) if values else 0.0 for preset, values in found.items()}
        best = min(middle.values())
        left = [preset for preset in left if preset == default or middle[preset] < best + NEAR]
        ahead = [preset for preset in left if preset != default]
        if not ahead or (
            len(ahead) == 1 and best < -NEAR and max(found[ahead[0]], default=0.0) < 0
        ):
            break
    return {preset: tuple(values) for preset, values in found.items()}

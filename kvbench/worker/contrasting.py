"""A visit of a contrast: its points in the same rounds, each in a room of its own."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from kvbench.machine.disturbances import Disturbed
from kvbench.model import Contrast, Job, Record
from kvbench.model.contrast import value
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground
from kvbench.worker.loop import rounds
from kvbench.worker.room import Room
from kvbench.worker.tuning import Tuner


def record(
    contrast: Contrast,
    job: Job,
    ground: Ground,
    answers: Answers,
    tuner: Tuner,
    seed: int,
    watch: Callable[[], Disturbed],
) -> Record:
    """Its programs are the points, each by its value of the factor."""
    benches: dict[str, Bench] = {}
    with ExitStack() as owned:
        owned.callback(ground.leave, range(1, len(contrast.points)))
        for place, point in enumerate(contrast.points):
            room = owned.enter_context(Room(point, ground, place=place))
            benches[value(point, contrast.factor)] = bench = owned.enter_context(Bench(point, room, answers, seed))
            tuner.choose(bench)
        programs = [replace(bench.own, name=name, memory=bench.room.place) for name, bench in benches.items()]
        error = max(bench.verify() for bench in benches.values())
        taken = [
            replace(sample, pass_seconds=())
            for sample in rounds(programs, job.plan.samples, job.plan.sample_time, seed, watch=watch)
        ]
        for name, bench in benches.items():
            least = min(sample.passes for sample in taken if sample.program == name)
            error = max(error, bench.verify_left(least), bench.verify_changed())
        return Record(
            launch=job.launch,
            point=contrast,
            samples=tuple(taken),
            traffic={name: bench.own.traffic() for name, bench in benches.items()},
            memory={},
            max_abs_err=error,
        )

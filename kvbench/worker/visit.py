"""A visit of one point: choose a schedule, verify, measure beside the witnesses, verify again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from statistics import median
from typing import Any

from kvbench.apart import Ended, apart
from kvbench.errors import KvbenchError, Refused, WrongAnswer
from kvbench.machine import describe
from kvbench.machine.placement import neighbours
from kvbench.model import NEIGHBOUR, Job, Point, Record, Sample, Traffic, tails
from kvbench.model.chases import SECONDS
from kvbench.model.point import Visited
from kvbench.model.tuning import Ratios
from kvbench.native import library_of
from kvbench.plan.needs import needs_here
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.chasing import Chasing, is_chased
from kvbench.worker.foreign import bench_of
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program
from kvbench.worker.steproom import room_of
from kvbench.worker.tuning import Tuner

PATIENCE = 60.0  # seconds that a plug-in may take, beyond its samples and its memory
FAILURES = (KvbenchError, MemoryError)  # a failure of one point does not stop the others
# Samples of a round, to limit a plug-in's time: several times the real number.
_SAMPLES, _CHASES = 40, 100
_PREPARED = 40e6  # bytes of memory a second, at least, that are filled and checked


def visit(
    point: Point,
    samples: int,
    sample_time: float,
    evidence: Mapping[str, Ratios] | None = None,
    beside: bool = False,
    plugin: tuple[str, ...] = (),
) -> Record:
    """Visit one point in depth: with all witnesses, and with its stages. evidence: as in Tuner."""
    machine = describe()
    needed = needs_here((point,), machine)[point]
    with (
        Ground(library_of("", plugin), machine) as ground,
        room_of(point, needed, ground) as room,
        bench_of(point, needed, room, Answers()) as bench,
    ):
        if beside and not neighbours(machine, point.cpus):
            raise Refused(
                "the point leaves no core of its nodes free for a neighbour", "use fewer --threads"
            )
        tuner = Tuner(machine, evidence)
        found = record(bench, tuner, samples, sample_time, beside, methodcaller("more"))
        return replace(found, stage_share=bench.stages(), tuned=tuner.taken())


def record(
    bench: Bench,
    tuner: Tuner,
    samples: int,
    sample_time: float,
    beside: bool = False,
    extra: Callable[[Bench], Iterable[Program]] = lambda bench: (),
    **how: Any,
) -> Record:
    """Take `samples` rounds of about `sample_time` seconds a sample, and make a record. beside:
    with a neighbour, if there is room. extra: programs besides the bench's own. how: more arguments
    of rounds().
    """
    tuner.choose_far(bench)
    tuner.choose(bench)
    neighbour = bench.neighbour() if beside else None
    programs = [*bench.programs, *extra(bench)]
    if neighbour:  # samples of the point while the neighbour streams memory
        programs.append(replace(bench.own, name=NEIGHBOUR, load=neighbour))
    chasing = Chasing(bench) if is_chased(bench.point) else None
    if chasing:
        programs += chasing.programs(sample_time)
    taken, error = bench.measured(programs, samples, sample_time, **how)
    traffic = {program.name: program.traffic() for program in programs}
    found = told(bench, taken, traffic, error)
    return replace(found, chase=chasing.facts) if chasing else found


def told(
    bench: Bench,
    taken: Sequence[Sample],
    traffic: Mapping[str, Traffic],
    error: float,
) -> Record:
    """A record of the samples. traffic: of one pass, by program."""
    beside = [sample.load for sample in taken if sample.program == NEIGHBOUR]
    return Record(
        launch=0,
        point=bench.point,
        samples=tuple(taken),
        tails=tails(taken),
        neighbour=median(beside) if beside else 0.0,
        traffic=dict(traffic),
        core_level=bench.core_level,
        max_abs_err=error,
        ran=bench.ran,
        **bench.room.facts(bench.point, bench.own.traffic()),
    )


def kept(found: Record, launch: int) -> Record:
    """The record as a launch keeps it: single passes are summed up by their tails."""
    bare = tuple(replace(sample, pass_seconds=()) for sample in found.samples)
    return replace(found, launch=launch, samples=bare)


def failed(job: Job, point: Visited, error: Exception) -> Record:
    short = isinstance(error, MemoryError)
    return Record(job.launch, point, (), {}, {}, error=str(error) or "out of memory", short=short)


def visit_plugin(
    point: Point,
    samples: int,
    sample_time: float,
    plugin: Sequence[str],
    beside: bool = False,
    patience: float | None = None,
) -> Record:
    """visit() for a plug-in's kernel, in a process of its own. patience: seconds that it may take
    in all.
    """
    if patience is None:
        prepared = needs_here((point,), describe())[point].memory / _PREPARED
        each = _SAMPLES * sample_time + is_chased(point) * _CHASES * SECONDS
        patience = round(PATIENCE + samples * each + prepared)
    try:
        return apart(
            visit, point, samples, sample_time, None, beside, tuple(plugin), patience=patience
        )
    except Ended as end:
        raise WrongAnswer(
            f"the plug-in's kernel {point.kernel} failed: its process {end.how}",
            f"kvbench verify --plugin {' --plugin '.join(plugin)} says in which case",
        ) from None

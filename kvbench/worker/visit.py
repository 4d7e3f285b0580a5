"""One point in depth: verify, measure beside every witness there is, verify again."""

from collections.abc import Callable, Iterator

from kvbench.model import Point, Sample, Visit
from kvbench.native import Library, default_library
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground
from kvbench.worker.loop import Program, rounds
from kvbench.worker.room import Room


def visit(
    point: Point,
    samples: int,
    seconds: float,
    progress: Callable[[Sample], None] = lambda sample: None,
    library: Library | None = None,
) -> Visit:
    """`samples` rounds of about `seconds` per sample."""
    with (
        Ground(library or default_library()) as ground,
        Room(point, ground) as room,
        Bench(point, room, Answers()) as bench,
    ):
        programs = [*bench.programs, *more(bench)]
        error = bench.verify()
        taken = []
        for sample in rounds(bench.team, programs, samples, seconds):
            taken.append(sample)
            progress(sample)
        own = next(sample.passes for sample in taken if sample.program == bench.own.name)
        error = max(error, bench.verify_left(own))
        return Visit(
            point=point,
            traffic={program.name: program.traffic() for program in programs},
            samples=tuple(taken),
            stage_share=_stages(bench),
            max_abs_err=error,
            layers=room.layers,
            slice_bytes=room.slice_bytes,
            memory=room.memory,
        )


def more(bench: Bench) -> Iterator[Program]:
    """Read ceilings: of the point's footprint, and of memory where a cache may help that. The other kind of stores."""
    if bench.stores and bench.point.op == "bulk":
        yield Program("other", bench.stored(bench.point.variant != "nt"), bench.between)
    yield from bench.reads("ceiling", bench.room.slices, bench.between)
    if not bench.stores:
        if bench.room.slices.size < bench.far_bytes:
            yield from bench.reads("dram", bench.far)
        yield bench.fma()


def _stages(bench: Bench) -> tuple[float, ...]:
    """Shares of QK, softmax and PV from a run of its own: reading the clock between them costs a little. None where the
    kernel does not tell them apart."""
    if bench.stores:
        return ()
    tasks = bench.staged().tasks
    shares = bench.team.run(*tasks, passes=len(tasks)).stage_share
    return shares if any(shares) else ()

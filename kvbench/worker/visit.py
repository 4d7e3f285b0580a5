"""A visit: verify, measure, verify again. A wrong answer is an error, never a number."""

from collections.abc import Callable

import numpy as np

from kvbench.errors import WrongAnswer
from kvbench.model import Point, Sample, Visit
from kvbench.native import Library
from kvbench.oracle import attention, tolerance
from kvbench.worker.bench import Bench
from kvbench.worker.loop import rounds


def visit(
    point: Point,
    samples: int,
    seconds: float,
    progress: Callable[[Sample], None] = lambda sample: None,
    library: Library | None = None,
) -> Visit:
    """`samples` rounds of about `seconds` per sample."""
    with Bench(point, library) as bench:
        error = _verify(bench)
        taken = []
        for sample in rounds(bench.team, bench.programs, samples, seconds):
            taken.append(sample)
            progress(sample)
        error = max(error, _verify(bench))
        return Visit(
            point=point,
            traffic={program.name: program.traffic() for program in bench.programs},
            samples=tuple(taken),
            stage_share=_stages(bench),
            max_abs_err=error,
            layers=bench.layers,
            slice_bytes=bench.slice_bytes,
            memory=bench.arena.inspect(),
        )


def _stages(bench: Bench) -> tuple[float, ...]:
    """Shares of QK, softmax and PV from a run of its own: reading the clock between them costs a little."""
    if bench.stores or bench.point.variant == "perhead":
        return ()
    return bench.team.run(*bench.staged.tasks, passes=len(bench.staged.tasks)).stage_share


def _verify(bench: Bench) -> float:
    """The largest error of the first and the last slice."""
    check = _verify_store if bench.stores else _verify_decode
    return max(check(bench, layer) for layer in {0, bench.layers - 1})


def _verify_decode(bench: Bench, layer: int) -> float:
    point, cache, out = bench.point, bench.caches[layer], bench.out[layer]
    out[:] = np.nan
    bench.team.run(bench.programs[0].tasks[layer])
    k, v = cache.numpy()
    wanted = attention(bench.q, k, v, cache.lengths, cache.window)
    error = float(np.abs(out - wanted).max())
    if not error <= tolerance(v, point.shape.context):
        raise WrongAnswer(f"{point.kernel} is off by {error:.3g}", "run kvbench verify, and report what it says")
    return error


def _verify_store(bench: Bench, layer: int) -> float:
    """What was stored reads back as the source, up to the format's own rounding."""
    point, cache, source = bench.point, bench.caches[layer], bench.sources[layer]
    bench.team.run(bench.programs[0].tasks[layer])
    first = int(cache.lengths[0])
    cache.lengths[:] = point.shape.context
    k, v = cache.numpy()
    cache.lengths[:] = first
    error = float(np.abs(np.stack([k, v])[:, :, first:] - source).max())
    if not error <= np.abs(source).max() / 128:
        raise WrongAnswer(
            f"{point.kernel} stores rows off by {error:.3g}", "run kvbench verify, and report what it says"
        )
    return error

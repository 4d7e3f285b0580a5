"""Records of made-up whole steps with planted times of their parts, alone and within the step."""

from dataclasses import replace
from itertools import product

from kvbench.model import PACE, Point, Record, Sample, Shape
from kvbench.model.program import PARTS
from kvbench.regime import classify
from tests.made_run import DECODE, MACHINE, MIB, RUN, traffic

LLAMA = Shape(
    layers=32, batch=1, q_heads=32, kv_heads=8, head_dim=128, context=4096, capacity=4096, window=0
)
STEP = replace(DECODE, op="step", shape=LLAMA, cpus=(0, 1, 2, 3))
WEIGHTS = 64 * MIB  # of a layer
WITH = replace(STEP, between=WEIGHTS)
RATE = 20.0  # GB/s of plain reads of memory
APPENDED = 2e-5  # seconds of all appends of a step
WIDE = {"f32": 4, "f16": 2, "i8": 1}  # bytes of an element


def at(step: Point, context: int, **facts) -> Point:
    shape = replace(step.shape, context=context, capacity=context, **facts)
    return replace(step, shape=shape)


def moved(step: Point) -> dict[str, float]:
    """Bytes of the appends, decodes and weights of all layers."""
    shape = step.shape
    row = 2 * shape.kv_heads * shape.head_dim * WIDE[step.dtype]
    stored = shape.layers * row * shape.batch
    read = shape.layers * row * sum(shape.held)
    return dict(zip(PARTS, (stored, read, shape.layers * step.between), strict=True))


def alone(step: Point, rate: float = 0.9 * RATE) -> dict[str, float]:
    """Seconds of each part alone, with reads at this many GB/s."""
    bytes_of = moved(step)
    decodes, weights = (bytes_of[name] / rate / 1e9 for name in PARTS[1:])
    found = dict(zip(PARTS, (APPENDED, decodes, weights), strict=True))
    return {name: seconds for name, seconds in found.items() if seconds}


def step(
    launch: int,
    point: Point = WITH,
    times: dict[str, float] | None = None,
    rounds: int = 3,
    wobble: float = 0.01,
    uneven: float = 1.0,
    passes: int = 4,
) -> Record:
    """Records of a step. `times`: for each part, its time within the step over its time alone
    (default 1).

    Rounds and launches vary, and all programs of one vary alike. In every other launch the parts
    vary against the step by the factor `uneven`.
    """
    parts, times = alone(point), times or {}
    shared = uneven ** (1 if launch % 2 else -1)
    within = {name: seconds * times.get(name, 1.0) * shared for name, seconds in parts.items()}
    whole = sum(within.values())
    shares = tuple(within.get(name, 0.0) / whole for name in PARTS)
    bytes_of = {name: count for name, count in moved(point).items() if name in parts}
    total = sum(bytes_of.values())
    each = {"point": whole, **parts, "memory": total / RATE / 1e9, PACE: 1e-3}
    samples = []
    for number, (name, seconds) in product(range(rounds), each.items()):
        drift = 1 + wobble * ((number + launch) % 3)
        taken = (seconds * drift,) * passes if name == "point" else ()
        samples.append(
            Sample(name, number, passes, seconds * drift * passes, taken, 0.01, 0, 0,
                   sample_time=seconds * drift * passes,
                   shares=shares if name == "point" else ())
        )  # fmt: skip
    counts = {"point": float(total), **bytes_of, "memory": float(total), PACE: 0.0}
    facts = {
        "slices": point.shape.layers,
        "slice_bytes": int(total / point.shape.layers),
        "footprint": float(total),
        "level": classify(MACHINE, point.cpus, total).word,
        "ran": "stream",
        "run": RUN,
    }
    own = {
        name: traffic(count, 1e9 if name in ("point", PACE) else 0.0)
        for name, count in counts.items()
    }
    return Record(launch, point, tuple(samples), own, {}, **facts)

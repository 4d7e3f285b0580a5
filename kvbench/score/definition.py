"""What a version of the score covers: the workload of suites/score.toml, the bytes that count, and
the rules. Kernels and tuning are not part of it.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from kvbench.model import Point, Shape
from kvbench.model.point import SHAPE
from kvbench.plan.needs import slice_bytes
from kvbench.regime import FAR_BYTES, THRESHOLDS
from kvbench.suite import find, model

VERSION = "1.0"  # increase it whenever digest() changes; a test checks that
SUITE = "score"
WIDTHS = (16, 8, 4)  # bits of an element, without scales
# sequences and tokens of the second line, which is not part of the score
LONGER = ((8, 4096), (1, 32768))
LONGER_LAUNCHES = 3
LOADED_LAUNCHES = 3  # of the third line, which is not part of the score either
_FLOAT = 4  # bytes of an element of queries and outputs


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits of a valid run: a matter of judgement."""

    launches: int = 10
    # half of the interval of the tuned tokens per second over their median, for each width
    half_width: float = 0.05
    disturbed: float = 0.25  # share of a launch's samples that were disturbed by other work
    # of the reads beside a point in other launches; a slower launch had less memory bandwidth
    slower: float = 2 / 3
    # the reads beside a point, over the run's best reads of memory
    reads: tuple[float, float] = (0.5, 1.25)
    # share by which a pass's bytes may differ from the counted ones, such as by page tables
    counted: float = 0.01


RULES = Rules()


def workload() -> tuple[str, int, int]:
    """The model, the tokens of a sequence, and how many sequences there are."""
    axes = find(SUITE).grids[0]
    (name,), (context,) = axes["model"], axes["context"]
    return name, context, 1


@cache
def geometry() -> tuple[int, Shape]:
    """Layers of the model, and the shape of a point, except its slices in rotation."""
    name, context, batch = workload()
    known = model(name)
    return known.layers, Shape(
        batch, known.q_heads, known.kv_heads, known.head_dim, context, context, 0, 0
    )


def counted(dtype: str, shape: Shape) -> int:
    """Bytes of a pass that count: K and V of every token with scales, and a query and an output of
    each head.
    """
    rows = slice_bytes(
        shape.kv_heads, shape.head_dim, shape.context, shape.batch, dtype=dtype, pad=0
    )
    return rows + 2 * shape.batch * shape.q_heads * shape.head_dim * _FLOAT


def width(point: Point) -> int:
    """Bits of an element of the point's cache, if in WIDTHS; else 0."""
    return bits(point.dtype)


@cache
def bits(dtype: str) -> int:
    """Bits of an element of a number format, if in WIDTHS; else 0."""
    shape = geometry()[1]
    whole = 8 * slice_bytes(shape.kv_heads, shape.head_dim, shape.context, 1, dtype=dtype, pad=0)
    each = whole / (2 * shape.kv_heads * shape.head_dim * shape.context)
    return next((bits for bits in WIDTHS if bits <= each < bits + 1), 0)


def widths() -> dict[str, int]:
    """Bits of an element by number format, of the formats that a score may use."""
    return {dtype: bits(dtype) for grid in find(SUITE).grids for dtype in grid["dtype"]}


@cache
def digest() -> str:
    """A digest of all that a version covers."""
    suite, (layers, shape) = find(SUITE), geometry()
    grids = [
        {name: list(map(str, values)) for name, values in grid.items()} for grid in suite.grids
    ]
    dtypes = sorted({dtype for grid in suite.grids for dtype in grid["dtype"]})
    facts: dict[str, Any] = {
        "version": VERSION,
        "workload": [
            grids,
            suite.samples,
            suite.sample_time,
            layers,
            # later fields have their default, or occur in the grids
            {each.name: getattr(shape, each.name) for each in SHAPE if not each.later},
            THRESHOLDS.dram,
            FAR_BYTES,
        ],
        "bytes": {dtype: counted(dtype, shape) for dtype in dtypes},
        "rules": asdict(RULES),
        "widths": WIDTHS,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]

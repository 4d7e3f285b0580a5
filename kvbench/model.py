"""The values that pass between the parts: frozen, and without behaviour beyond what they say about themselves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of the library's registry. A word that does not apply is "-"."""

    op: str
    variant: str
    layout: str
    dtype: str
    isa: str
    runnable: bool
    about: str

    @property
    def id(self) -> str:
        return ".".join((self.op, self.variant, self.layout, self.dtype, self.isa))


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one pass of a task moves, in bytes, and computes. `compulsory` is what rates are formed with."""

    flops: float
    compulsory: float
    issued: float
    line: float
    kv: float
    scales: float
    table: float
    ai: float


@dataclass(frozen=True, slots=True)
class Times:
    """One run of a team: seconds from the common start to the end of the last pass, and how they came about."""

    seconds: float
    pass_seconds: tuple[float, ...]
    thread_seconds: tuple[float, ...]
    stage_share: tuple[float, ...]
    switches: int
    faults: int


@dataclass(frozen=True, slots=True)
class Shape:
    """One decode step. Every sequence holds `context` tokens; window 0 attends to all of them."""

    layers: int
    batch: int
    q_heads: int
    kv_heads: int
    head_dim: int
    context: int
    capacity: int
    window: int = 0

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Point:
    """What is measured: a kernel on a shape, on these CPUs (one thread each), pages, residency and prefetch scheme."""

    op: str
    variant: str
    layout: str
    dtype: str
    isa: str
    shape: Shape
    cpus: tuple[int, ...]
    pages: str
    residency: str
    prefetch: str
    distance: int
    scale: str
    inner: str
    block_tokens: int
    shuffle: int | None
    pad: int | None
    deterministic: bool

    @property
    def kernel(self) -> str:
        return ".".join((self.op, self.variant, self.layout, self.dtype, self.isa))


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed measurement of a program: `passes` passes in `seconds`. A round measures every program once."""

    program: str
    round: int
    passes: int
    seconds: float
    pass_seconds: tuple[float, ...]
    thread_seconds: tuple[float, ...]
    switches: int
    faults: int


@dataclass(frozen=True, slots=True)
class Visit:
    """All samples of a point and of what it is compared with, and what was found out about it on the way."""

    point: Point
    traffic: dict[str, Traffic]  # of one pass, by program
    samples: tuple[Sample, ...]
    stage_share: tuple[float, ...]  # QK, softmax, PV; empty where the op has none
    max_abs_err: float
    layers: int
    slice_bytes: int
    memory: dict[str, int]  # as Arena.inspect()

"""What the library offers, what a pass of it moves, and how long passes took."""

from dataclasses import dataclass


def kernel_id(op: str, variant: str, layout: str, dtype: str, isa: str) -> str:
    """A word that does not apply is "-"."""
    return f"{op}.{variant}.{layout}.{dtype}.{isa}"


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
        return kernel_id(self.op, self.variant, self.layout, self.dtype, self.isa)


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

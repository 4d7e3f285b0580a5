"""What the library offers, what a pass of it moves, and how long passes took."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Number, about


def kernel_id(op: str, variant: str, layout: str, dtype: str, isa: str) -> str:
    """A word that does not apply is "-"."""
    return f"{op}.{variant}.{layout}.{dtype}.{isa}"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of the library's registry. A word that does not apply is "-"."""

    op: Annotated[str, about("what it does: decode, append, bulk, ...")]
    variant: Annotated[str, about("the way of doing it; - where there is but one")]
    layout: Annotated[str, about("of the cache; - where there is none")]
    dtype: Annotated[str, about("number format of the cache; - where there is none")]
    isa: Annotated[str, about("tier of the instruction set")]
    runnable: Annotated[bool, about("whether this CPU runs it")]
    about: Annotated[str, about("one line on it")]

    @property
    def id(self) -> str:
        return kernel_id(self.op, self.variant, self.layout, self.dtype, self.isa)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one pass of a task moves, in bytes, and computes. `compulsory` is what rates are formed with."""

    flops: Number
    compulsory: Number
    issued: Number
    line: Number
    kv: Number
    scales: Number
    table: Number
    ai: Number


@dataclass(frozen=True, slots=True)
class Times:
    """One run of a team: seconds from the common start to the end of the last pass, and how they came about."""

    seconds: float
    pass_seconds: tuple[float, ...]
    thread_seconds: tuple[float, ...]
    stage_share: tuple[float, ...]
    switches: int
    faults: int

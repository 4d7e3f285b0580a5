"""How fast memory and L3 are read: the states that memory was met in, and L3 beside it."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.answer import Answer, Reason
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Visits in which memory was about equally fast."""

    visits: Annotated[int, about("how many")]
    gbps: Annotated[float, about("GB/s: median of their medians")]
    low: Annotated[float, about("GB/s: nine visits of ten are above it")]
    high: Annotated[float, about("GB/s: nine visits of ten are below it")]


@dataclass(frozen=True, slots=True)
class Reads:
    """`memory` is of the first of `states`, the usual one."""

    memory: Annotated[Answer, about("GB/s of plain reads of memory by the workload's threads")]
    states: Annotated[tuple[MemoryState, ...], about("one, or two; the usual one first")]
    visits: Annotated[int, about("in which memory was read")]
    l3: Annotated[Answer, about("times as fast as memory, plain reads of a slice in L3")]
    l3_rate: Annotated[Answer, about("GB/s of these reads of L3")]
    beside: Annotated[Answer, about("GB/s of memory in these same rounds")]


def reads(tables: Tables, page: Workload) -> Reads:
    none = Answer.untested("memory", Reason.NOT_MEASURED)
    return Reads(none, (), 0, none, none, none)

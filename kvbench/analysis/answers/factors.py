"""Which layout, variant, block, order and pages; and how many threads: points that differ in that
alone, timed side by side.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.answer import Answer
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Choice:
    """One factor, of points that are else equal, from one level. `values`: every value of the
    factor, the fastest first. Without a clear lead the first is one of `level`.
    """

    factor: Annotated[str, about("what they differ in")]
    op: Annotated[str, about("decode, append or bulk")]
    regime: Annotated[str, about("what feeds them")]
    dtype: Annotated[str, about("number format of the points; or empty where they have several")]
    context: Annotated[int, about("tokens of every sequence")]
    values: Annotated[tuple[str, ...], about("of the factor, fastest first")]
    level: Annotated[tuple[str, ...], about("those that none clearly leads")]
    leads: Annotated[
        tuple[Answer, ...], about("times as fast as each of the others, the first over it")
    ]
    beside: Annotated[bool, about("whether they were timed in the same rounds")]


@dataclass(frozen=True, slots=True)
class Factors:
    choices: Annotated[tuple[Choice, ...], about("by factor, that of the page's workload first")]
    threads: Annotated[Answer | None, about("times as fast as by fewer threads, side by side")]


def factors(tables: Tables, page: Workload) -> Factors:
    return Factors((), None)

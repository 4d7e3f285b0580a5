"""Which dtype decodes fastest, and what limits each: the fastest kernel of each dtype, timed side
by side in one line.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.answer import Answer, Reason
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Decode:
    """The fastest kernel of a dtype."""

    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("of the cache")]
    variant: Annotated[str, about("the way of doing it")]
    isa: Annotated[str, about("instruction set")]
    point: Annotated[str, about("its name")]
    speed: Annotated[Answer, about("tokens per second of the workload")]
    rate: Annotated[Answer, about("GB/s of compulsory bytes")]
    lead: Annotated[Answer, about("times as fast as the fastest, side by side")]
    memory: Annotated[Answer, about("share of plain reads of memory")]
    rows: Annotated[Answer, about("share of reads of its own rows")]
    core: Annotated[Answer, about("share of its core speed")]
    limit: Annotated[Answer, about("what limits it; `reason` is the word")]
    format_errors: Annotated[
        dict[str, float],
        about("share of the output that the format loses, by the keys that were drawn"),
    ]
    kernel_error: Annotated[
        float | None, about("absolute: largest error of an output, on the stored codes")
    ]


@dataclass(frozen=True, slots=True)
class Decodes:
    """`rows`: fastest first. `fastest`: its subject has several points where these are level."""

    fastest: Annotated[Answer, about("tokens per second; level ones are in its subject")]
    next: Annotated[Answer | None, about("times as fast as the first that is clearly slower")]
    rows: Annotated[tuple[Decode, ...], about("by dtype, fastest first")]


def decodes(tables: Tables, page: Workload) -> Decodes:
    return Decodes(Answer.untested("fastest", Reason.NO_MODEL), None, ())

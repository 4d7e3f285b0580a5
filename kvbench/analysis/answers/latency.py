"""What a load of memory takes beside a KV scan, and what that costs the scan: answers of points
beside which a thread chases.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.analysis.answers.answer import Answer, Figure
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Step:
    """A chase beside a load that is paced to a share of its rate."""

    share: Annotated[int, about("%: of its rate without waits, that the load is paced to")]
    load: Annotated[Figure, about("GB/s that the load moved meanwhile")]
    gbps: Annotated[Figure, about("GB/s that load and chase moved together")]
    ns: Annotated[Figure, about("ns of a load of the chase: half of its steps take no longer")]
    tail: Annotated[Figure, about("ns of a load of the chase: 95 % of its steps take no longer")]
    times: Annotated[Figure, about("times the idle latency, of the same rounds")]


@dataclass(frozen=True, slots=True)
class Curve:
    """`steps`: from few GB/s to many."""

    load: Annotated[str, about("read or copy, plain ones of memory; or the op of the point")]
    steps: Annotated[tuple[Step, ...], about("by the share of its rate")]
    falls: Annotated[tuple[int, ...], about("%: shares whose latency is surely below that before")]


@dataclass(frozen=True, slots=True)
class Place:
    """A point beside which a thread chases."""

    point: Annotated[str, about("its name")]
    op: Annotated[str, about("what it does: decode or append")]
    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("of the cache")]
    variant: Annotated[str, about("the way of doing it")]
    model: Annotated[str, about("whose layers they are; empty where no model is known")]
    context: Annotated[int, about("tokens that every sequence holds")]
    threads: Annotated[int, about("that decode")]
    chase: Annotated[str, about("where the chase runs: node, remote or sibling")]
    cpu: Annotated[int, about("the CPU that chases")]
    bytes: Annotated[int, about("bytes of its random cycle")]
    few: Annotated[bool, about("whether so few cores move memory that they do not saturate it")]
    idle: Annotated[Figure, about("ns of a load while the others sleep")]
    spin: Annotated[Figure, about("ns of a load while the others spin in L1")]
    drift: Annotated[Figure, about("times: the idle latency after a round over that before it")]
    curves: Annotated[tuple[Curve, ...], about("plain reads, plain copies, and the point itself")]
    busy: Annotated[
        Answer,
        about(
            "times the idle latency, where plain reads move 90 % of what they can beside a chase"
        ),
    ]
    alike: Annotated[
        Answer,
        about("latency beside the point over that beside plain reads that move as much"),
    ]
    slowed: Annotated[
        Answer, about("what the chase costs the point: its rate beside it over that without one")
    ]


@dataclass(frozen=True, slots=True)
class Idle:
    """Of a chase whose cycle lies in that level, by probes of their own."""

    level: Annotated[str, about("L2, L3 or DRAM")]
    bytes: Annotated[int, about("bytes of the cycle")]
    ns: Annotated[Figure, about("ns of a load")]


@dataclass(frozen=True, slots=True)
class Latency:
    """`places`: the page's workload first."""

    places: Annotated[tuple[Place, ...], about("points beside which a thread chases")] = ()
    idle: Annotated[tuple[Idle, ...], about("idle latency by level, of the chase's CPU")] = ()

    @property
    def first(self) -> Place:
        """Which the first screen is about."""
        return self.places[0]


def latency(tables: Tables, page: Workload) -> Latency:
    return Latency()

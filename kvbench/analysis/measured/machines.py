"""The profile of a machine: its hardware, whether it is fit for measuring, the ceilings of its own
probes, and the latency of memory beside a decode.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Annotated, Literal

from kvbench.analysis.measured.ceilings import WITHOUT_MEMORY, ceilings, value
from kvbench.analysis.measured.chases import Chased, chased
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.plateaus import Capacity, Plateau, capacities, corrections, plateaus
from kvbench.grouping import grouped
from kvbench.model import COMPUTE, PLAIN, Ceiling, Check, Machine, Point, Probe, Record
from kvbench.model.annotated import about
from kvbench.model.chases import OWN
from kvbench.regime import Window, corrected, suggestion, windows
from kvbench.units import counted, size

# every other op: GB/s
UNITS = dict.fromkeys(COMPUTE, "GFLOP/s") | {"latency": "ns", "clock": "GHz"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingRow(Probe):
    """A probe and what it reached."""

    run: Annotated[str, about("run that measured it: a ceiling is valid only within its run")]
    # a field here; a property of Probe
    threads: Annotated[int, about("number of threads")] = field()
    form: Annotated[str, about("form of the reads: plain, ahead, or a schedule")]
    level: Annotated[
        str, about("level that feeds such a footprint: L1, L2, L3, DRAM, mixed, unknown, or core")
    ]
    unit: Annotated[str, about("unit of median, low, high and samples", "GB/s", *UNITS.values())]
    median: Annotated[float, about("in `unit`: median of the launches' medians")]
    gbps: Annotated[float | None, about("GB/s: the same as median; null if the unit is another")]
    low: Annotated[float, about("in `unit`: lower end of the 99 % interval")]
    high: Annotated[float, about("in `unit`: upper end of the 99 % interval")]
    samples: Annotated[
        tuple[tuple[float, ...], ...], about("in `unit`: every sample, launch by launch")
    ]
    stable: Annotated[bool, about("whether the launches agree")]
    huge: Annotated[
        float | None, about("share of the memory that really is on huge pages; null without memory")
    ]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of times of the same rounds."""

    times: Annotated[float, about("ratio: estimate over launches")]
    low: Annotated[float, about("ratio: lower end of its interval")]
    high: Annotated[float, about("ratio: upper end of its interval")]

    @classmethod
    def of(cls, found: Estimate) -> "Ratio":
        return cls(found.median, found.low, found.high)


@dataclass(frozen=True, slots=True)
class IdleRow:
    """A chase while the CPUs of the decode beside it sleep, and a summary of the chase beside all
    loads.
    """

    point: Annotated[str, about("name of the decode that the chase is beside")]
    kernel: Annotated[str, about("kernel of that decode: op.variant.layout.dtype.isa")]
    threads: Annotated[int, about("threads that decode, read or copy")]
    few: Annotated[bool, about("whether there are too few cores to saturate memory")]
    cpu: Annotated[int, about("the CPU that chases")]
    bytes: Annotated[int, about("bytes: its random cycle")]
    huge: Annotated[float, about("share of that cycle that really is on huge pages")]
    ns: Annotated[float, about("ns: latency; 50 % of the steps take no longer")]
    low: Annotated[float, about("ns: lower end of its interval")]
    high: Annotated[float, about("ns: upper end of its interval")]
    tail: Annotated[float, about("ns: latency; 95 % of the steps take no longer")]
    spin: Annotated[float, about("ns: latency while the decode's CPUs spin in L1")]
    busy: Annotated[
        Ratio,
        about("latency while plain reads move 90 % of their highest rate, over idle latency"),
    ]
    alike: Annotated[
        Ratio, about("latency beside the decode over latency beside plain reads at the same GB/s")
    ]
    slowed: Annotated[Ratio, about("rate of the decode with the chase over its rate without it")]


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """A chase beside a load."""

    point: Annotated[str, about("name of the decode that the chase is beside")]
    load: Annotated[str, about("read or copy (plain ones of memory), or the kernel of the decode")]
    share: Annotated[int, about("%: share of its rate without waits that the load is paced to")]
    gbps: Annotated[float, about("GB/s: of load and chase together")]
    ns: Annotated[float, about("ns: latency; 50 % of the steps of the chase take no longer")]
    low: Annotated[float, about("ns: lower end of its interval")]
    high: Annotated[float, about("ns: upper end of its interval")]
    tail: Annotated[float, about("ns: latency; 95 % of the steps of the chase take no longer")]
    times: Annotated[float, about("ratio: ns over the idle latency of the same rounds")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineProfile:
    """What a machine is and what it can do. With --identify nothing is measured: preflight and
    ceilings are empty. Without --loaded, idle and loaded are empty, too.
    """

    version: Annotated[
        Literal[2],
        about(
            "version of this format; since 2 a ceiling has no `distance`; keys may be added,"
            " none is dropped"
        ),
    ] = 2
    run: Annotated[str, about("name of the run; empty if nothing was measured")]
    fingerprint: Annotated[str, about("digest of the hardware")]
    environment: Annotated[str, about("digest of the settings that an administrator can change")]
    topology: Annotated[Machine, about("the hardware")]
    preflight: Annotated[tuple[Check, ...], about("checks before the run, as in kvbench doctor")]
    ceilings: Annotated[tuple[CeilingRow, ...], about("results of the run's own probes")]
    idle: Annotated[tuple[IdleRow, ...], about("idle latency of memory, beside each decode")]
    loaded: Annotated[tuple[LoadedRow, ...], about("latency of memory beside each load")]
    capacities: Annotated[
        tuple[Capacity, ...],
        about("size that a cache of each level really has, on the largest CPU set"),
    ]
    plateaus: Annotated[
        tuple[Plateau, ...], about("ranges of footprints that are walked equally fast")
    ]
    windows: Annotated[tuple[Window, ...], about("footprints that each L3 feeds")]
    advice: Annotated[str, about("how to test L3 if this CPU set cannot; else empty")]

    @property
    def cpu_sets(self) -> list[tuple[int, ...]]:
        return sorted(
            {ceiling.cpus for ceiling in self.ceilings}, key=lambda cpus: (len(cpus), cpus)
        )


def profile(
    machine: Machine, checks: Sequence[Check] = (), records: Sequence[Record] = ()
) -> MachineProfile:
    """The profile of a machine; without records only its hardware. If measured capacities
    contradict the declared ones, levels follow the measured ones.
    """
    declared = ceiling_rows(records, machine)
    cpus = max((ceiling.cpus for ceiling in declared), key=len, default=machine.allowed)
    stairs = staircase(declared, cpus)
    held = capacities(*stairs, machine, cpus)
    sizes = corrections(held)
    seen = corrected(machine, sizes)
    idle, loaded = beside_loads(records, machine)
    return MachineProfile(
        run=declared[0].run if declared else "",
        fingerprint=machine.fingerprint,
        environment=machine.environment,
        topology=machine,
        preflight=tuple(checks),
        ceilings=ceiling_rows(records, seen) if sizes else declared,
        idle=idle,
        loaded=loaded,
        capacities=held,
        plateaus=plateaus(*stairs),
        windows=windows(seen, cpus),
        advice=suggestion(seen, cpus),
    )


def staircase(
    ceilings: Sequence[CeilingRow], cpus: tuple[int, ...]
) -> tuple[list[int], list[float]]:
    """Footprints in ascending order, with the rates of plain reads on these CPUs and on the usual
    kind of pages.
    """
    of = ("read", cpus, usual_pages(ceilings), PLAIN)
    rates = {c.bytes: c.median for c in ceilings if (c.op, c.cpus, c.pages, c.form) == of}
    return sorted(rates), [rates[count] for count in sorted(rates)]


def usual_pages(ceilings: Sequence[CeilingRow]) -> str:
    """The kind of pages with the most ceilings."""
    return next(iter(dict(Counter(c.pages for c in ceilings).most_common(1))), "")


def ceiling_rows(records: Iterable[Record], machine: Machine) -> tuple[CeilingRow, ...]:
    return tuple(map(ceiling_row, ceilings(records, machine)))


def ceiling_row(ceiling: Ceiling) -> CeilingRow:
    facts = asdict(ceiling)
    return CeilingRow(
        **facts.pop("probe"),
        **facts,
        threads=ceiling.probe.threads,
        unit=UNITS.get(ceiling.probe.op, "GB/s"),
        gbps=None if ceiling.probe.op in UNITS else ceiling.median,
    )


def beside_loads(
    records: Iterable[Record], machine: Machine
) -> tuple[tuple[IdleRow, ...], tuple[LoadedRow, ...]]:
    """The rows of points with a chase, in the order of their first visits."""
    visits = grouped((r.point, r) for r in records if isinstance(r.point, Point))
    found = list(chased(visits))
    idle = tuple(_idle(each, machine) for each in found)
    return idle, tuple(row for each in found for row in _loaded(each))


def _idle(found: Chased, machine: Machine) -> IdleRow:
    point, ns = found.point, found.idle.ns
    return IdleRow(
        point=point.name,
        kernel=point.kernel,
        threads=point.threads,
        few=found.few(machine),
        cpu=found.chase.cpu,
        bytes=found.chase.bytes,
        huge=found.chase.huge_bytes / found.chase.bytes,
        ns=ns.median,
        low=ns.low,
        high=ns.high,
        tail=found.idle.tail.median,
        spin=found.spin.ns.median,
        busy=Ratio.of(found.busy.times),
        alike=Ratio.of(found.alike.times),
        slowed=Ratio.of(found.slowed),
    )


def _loaded(found: Chased) -> Iterator[LoadedRow]:
    for (load, share), seen in found.loads.items():
        yield LoadedRow(
            point=found.point.name,
            load=found.point.kernel if load == OWN else load,
            share=share,
            gbps=seen.gbps.median,
            ns=seen.ns.median,
            low=seen.ns.low,
            high=seen.ns.high,
            tail=seen.tail.median,
            times=seen.times.median,
        )


def describe_record(record: Record) -> str:
    """A line such as "read of 32 KiB, 2 threads: 395 GB/s"."""
    probe = record.point
    assert isinstance(probe, Probe)
    walked = "" if probe.op in WITHOUT_MEMORY else f" of {size(probe.bytes)}"
    threads = counted(probe.threads, "thread")
    if record.error or not record.samples:
        return f"{probe.op}{walked}, {threads}: {record.error or 'no sample was taken'}"
    own = [value(record, sample) for sample in record.samples if sample.program == "point"]
    return f"{probe.op}{walked}, {threads}: {median(own):.3g} {UNITS.get(probe.op, 'GB/s')}"

"""The profile of a machine: who it is, whether it is fit to be measured, what its own probes
reached, and the latency of memory beside a decode.
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
    """What a probe reached, with the probe."""

    run: Annotated[str, about("the run that measured it: no ceiling stands for another's")]
    # a key of its own, where a probe has a property
    threads: Annotated[int, about("how many")] = field()
    form: Annotated[str, about("how it reads: plain, ahead, or as a schedule does")]
    level: Annotated[
        str, about("what feeds such a footprint: L1, L2, L3, DRAM, mixed, unknown, or core")
    ]
    unit: Annotated[str, about("of median, low, high and samples", "GB/s", *UNITS.values())]
    median: Annotated[float, about("in `unit`: of the medians of the launches")]
    gbps: Annotated[float | None, about("GB/s: the same; null where the unit is another")]
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
    """Of the same rounds."""

    times: Annotated[float, about("ratio: over launches")]
    low: Annotated[float, about("ratio: lower end of its interval")]
    high: Annotated[float, about("ratio: upper end of its interval")]

    @classmethod
    def of(cls, found: Estimate) -> "Ratio":
        return cls(found.median, found.low, found.high)


@dataclass(frozen=True, slots=True)
class IdleRow:
    """A chase while the CPUs of the decode beside it sleep; and what all its loads together say."""

    point: Annotated[str, about("the decode that the chase is beside, by its name")]
    kernel: Annotated[str, about("of the decode: op.variant.layout.dtype.isa")]
    threads: Annotated[int, about("that decode, read or copy")]
    few: Annotated[bool, about("whether the cores are too few to saturate memory")]
    cpu: Annotated[int, about("the CPU that chases")]
    bytes: Annotated[int, about("bytes of its random cycle")]
    huge: Annotated[float, about("share of it that really is on huge pages")]
    ns: Annotated[float, about("ns: latency; half of the steps take no longer")]
    low: Annotated[float, about("ns: lower end of its interval")]
    high: Annotated[float, about("ns: upper end of its interval")]
    tail: Annotated[float, about("ns: latency; 95 % of the steps take no longer")]
    spin: Annotated[float, about("ns: latency while the others spin in L1")]
    busy: Annotated[
        Ratio,
        about("latency where plain reads move 90 % of what they can beside it, over the idle one"),
    ]
    alike: Annotated[
        Ratio, about("latency beside the decode over that beside plain reads of the same GB/s")
    ]
    slowed: Annotated[Ratio, about("rate of the decode beside the chase over that without one")]


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """A chase beside a load."""

    point: Annotated[str, about("the decode that the chase is beside, by its name")]
    load: Annotated[str, about("read or copy, plain ones of memory; or the kernel of the decode")]
    share: Annotated[int, about("%: of its rate without waits, that the load is paced to")]
    gbps: Annotated[float, about("GB/s: of load and chase together")]
    ns: Annotated[float, about("ns: latency; half of the steps of the chase take no longer")]
    low: Annotated[float, about("ns: lower end of its interval")]
    high: Annotated[float, about("ns: upper end of its interval")]
    tail: Annotated[float, about("ns: latency; 95 % of the steps of the chase take no longer")]
    times: Annotated[float, about("ratio: ns over the idle latency of the same rounds")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineProfile:
    """Who a machine is and what it can do. With --identify nothing is measured: preflight and
    ceilings are empty. Without --loaded idle and loaded are empty, too.
    """

    version: Annotated[
        Literal[2],
        about("of this format, 2: a ceiling has no `distance`; keys may be added, none is dropped"),
    ] = 2
    run: Annotated[str, about("name of the run; empty where nothing was measured")]
    fingerprint: Annotated[str, about("digest of the hardware")]
    environment: Annotated[str, about("digest of what an administrator can change")]
    topology: Annotated[Machine, about("who the machine is")]
    preflight: Annotated[tuple[Check, ...], about("as kvbench doctor, before the run")]
    ceilings: Annotated[tuple[CeilingRow, ...], about("what the run's own probes reached")]
    idle: Annotated[tuple[IdleRow, ...], about("idle latency of memory, beside each decode")]
    loaded: Annotated[tuple[LoadedRow, ...], about("latency of memory beside each load")]
    capacities: Annotated[
        tuple[Capacity, ...], about("what a cache of each level holds, on the largest CPU set")
    ]
    plateaus: Annotated[
        tuple[Plateau, ...], about("neighbouring footprints that are walked equally fast")
    ]
    windows: Annotated[tuple[Window, ...], about("footprints that each L3 feeds")]
    advice: Annotated[str, about("how to test L3 where this CPU set cannot; else empty")]

    @property
    def cpu_sets(self) -> list[tuple[int, ...]]:
        return sorted(
            {ceiling.cpus for ceiling in self.ceilings}, key=lambda cpus: (len(cpus), cpus)
        )


def profile(
    machine: Machine, checks: Sequence[Check] = (), records: Sequence[Record] = ()
) -> MachineProfile:
    """Without records: who the machine is, alone. Levels go by capacities seen where they
    contradict declared ones.
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
    """Footprints, rising, and the rates of the plain read of these CPUs, on the first kind of pages
    there is.
    """
    of = ("read", cpus, usual_pages(ceilings), PLAIN)
    rates = {c.bytes: c.median for c in ceilings if (c.op, c.cpus, c.pages, c.form) == of}
    return sorted(rates), [rates[count] for count in sorted(rates)]


def usual_pages(ceilings: Sequence[CeilingRow]) -> str:
    """The kind with most ceilings."""
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
    """Of points beside which a thread chases, in the order of their first visits."""
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
    """ "read of 32 KiB, 2 threads: 395 GB/s"."""
    probe = record.point
    assert isinstance(probe, Probe)
    walked = "" if probe.op in WITHOUT_MEMORY else f" of {size(probe.bytes)}"
    threads = counted(probe.threads, "thread")
    if record.error or not record.samples:
        return f"{probe.op}{walked}, {threads}: {record.error or 'no sample was taken'}"
    own = [value(record, sample) for sample in record.samples if sample.program == "point"]
    return f"{probe.op}{walked}, {threads}: {median(own):.3g} {UNITS.get(probe.op, 'GB/s')}"

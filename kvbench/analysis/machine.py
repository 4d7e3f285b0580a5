"""The profile of a machine: who it is, whether it is fit to be measured, and what its own probes reached."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kvbench.analysis.ceilings import WITHOUT_MEMORY, ceilings, value
from kvbench.analysis.plateaus import Capacity, Plateau, capacities, corrections, plateaus
from kvbench.model import Ceiling, Check, Machine, Record
from kvbench.regime import Window, suggestion, windows
from kvbench.units import counted, size


@dataclass(frozen=True, slots=True)
class Profile:
    """`capacities`, `plateaus` and `windows` are those of the largest CPU set."""

    run: str
    machine: Machine
    checks: tuple[Check, ...]
    ceilings: tuple[Ceiling, ...]
    capacities: tuple[Capacity, ...]
    plateaus: tuple[Plateau, ...]
    windows: tuple[Window, ...]
    advice: str

    @property
    def cpu_sets(self) -> list[tuple[int, ...]]:
        found = dict.fromkeys(ceiling.probe.cpus for ceiling in self.ceilings)
        return sorted(found, key=lambda cpus: (len(cpus), cpus))


def profile(machine: Machine, checks: Sequence[Check] = (), records: Sequence[Record] = ()) -> Profile:
    """Without records: who the machine is, alone. Levels go by the capacities seen where those contradict declared ones."""
    declared = ceilings(records, machine)
    cpus = max((ceiling.probe.cpus for ceiling in declared), key=len, default=machine.allowed)
    stairs = staircase(declared, cpus)
    held = capacities(*stairs, machine, cpus)
    measured = corrections(held)
    return Profile(
        run=declared[0].run if declared else "",
        machine=machine,
        checks=tuple(checks),
        ceilings=ceilings(records, machine, measured) if measured else declared,
        capacities=held,
        plateaus=plateaus(*stairs),
        windows=windows(machine, cpus, measured),
        advice=suggestion(machine, cpus, measured),
    )


def staircase(ceilings: Sequence[Ceiling], cpus: tuple[int, ...]) -> tuple[list[int], list[float]]:
    """Footprints, rising, and the rates of the plain read of these CPUs, on the first kind of pages there is."""
    steps = [c for c in ceilings if c.probe.op == "read" and c.probe.cpus == cpus and not c.probe.distance]
    pages = usual_pages(ceilings)
    rates = {c.probe.bytes: c.median for c in steps if c.probe.pages == pages}
    return sorted(rates), [rates[count] for count in sorted(rates)]


def usual_pages(ceilings: Sequence[Ceiling]) -> str:
    """The kind with most ceilings."""
    return next(iter(dict(Counter(c.probe.pages for c in ceilings).most_common(1))), "")


UNITS = {"flops": "GFLOP/s", "latency": "ns", "clock": "GHz"}  # every other op: GB/s


def plain(profile: Profile) -> dict[str, Any]:
    """As JSON. Keys are part of the interface."""
    return {
        "version": 1,
        "run": profile.run,
        "fingerprint": profile.machine.fingerprint,
        "environment": profile.machine.environment,
        "topology": asdict(profile.machine),
        "preflight": [asdict(check) for check in profile.checks],
        "ceilings": [_ceiling(ceiling) for ceiling in profile.ceilings],
        "capacities": [asdict(capacity) for capacity in profile.capacities],
        "plateaus": [asdict(plateau) for plateau in profile.plateaus],
        "windows": [asdict(window) for window in profile.windows],
        "advice": profile.advice,
    }


def _ceiling(ceiling: Ceiling) -> dict[str, Any]:
    facts = asdict(ceiling.probe)
    return facts | {
        "run": ceiling.run,
        "threads": len(ceiling.probe.cpus),
        "level": ceiling.level,
        "unit": UNITS.get(ceiling.probe.op, "GB/s"),
        "median": ceiling.median,
        "gbps": ceiling.median if ceiling.probe.op not in UNITS else None,
        "low": ceiling.low,
        "high": ceiling.high,
        "samples": ceiling.samples,
        "stable": ceiling.stable,
        "huge": ceiling.huge,
    }


def describe_record(record: Record) -> str:
    """ "read of 32 KiB, 2 threads: 395 GB/s"."""
    probe = record.point
    walked = "" if probe.op in WITHOUT_MEMORY else f" of {size(probe.bytes)}"
    threads = counted(len(probe.cpus), "thread")
    if record.error:
        return f"{probe.op}{walked}, {threads}: {record.error}"
    last = value(record, record.samples[-1])
    return f"{probe.op}{walked}, {threads}: {last:.3g} {UNITS.get(probe.op, 'GB/s')}"

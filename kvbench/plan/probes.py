"""Which probes tell a machine's ceilings."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvbench.grouping import grouped
from kvbench.model import Machine, Plan, Probe
from kvbench.model.point import FLOPS
from kvbench.regime import classify, dram_bytes, levels
from kvbench.units import KIB, MIB

LAUNCHES = 9  # their whole range holds the median with more than 99 %
SAMPLES = 2
_SECONDS, _FULL_SECONDS = 0.005, 0.012
_STREAMS = ("read", "write", "write_nt", "copy", "copy_nt", "triad")
# for every further domain and number of threads: does it read as the others do?
_FURTHER = _STREAMS[:1]
# footprints of a thread, and of all of them, where no cache is known
_LEAST, _MOST = 16 * KIB, 256 * MIB
_EACH = 8 * MIB  # of a thread, at the most then: more than private caches hold
_SECOND = 1.5  # the larger footprint in DRAM, of the smaller one
_FINE = 8  # footprints in an octave, to find regimes by
_APART = 1.2  # steps of a staircase closer together than this are one
_MEMORY_SHARE = 0.5  # of what is free, for the largest footprint
GRAIN = 6 * 64  # bytes: whole lines for one, two and three streams


@dataclass(frozen=True, slots=True)
class Scope:
    """What a plan of ceilings may use. `cpus`: one for each thread, at most; `isas`: the one to
    stream with last; `products`: probes of narrow products that this one has.
    """

    cpus: tuple[int, ...]
    isas: tuple[str, ...]
    memory: int
    pages: tuple[str, ...]
    quick: bool
    seed: int = 1
    products: tuple[str, ...] = ()


def probes(machine: Machine, scope: Scope) -> Plan:
    """Reads, stores and copies from the first cache to memory, peaks of products, latency and
    clock, for sets of CPUs.
    """
    sets = cpu_sets(machine, scope.cpus, scope.quick)
    main = cpu_sets(machine, scope.cpus, quick=True)
    points = list[Probe]()
    for cpus in sets:
        ops = _STREAMS if cpus in main else _FURTHER
        for pages in scope.pages if cpus in main else scope.pages[:1]:
            points += _streams(machine, scope, cpus, pages, ops)
    points += _latencies(machine, scope, sets[0])
    for cpus in sets:
        computed = [(FLOPS, isa) for isa in scope.isas]
        computed += [(op, scope.isas[-1]) for op in scope.products]
        points += [Probe(op, isa, cpus, scope.pages[0], 0) for op, isa in computed]
        points.append(Probe("clock", scope.isas[0], cpus, scope.pages[0], 0))
    return Plan(
        tuple(dict.fromkeys(points)),
        LAUNCHES,
        SAMPLES,
        _SECONDS if scope.quick else _FULL_SECONDS,
        scope.seed,
    )


def cpu_sets(machine: Machine, everything: tuple[int, ...], quick: bool) -> list[tuple[int, ...]]:
    """One thread, one domain, `everything`; in full also 1, 2, 4, ... and every domain and node by
    itself.
    """
    *_, last = [(), *levels(machine, everything).values()]
    domains = [cache.cpus for cache in last]
    parts = domains[:1] if quick else [*domains, *(node.cpus for node in machine.nodes)]
    sets = [
        everything[:1],
        everything,
        *(tuple(cpu for cpu in everything if cpu in part) for part in parts),
    ]
    if not quick:
        sets += [everything[: 1 << bit] for bit in range(1, len(everything).bit_length())]
    several = {cpus for cpus in sets if len(cpus) > 1}
    return sorted(several | {everything[:1]}, key=lambda cpus: (len(cpus), cpus))


def _streams(
    machine: Machine, scope: Scope, cpus: tuple[int, ...], pages: str, ops: Iterable[str]
) -> Iterator[Probe]:
    """Reads climb a staircase; every op has two footprints in each regime, or one of DRAM when it
    must be quick.
    """
    main, far = _main_footprints(machine, cpus), dram_bytes(machine, cpus)
    stairs = _stairs(main, 1 if scope.quick else 2)
    for op in ops:
        counts = stairs if op == "read" else main[:-1] if scope.quick else main
        for count in _possible(counts, far, scope.memory, len(cpus)):
            yield Probe(op, scope.isas[-1], cpus, pages, count)


def _latencies(machine: Machine, scope: Scope, cpus: tuple[int, ...]) -> list[Probe]:
    """Not the largest footprint, and the least of each regime where it must be quick: linking the
    lines takes long.
    """
    main = _main_footprints(machine, cpus)[:-1]
    if scope.quick:
        least = {classify(machine, cpus, count).word: count for count in reversed(main)}
        main = sorted(least.values()) if machine.caches else main[::2]
    counts = _possible(main, dram_bytes(machine, cpus), scope.memory, 1)
    return [Probe("latency", scope.isas[0], cpus, scope.pages[0], count) for count in counts]


def latencies(machine: Machine, cpu: int, isa: str, pages: str, far: int) -> Iterator[Probe]:
    """Probes of latency on one CPU: in the middle of L2 and of L3, and in `far` bytes of memory."""
    steps = _octaves(_LEAST / 2, far, _FINE)
    found = grouped((classify(machine, (cpu,), count).word, count) for count in steps)
    middle = [own[len(own) // 2] for word, own in found.items() if word in ("L2", "L3")]
    for count in (*(int(count // GRAIN) * GRAIN for count in middle), -(-far // GRAIN) * GRAIN):
        yield Probe("latency", isa, (cpu,), pages, count)


def _main_footprints(machine: Machine, cpus: Sequence[int]) -> list[float]:
    """Two in each regime: a middle and the largest one of a cache, the least and a larger one of
    DRAM.
    """
    far = dram_bytes(machine, cpus)
    if far is None:
        most = max(_MOST, _EACH * len(cpus))
        return sorted({*_octaves(_LEAST * len(cpus), most, 0.5), most})
    steps = _octaves(_LEAST / 2 * len(cpus), far, _FINE)
    found = grouped((classify(machine, cpus, count).word, count) for count in steps)
    main = [
        count
        for word, counts in found.items()
        if word[0] == "L"
        for count in (counts[len(counts) // 2], counts[-1])
    ]
    return sorted({*main, far, _SECOND * far})


def _stairs(main: Sequence[float], per_octave: float) -> list[float]:
    """`main`, and steps between where there is room."""
    between = (
        step
        for step in _octaves(main[0], main[-1], per_octave)
        if all(max(step, count) / min(step, count) > _APART for count in main)
    )
    return sorted([*main, *between])


def _octaves(first: float, last: float, per_octave: float) -> Iterator[float]:
    step = 0
    while (count := first * 2 ** (step / per_octave)) <= last:
        yield count
        step += 1


def _possible(counts: Iterable[float], far: float | None, memory: int, threads: int) -> list[int]:
    """In whole lines for every thread, and still of the same regime: down, but up from `far` on.

    What memory does not hold becomes the most that it does.
    """
    grain = GRAIN * threads
    whole = (-(-count // grain) if far and count >= far else count // grain for count in counts)
    most = memory * _MEMORY_SHARE // grain
    return sorted({int(max(1, min(grains, most))) * grain for grains in whole})

"""Choose the probes that measure a machine's ceilings."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvbench.grouping import grouped
from kvbench.model import Machine, Plan, Probe
from kvbench.model.point import FLOPS
from kvbench.regime import classify, dram_bytes, levels
from kvbench.units import KIB, MIB

LAUNCHES = 9  # the range of nine holds the median with a probability above 99 %
SAMPLES = 2
_SECONDS, _FULL_SECONDS = 0.005, 0.012
_STREAMS = ("read", "write", "write_nt", "copy", "copy_nt", "triad")
# for every further domain and number of threads: does it read as fast as the others?
_FURTHER = _STREAMS[:1]
# smallest footprint of a thread, and largest of all threads, if no cache is known
_LEAST, _MOST = 16 * KIB, 256 * MIB
_EACH = 8 * MIB  # largest footprint of a thread in that case: more than private caches hold
_SECOND = 1.5  # the larger footprint in DRAM, as a multiple of the smaller one
_FINE = 8  # footprints per octave in the search for regimes
_APART = 1.2  # steps of a staircase closer than this ratio are merged
_MEMORY_SHARE = 0.5  # of free memory, for the largest footprint
GRAIN = 6 * 64  # bytes: full cache lines for one, two and three streams


@dataclass(frozen=True, slots=True)
class Scope:
    """What a plan of ceilings may use.

    cpus: one for each thread, at most. isas: the last one is used for streams. products: probes of
    narrow products that the last one has.
    """

    cpus: tuple[int, ...]
    isas: tuple[str, ...]
    memory: int
    pages: tuple[str, ...]
    quick: bool
    seed: int = 1
    products: tuple[str, ...] = ()


def probes(machine: Machine, scope: Scope) -> Plan:
    """The plan of all ceilings: reads, stores and copies from L1 to memory, peaks of products,
    latency and clock, for several sets of CPUs.
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
    """The sets of CPUs to probe: the first CPU, the CPUs of one last-level cache, and all. All is
    `everything`. Unless quick, also 1, 2, 4, ... threads, and every such cache and node alone.
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
    """Probes of streams. Reads have a staircase of footprints. Other ops have two footprints in
    each regime; if quick, only one in DRAM.
    """
    main, far = _main_footprints(machine, cpus), dram_bytes(machine, cpus)
    stairs = _stairs(main, 1 if scope.quick else 2)
    for op in ops:
        counts = stairs if op == "read" else main[:-1] if scope.quick else main
        for count in _possible(counts, far, scope.memory, len(cpus)):
            yield Probe(op, scope.isas[-1], cpus, pages, count)


def _latencies(machine: Machine, scope: Scope, cpus: tuple[int, ...]) -> list[Probe]:
    """Probes of latency. The largest footprint is left out, since linking its lines takes long; if
    quick, only the smallest footprint of each regime is kept.
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
    """Two footprints in each regime: a middle one and the largest for a cache; the smallest and a
    larger one for DRAM.
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
    """`main` with further steps where there is room between."""
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
    """The footprints in full cache lines for every thread, in the same regime as before: rounded
    down, or rounded up from `far` on.

    A footprint that does not fit memory becomes the largest that does.
    """
    grain = GRAIN * threads
    whole = (-(-count // grain) if far and count >= far else count // grain for count in counts)
    most = memory * _MEMORY_SHARE // grain
    return sorted({int(max(1, min(grains, most))) * grain for grains in whole})

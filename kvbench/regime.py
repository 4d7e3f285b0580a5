"""The regime of a walk: which level of the machine feeds it, from its footprint, its threads and
their caches.

Each thread walks its share again and again. A share that fits a core's private caches never reaches
the level behind them. If all private caches together hold as much as the last level, no footprint
tests the last level with all cores. So the footprints that test the last level form a *window*,
which may be empty.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from kvbench.errors import BadArgument
from kvbench.grouping import grouped
from kvbench.model import DataCache, Machine
from kvbench.model.annotated import about
from kvbench.units import MIB, cpu_text


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Every threshold, as a multiple of a cache's size. They are judgement. A footprint between two
    thresholds is "mixed".
    """

    l1: float = 0.5  # share in L1: a thread's queries, scores and stack need the other half
    private: float = 0.8  # share in a private cache: beyond it, conflicts already evict some lines
    # share that a private cache no longer serves, even with a clever replacement policy
    beyond: float = 1.5
    # footprint in the last level of a domain: hashing is uneven, and others use it too
    last: float = 0.7
    # footprint over all last levels used: at most a quarter can still come from them
    dram: float = 4.0
    well: float = 0.5  # share of what L3 holds; a footprint below it surely stays in L3


THRESHOLDS = Thresholds()
# words that are not a level: they apply to footprints of all kinds
NO_LEVEL = frozenset({"mixed", "unknown"})
FAR_BYTES = 256 * MIB  # the least far footprint, if caches are small or unknown


class Lies(StrEnum):
    """Why data lies in its regime. `bytes` and `limit` of the Regime are the numbers behind it."""

    SWEPT = "the caches are swept"
    NO_CACHE = "no cache is known"
    DIFFER = "domains differ"
    WITHIN = "a thread's share is within it"  # within what a private cache serves
    SHARED = "the footprint is within it"  # within what the last level serves
    BETWEEN = "between two private caches"
    HIDDEN = "no cache behind is known"
    NOT_BEYOND = "not beyond the private caches"
    TOO_LITTLE = "too little for memory"  # but more than the last level serves
    FAR = "beyond all caches"
    NOTHING = "nothing is kept"
    DISPLACED = "other bytes are read between"  # passes: the point measures what caches keep


@dataclass(frozen=True, slots=True)
class Regime:
    """Which level feeds a footprint, and why.

    word: L1, L2, L3, DRAM, mixed or unknown. confidence: high or low; none if the word is unknown.
    bytes: what was compared with `limit`, of one thread or of all; 0 if no size decides.
    """

    word: str
    reason: Lies
    confidence: str
    bytes: float = 0.0
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Window:
    """The footprints at which one L3 feeds its threads, in bytes."""

    cpus: Annotated[tuple[int, ...], about("CPUs that share the L3")]
    threads: Annotated[int, about("threads that run on them")]
    low: Annotated[float, about("bytes: smallest footprint that the L3 feeds")]
    high: Annotated[float, about("bytes: largest footprint that the L3 feeds")]
    open: Annotated[bool, about("whether such a footprint exists")]
    largest_threads: Annotated[
        int, about("most threads for which a footprint exists; 0: not even for one")
    ]


@dataclass(frozen=True, slots=True)
class _Domain:
    """The threads behind one last-level cache. Without such a cache (`last` is None), only L1 is
    known.

    private: for each level below the last, the smallest and the largest share of it that a thread
    has.
    """

    last: DataCache | None
    threads: int
    private: dict[int, tuple[float, float]]

    @property
    def beyond(self) -> float:
        """The share of a thread that is too large for any of its private caches."""
        return THRESHOLDS.beyond * max((most for _, most in self.private.values()), default=0.0)


def classify(
    machine: Machine, cpus: Sequence[int], footprint: float, *, evicted: bool = False
) -> Regime:
    """The regime of a footprint.

    footprint: bytes that all threads walk in a pass together, split evenly; one thread runs on each
    of `cpus`. evicted: caches are swept before each pass.
    """
    hierarchies = _hierarchies(machine, cpus)
    domains = _domains(hierarchies)
    if evicted:
        return Regime("DRAM", Lies.SWEPT, "high" if domains else "low")
    if not domains:
        return Regime("unknown", Lies.NO_CACHE, "none")
    even = footprint / len(cpus)
    found = [_place(domain, even) for domain in domains]
    word, why = found[0]
    if len(words := {word for word, _ in found}) > 1:
        word, why = "unknown" if "unknown" in words else "mixed", (Lies.DIFFER, 0.0, 0.0)
    elif word == "mixed" and footprint >= (least := _dram_bytes(domains)):
        word, why = "DRAM", (Lies.FAR, footprint, least)
    doubted = word == "DRAM" and _kept(hierarchies, even) or _doubted(machine, hierarchies, word)
    confidence = "none" if word == "unknown" else "low" if doubted else "high"
    reason, *held = why
    return Regime(word, reason, confidence, *held)


def corrected(machine: Machine, sizes: Mapping[int, float]) -> Machine:
    """The machine with measured cache sizes in place of declared ones, by level. A measured size is
    not in doubt.
    """
    caches = tuple(
        replace(cache, size=int(sizes.get(cache.level, cache.size))) for cache in machine.caches
    )
    seen = {"l1d" if level == 1 else f"l{level}" for level in sizes}
    facts = {name: fact for name, fact in machine.facts.items() if name not in seen}
    return replace(machine, caches=caches, facts=facts)


def dram_bytes(machine: Machine, cpus: Sequence[int]) -> float | None:
    """The smallest footprint whose regime is DRAM; None if no last level is known.

    Data can lie in the last level of every domain that has a thread. Idle domains do not count.
    """
    domains = _domains(_hierarchies(machine, cpus))
    return _dram_bytes(domains) if domains and all(domain.last for domain in domains) else None


def far_bytes(machine: Machine, cpus: Sequence[int]) -> int:
    """A footprint that surely comes from memory: DRAM, and long enough to time."""
    return max(FAR_BYTES, math.ceil(dram_bytes(machine, cpus) or 0))


def levels(machine: Machine, cpus: Sequence[int]) -> dict[int, tuple[DataCache, ...]]:
    """The caches that serve any of `cpus`, each once, by level."""
    found: dict[int, dict[DataCache, None]] = {}
    for cache in (cache for hierarchy in _hierarchies(machine, cpus) for cache in hierarchy):
        found.setdefault(cache.level, {})[cache] = None
    return {level: tuple(found[level]) for level in sorted(found)}


def lacking(machine: Machine, cpus: Sequence[int], level: int) -> str:
    """The CPUs that no known cache of that level serves, in words."""
    served = {cpu for cache in levels(machine, cpus).get(level, ()) for cpu in cache.cpus}
    without = set(cpus) - served
    return f"CPUs {cpu_text(without)}" if without < set(cpus) else "these CPUs"


def holds(machine: Machine, cpus: Sequence[int]) -> dict[int, float]:
    """For each level, the largest footprint that its caches hold, split evenly over all threads.
    Empty if a CPU has no known cache.
    """
    shares: dict[int, list[float]] = {}
    domains = _domains(_hierarchies(machine, cpus))
    for domain in domains:
        for level, (least, _) in domain.private.items():
            shares.setdefault(level, []).append(
                (THRESHOLDS.l1 if level == 1 else THRESHOLDS.private) * least
            )
        if domain.last:
            shares.setdefault(domain.last.level, []).append(
                THRESHOLDS.last * domain.last.size / domain.threads
            )
    return {level: min(shares[level]) * len(cpus) for level in sorted(shares)}


def nearest(
    machine: Machine, cpus: Sequence[int], footprint: float, *, evicted: bool = False
) -> str:
    """The nearest cache that holds the whole footprint, or memory. Unlike classify() it has no word
    for "between two".

    L1 counts as L2, because data in both are read about as fast. A footprint that nearly fills L3
    has a word of its own: on most machines a part of it comes from memory.
    """
    for number, most in holds(machine, cpus).items() if not evicted else ():
        if footprint <= most:
            nearly = number > 2 and footprint > THRESHOLDS.well * most
            return "most of L3" if nearly else f"L{max(2, number)}"
    return "memory"


def near_l3(machine: Machine, cpus: Sequence[int], footprint: float) -> bool:
    """Whether L3 feeds the footprint, or holds a part of it."""
    opened = [window for window in windows(machine, cpus) if window.open]
    low, high = (
        max((getattr(each, end) / each.threads for each in opened), default=0.0)
        for end in ("low", "high")
    )
    return bool(opened) and low <= footprint / len(cpus) <= _BEYOND * high


def windows(machine: Machine, cpus: Sequence[int]) -> tuple[Window, ...]:
    """One window for each L3 domain that has a thread. Empty if the CPUs have no L3."""
    found = []
    for domain, last in _behind_l3(machine, cpus):
        low, high = domain.beyond * domain.threads, THRESHOLDS.last * last.size
        largest = max(_opening(machine, cpus, last), default=0)
        found.append(Window(last.cpus, domain.threads, low, high, low <= high, largest))
    return tuple(found)


def suggestion(machine: Machine, cpus: Sequence[int]) -> str:
    """Why no footprint tests L3 on all of `cpus`, and what to try; empty if a footprint does."""
    found = windows(machine, cpus)
    if sum(window.threads for window in found) < len(cpus):
        return f"not testable: no L3 is known for {lacking(machine, cpus, _LAST)}"
    if max(window.low / window.threads for window in found) <= min(
        window.high / window.threads for window in found
    ):
        return ""  # one share per thread fits the windows of all domains
    at = f"at {len(cpus)} thread{'s' if len(cpus) > 1 else ''}"
    cores = min(
        len(
            {
                cpu.core
                for cpu in machine.cpus
                if cpu.cpu in window.cpus and cpu.cpu in machine.allowed
            }
        )
        for window in found
    )
    opening = (_opening(machine, cpus, last) for _, last in _behind_l3(machine, cpus))
    others = set(range(1, cores + 1)).intersection(*opening) - {len(cpus)}
    if not others:
        return (
            f"not testable {at}, nor at fewer: a core's private caches hold too much of what L3"
            " holds"
        )
    return f"not testable {at}; try --axis threads={max(others)}"


# ---- where a thread's share lies -----------------------------------------------------------------

_LAST = 3  # caches behind L3 (memory-side caches) do not count as a level
_BEYOND = 3  # up to this many times the window, L3 may still hold a part


_Why = tuple[Lies, float, float]  # the reason, and the bytes and the limit that are compared


def _place(domain: _Domain, each: float) -> tuple[str, _Why]:
    """The word for one domain whose threads walk `each` bytes each, and the reason."""
    inside = each * domain.threads
    nearer = 0.0  # the part of a share that nearer levels hold
    for level, (least, most) in domain.private.items():
        limit = THRESHOLDS.l1 if level == 1 else THRESHOLDS.private
        if each <= limit * least:
            if each < THRESHOLDS.beyond * nearer:
                return "mixed", (Lies.BETWEEN, each, THRESHOLDS.beyond * nearer)
            return f"L{level}", (Lies.WITHIN, each, limit * least)
        nearer = most
    if domain.last is None:
        return "unknown", (Lies.HIDDEN, each, THRESHOLDS.l1 * nearer)
    if each < domain.beyond:
        return "mixed", (Lies.NOT_BEYOND, each, domain.beyond)
    serves = THRESHOLDS.last * domain.last.size
    if inside <= serves:
        return f"L{domain.last.level}", (Lies.SHARED, inside, serves)
    return "mixed", (Lies.TOO_LITTLE, inside, serves)


def _dram_bytes(domains: Sequence[_Domain]) -> float:
    """The smallest footprint in DRAM: several times all last levels together, and per thread more
    than it can have in private caches or in its part of the last level.
    """
    known = [(domain, domain.last.size) for domain in domains if domain.last]
    share = max(
        max(domain.beyond, THRESHOLDS.last * last / domain.threads) for domain, last in known
    )
    threads = sum(domain.threads for domain in domains)
    return max(THRESHOLDS.dram * sum(last for _, last in known), share * threads)


@lru_cache  # thousands of points use a few sets of CPUs, here and below
def _domains(hierarchies: tuple[tuple[DataCache, ...], ...]) -> tuple[_Domain, ...]:
    """The threads grouped by the last-level cache that serves them. Empty if a CPU has no known
    cache.
    """
    if not all(hierarchies):
        return ()
    users = _users(hierarchies)
    far: list[DataCache | None] = [own[-1] if own[-1].level > 1 else None for own in hierarchies]
    members = grouped(
        (last, own[:-1] if last else own) for last, own in zip(far, hierarchies, strict=True)
    )
    found = []
    for last, below in members.items():
        each = grouped((c.level, c.size / users[c]) for hierarchy in below for c in hierarchy)
        private = {level: (min(each[level]), max(each[level])) for level in sorted(each)}
        found.append(_Domain(last, len(below), private))
    return tuple(found)


def _users(hierarchies: Iterable[Iterable[DataCache]]) -> Counter[DataCache]:
    """The number of threads on each cache. Threads on one cache (siblings, a cluster) share it
    evenly.
    """
    return Counter(cache for hierarchy in hierarchies for cache in hierarchy)


def _hierarchies(machine: Machine, cpus: Sequence[int]) -> tuple[tuple[DataCache, ...], ...]:
    """The caches of known size that serve each CPU, the nearest first."""
    if not cpus:
        raise BadArgument("cpus: the list is empty", "name at least one CPU")
    return _serving(machine.caches, tuple(cpus))


@lru_cache
def _serving(
    known: tuple[DataCache, ...], cpus: tuple[int, ...]
) -> tuple[tuple[DataCache, ...], ...]:
    caches = grouped(
        (cpu, cache)
        for cache in sorted(known, key=lambda cache: cache.level)
        if cache.size > 0 and cache.level <= _LAST
        for cpu in cache.cpus
    )
    return tuple(tuple(caches.get(cpu, ())) for cpu in cpus)


def _behind_l3(machine: Machine, cpus: Sequence[int]) -> list[tuple[_Domain, DataCache]]:
    domains = _domains(_hierarchies(machine, cpus))
    return [
        (domain, domain.last) for domain in domains if domain.last and domain.last.level == _LAST
    ]


def _opening(machine: Machine, cpus: Sequence[int], last: DataCache) -> tuple[int, ...]:
    """The numbers of threads with which the window of `last` is open. With unlike cores the numbers
    may have gaps.

    Threads are added in this order: the given CPUs, then other CPUs of the domain as a placement
    takes them, one on each core before the cores' second threads.
    """
    siblings = {cpu.cpu: cpu.thread for cpu in machine.cpus}
    own = [cpu for cpu in cpus if cpu in last.cpus]
    others = (set(last.cpus) & set(machine.allowed)) - set(own)
    order = own + sorted(others, key=lambda cpu: (siblings.get(cpu, 0), cpu))
    users: Counter[DataCache] = Counter()
    found = []
    for threads, hierarchy in enumerate(_hierarchies(machine, order), 1):
        users.update(hierarchy[:-1])
        most = max((cache.size / count for cache, count in users.items()), default=0.0)
        if THRESHOLDS.beyond * most * threads <= THRESHOLDS.last * last.size:
            found.append(threads)
    return tuple(found)


# ---- how sure it is ------------------------------------------------------------------------------

_RESTS_ON = {"L1": ("l1d",), "L2": ("l1d", "l2")}  # facts by word; other words need all facts


def _kept(hierarchies: Sequence[Sequence[DataCache]], even: float) -> bool:
    """Whether a cache could keep more than a quarter of what its threads walk.

    This is so if private caches together hold more than the last level, or if a domain has few
    threads.
    """
    return any(
        count * even < THRESHOLDS.dram * cache.size for cache, count in _users(hierarchies).items()
    )


def _doubted(machine: Machine, hierarchies: Sequence[Sequence[DataCache]], word: str) -> bool:
    """Whether a size that the word depends on is in doubt, or a level may be hidden."""
    for name in _RESTS_ON.get(word, ("l1d", "l2", "l3", "domains")):
        if name in machine.facts and machine.facts[name].confidence == "low":
            return True
    if word == "DRAM" and any(cache.level > _LAST for cache in machine.caches):
        return True
    cores = {cpu.cpu: cpu.core for cpu in machine.cpus}
    lasts = {hierarchy[-1] for hierarchy in hierarchies if hierarchy[-1].level < _LAST}
    return word != "L1" and any(len({cores.get(cpu) for cpu in last.cpus}) == 1 for last in lasts)

"""Which machine decodes fastest: scores with their ranks, and sweeps of `quick` for machines that
have no score.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvbench.analysis.answers.decodes import Decode
from kvbench.analysis.means.findings import Findings
from kvbench.grouping import grouped
from kvbench.machine.placement import place
from kvbench.machine.virtual import is_virtual
from kvbench.model import Machine

_EXACT = "flash"  # the variant that a score's widest format is measured by
KINDS = 3  # kinds of CPU that a ranking needs before it says something of CPUs
_CACHES = ("l1d", "l2")  # facts that tell kinds of CPU apart, and that archives keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Tokens/s that caches of one width allow, by the fastest kernel of that width. `low` and
    `high`: the interval, None without one. `share`: of plain reads of memory in the same run.
    """

    bits: int
    tokens: float
    low: float | None
    high: float | None
    share: float | None
    dtype: str
    variant: str
    layout: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One machine's figures: of its score, or of its run of `quick` (then `score` is empty).

    `machine`: name of its folder. `place`: the run directory or archive, in that folder. `kind`: of
    CPU. `virtual`: None if the machine does not say. `version`: of kvbench.
    """

    machine: str
    place: str
    cpu: str
    cores: int
    virtual: bool | None
    kind: tuple[str, ...]
    widths: tuple[Allowed, ...]
    grade: str
    score: str
    version: str
    created: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A machine and its rank among the scores of its version of kvbench; a sweep has None."""

    entry: Entry
    rank: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Machines that are ranked together. `kind`: virtual, metal, or unknown if a machine does not
    say. `ranked`: whether two scores are of one version of kvbench.
    """

    kind: str
    rows: tuple[Standing, ...]
    ranked: bool


@dataclass(frozen=True, slots=True)
class Standings:
    """All machines, in the order in which a page lists them. `kinds`: how many kinds of CPU have a
    score. `few`: whether they are fewer than KINDS. `versions`: how many versions of kvbench made
    scores. `swept`: whether a sweep stands in for a score. `told`: whether each cell has a share.
    """

    lists: tuple[Listing, ...]
    kinds: int
    few: bool
    versions: int
    swept: bool
    told: bool

    @property
    def ranked(self) -> bool:
        """Whether a list has ranks."""
        return any(each.ranked for each in self.lists)

    def of(self, kind: str) -> tuple[Standing, ...]:
        """The machines of one list."""
        return next(each.rows for each in self.lists if each.kind == kind)


_LISTS = {"virtual": True, "metal": False, "unknown": None}


def standings(entries: Iterable[Entry]) -> Standings:
    """Rank virtual machines, bare metal and machines that do not say separately."""
    every = tuple(entries)
    scored = [each for each in every if each.score]
    kinds = len({each.kind for each in scored})
    return Standings(
        lists=tuple(
            _listing(kind, [each for each in every if each.virtual is virtual])
            for kind, virtual in _LISTS.items()
        ),
        kinds=kinds,
        few=kinds < KINDS,
        versions=len({each.version for each in scored}),
        swept=len(scored) < len(every),
        told=all(width.share is not None for each in every for width in each.widths),
    )


def _listing(kind: str, entries: Sequence[Entry]) -> Listing:
    scored = [each.version for each in entries if each.score]
    return Listing(kind, tuple(_listed(entries)), len(set(scored)) < len(scored))


def _listed(entries: Sequence[Entry]) -> Iterable[Standing]:
    """Scores of the newest version first, the fastest first within it; then sweeps by name."""
    versions = grouped((each.version, each) for each in entries if each.score)
    for version in sorted(versions, key=_newness, reverse=True):
        ranked = [Standing(each, _rank(each, versions[version])) for each in versions[version]]
        yield from sorted(ranked, key=lambda each: (each.rank, -_first(each.entry).tokens))
    swept = (each for each in entries if not each.score)
    yield from (Standing(each, None) for each in sorted(swept, key=lambda each: each.machine))


def _rank(entry: Entry, others: Iterable[Entry]) -> int:
    """One more than the number of machines that are surely faster by the widest format: machines
    whose intervals overlap tie.
    """
    high = _end(_first(entry).high, _first(entry).tokens)
    lows = (_end(_first(other).low, _first(other).tokens) for other in others)
    return 1 + sum(low > high for low in lows)


def _first(entry: Entry) -> Allowed:
    return max(entry.widths, key=lambda each: each.bits)


def _end(end: float | None, middle: float) -> float:
    return middle if end is None else end


def _newness(version: str) -> tuple[int, ...]:
    """A sort key by which "0.10.1" is newer than "0.9"."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


# ---- what a run gives to an entry ----------------------------------------------------------------


def cores(machine: Machine) -> int:
    """The number of threads that "all" stands for. All cores, if facts are missing that tell it."""
    try:
        return len(place(machine, None, "all"))
    except KeyError:
        return len({cpu.core for cpu in machine.cpus})


def described(machine: Machine, vendor: str = "") -> dict[str, Any]:
    """The fields of an Entry that a machine's facts give. `vendor`: of its CPU, if its own facts
    have none, as those of an archive.

    Facts have no family and no model of a CPU. So kinds are told apart by vendor, architecture,
    best instruction set, and the sizes of L1 and L2.
    """
    known = {name: fact.value for name, fact in machine.facts.items() if fact.value is not None}
    tiers = known.get("isa")
    best = tiers[-1] if isinstance(tiers, list) and tiers else ""
    kind = (known.get("vendor", vendor), known.get("architecture", ""), best)
    hypervisor = machine.facts.get("hypervisor")
    said = hypervisor is not None and hypervisor.value is not None
    return {
        "cores": cores(machine),
        "virtual": is_virtual(hypervisor) if said else None,
        "kind": tuple(map(str, (*kind, *(known.get(name, "") for name in _CACHES)))),
    }


def swept(
    found: Findings, bits: Mapping[str, int], workload: tuple[str, int, int]
) -> tuple[Allowed, ...]:
    """The fastest kernel of each width in a run, the widest first. `bits`: of an element, by number
    format. Empty if the run has another workload than `workload` (model, tokens and sequences), or
    fewer threads than the machine has cores.
    """
    page = found.answers.workload
    asked = (page.model, page.context, page.batch)
    if asked != workload or page.threads != cores(found.machine):
        return ()
    widest, fastest = max(bits.values()), dict[int, Decode]()
    for row in found.answers.decodes.rows:  # the fastest first
        own = bits.get(row.dtype, 0)
        if own and (own < widest or row.variant == _EXACT):
            fastest.setdefault(own, row)
    known = (_allowed(own, fastest[own]) for own in sorted(fastest, reverse=True))
    return tuple(each for each in known if each)


def _allowed(bits: int, row: Decode) -> Allowed | None:
    if not (speed := row.speed.figure):
        return None
    whole = not math.isnan(speed.low) and not math.isnan(speed.high)
    return Allowed(
        bits=bits,
        tokens=speed.value,
        low=speed.low if whole else None,
        high=speed.high if whole else None,
        share=row.memory.figure.value if row.memory.figure else None,
        dtype=row.dtype,
        variant=row.variant,
        layout=row.layout,
    )

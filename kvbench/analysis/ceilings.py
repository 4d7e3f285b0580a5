"""Ceilings, from a run's own probes; and which of them a point may be held against: those of its own run alone."""

import math
from collections.abc import Iterable
from statistics import median
from typing import Any

from kvbench.analysis.interval import interval
from kvbench.analysis.launches import complete
from kvbench.analysis.scatter import steady
from kvbench.errors import BadArgument, NotComparable
from kvbench.model import Ceiling, Machine, Probe, Record, Sample
from kvbench.regime import NO_LEVEL, Capacities, classify
from kvbench.units import gbps, size

COVERAGE = 0.99  # of the intervals: a shared host drifts from run to run, further than 0.95 allows
REACH = 2.0  # a footprint so many times larger or smaller may still lie on the same plateau

_CORE = "core"  # the level of what needs no memory
WITHOUT_MEMORY = frozenset({"flops", "clock"})
_LESS_IS_BETTER = frozenset({"latency"})


def ceilings(records: Iterable[Record], machine: Machine, measured: Capacities | None = None) -> tuple[Ceiling, ...]:
    """One for each run and probe that has samples, sorted. Records of points, and those that failed, are left out.

    `median` is that of the launches' medians. `low` and `high` are two of those medians: the narrowest symmetric pair
    that holds the true median with probability COVERAGE, whatever the distribution. Up to 11 launches that is their
    whole range, which of L launches holds it with probability 1 - 2^(1-L).
    `measured` capacities replace the declared ones in the choice of the level.
    """
    found: dict[tuple[str, Probe], list[Record]] = {}
    for record in records:
        if isinstance(record.point, Probe) and complete(record):
            found.setdefault((record.run, record.point), []).append(record)
    order = sorted(found, key=lambda key: (key[0], *_order(key[1])))
    return tuple(_ceiling(run, probe, found[run, probe], machine, measured) for run, probe in order)


def ceiling_for(
    ceilings: Iterable[Ceiling],
    *,
    run: str,
    op: str,
    isa: str,
    cpus: Iterable[int],
    pages: str,
    level: str | None = None,
    footprint: float | None = None,
) -> Ceiling:
    """The ceiling that a point may be held against; NotComparable where this run has none.

    Of a `level`, the best. With a `footprint` the best at the nearest size: within the level if one is given, else no
    further than REACH away.
    """
    if level in NO_LEVEL:
        level = None  # it covers footprints that have nothing in common
    if level is None and footprint is None and op not in WITHOUT_MEMORY:
        raise BadArgument(f"{op} ceiling: neither level nor footprint is given", "give one: every level has its own")
    wanted = {"run": run, "cpus": _cpus(cpus), "isa": isa} | ({} if op in WITHOUT_MEMORY else {"pages": pages})
    found = _matching(ceilings, op, wanted if level is None else wanted | {"level": level})
    if footprint is None:
        return _best(found)
    away = [abs(math.log2(max(ceiling.probe.bytes, 1) / footprint)) for ceiling in found]
    if level is None and min(away) > math.log2(REACH):
        sizes = ", ".join(size(bytes_) for bytes_ in sorted({ceiling.probe.bytes for ceiling in found}))
        raise NotComparable(
            f"no {op} ceiling is within a factor of {REACH:g} of {size(footprint)}: there are {sizes}",
            "measure one of the point's own footprint",
        )
    return _best([ceiling for ceiling, distance in zip(found, away, strict=True) if distance == min(away)])


# ---- values ----------------------------------------------------------------------------------------------------------


def value(record: Record, sample: Sample) -> float:
    """GB/s; flops: GFLOP/s; latency: ns for each load; clock: GHz, an addition being one cycle."""
    op, traffic = record.point.op, record.traffic["point"]
    if op == "latency":
        return sample.seconds / sample.passes / record.steps * 1e9
    count = {"flops": traffic.flops, "clock": record.steps}.get(op, traffic.compulsory)
    return gbps(count * sample.passes, sample.seconds)


def _ceiling(run: str, probe: Probe, records: list[Record], machine: Machine, measured: Capacities | None) -> Ceiling:
    launches: dict[int, list[float]] = {}
    for record in sorted(records, key=lambda record: record.launch):
        values = [value(record, sample) for sample in record.samples if sample.program == "point"]
        launches.setdefault(record.launch, []).extend(values)
    medians = sorted(median(values) for values in launches.values())
    low, high = interval(medians, COVERAGE)
    core = probe.op in WITHOUT_MEMORY
    return Ceiling(
        run=run,
        probe=probe,
        level=_CORE if core else classify(machine, probe.cpus, probe.bytes, measured=measured).word,
        median=median(medians),
        low=low,
        high=high,
        samples=tuple(tuple(values) for values in launches.values()),
        stable=steady(medians),
        huge=huge_share(records),
    )


def huge_share(records: Iterable[Record]) -> float | None:
    """The least share of any launch that is really on huge pages; None where there is no memory."""
    shares = [r.memory["huge_bytes"] / r.memory["resident_bytes"] for r in records if r.memory.get("resident_bytes")]
    return min(shares, default=None)


def _order(probe: Probe) -> tuple:
    return (probe.op, len(probe.cpus), probe.cpus, probe.pages, probe.isa, probe.bytes, probe.distance)


# ---- which may be used -----------------------------------------------------------------------------------------------


def _matching(ceilings: Iterable[Ceiling], op: str, wanted: dict[str, Any]) -> list[Ceiling]:
    """Those that agree in everything wanted; or an error that names where the nearest ones differ."""
    described = [(ceiling, _described(ceiling)) for ceiling in ceilings if ceiling.probe.op == op]
    differing = [(ceiling, [key for key in wanted if facts[key] != wanted[key]]) for ceiling, facts in described]
    if found := [ceiling for ceiling, keys in differing if not keys]:
        return found
    hint = "measure it in the same run: a ceiling holds for one run, CPU set, page policy and tier"
    if not differing:
        raise NotComparable(f"there is no {op} ceiling", hint)
    (_, facts), (_, keys) = min(zip(described, differing, strict=True), key=lambda both: len(both[1][1]))
    differences = "; ".join(_difference(key, facts[key], wanted[key]) for key in keys)
    raise NotComparable(f"no {op} ceiling fits: the nearest has {differences}", hint)


def _described(ceiling: Ceiling) -> dict[str, Any]:
    probe = ceiling.probe
    facts = {"run": ceiling.run, "cpus": _cpus(probe.cpus), "pages": probe.pages, "isa": probe.isa}
    return facts | {"level": ceiling.level, "bytes": probe.bytes}


def _cpus(cpus: Iterable[int]) -> tuple[int, ...]:
    """Their order decides nothing; how often each is named is the number of its threads."""
    return tuple(sorted(cpus))


def _difference(key: str, has: Any, wanted: Any) -> str:
    if key != "cpus":
        return f"{key} {has}, not {wanted}"
    if len(has) != len(wanted):
        return f"threads {len(has)}, not {len(wanted)}"
    return f"cpus {','.join(map(str, has))}, not {','.join(map(str, wanted))}"


def _best(found: Iterable[Ceiling]) -> Ceiling:
    return max(found, key=lambda c: -c.median if c.probe.op in _LESS_IS_BETTER else c.median)

"""A machine's profile as lines of text: its facts, its ceilings, reads by footprint, and latency
beside loads.
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from kvbench.analysis.measured.ceilings import WITHOUT_MEMORY
from kvbench.analysis.measured.machines import (
    UNITS,
    CeilingRow,
    IdleRow,
    LoadedRow,
    MachineProfile,
    staircase,
    usual_pages,
)
from kvbench.grouping import grouped
from kvbench.machine.virtual import is_virtual
from kvbench.model import COMPUTE, PLAIN, Fact, Machine
from kvbench.model.point import FLOPS
from kvbench.regime import dram_bytes
from kvbench.report.ruled import Column, ruled
from kvbench.report.words import paragraphs
from kvbench.report.words import said as words
from kvbench.report.words.phrases import number
from kvbench.units import counted, cpu_text, size

_BAR = 40  # characters, for the highest rate
_LONG = 160  # characters of a fact; --json has all of it
_BYTES = frozenset({"l1d", "l2", "l3", "memory", "memory_limit", "page_bytes"})
# heads of columns. ns: the median of steps; 95 % within: ns that 95 % of the steps do not exceed
_HEADS = "load", "of its rate", "GB/s", "ns (95 % interval)", "95 % within", "x idle"
_LOAD, _SHARE, _RATE, _NS, _TAIL, _TIMES = _HEADS
_OPS = ("read", "write", "write_nt", "copy", "copy_nt", "triad", "latency")


def text(profile: MachineProfile) -> list[str]:
    lines = [*identity(profile.topology), "", *_ceilings(profile), "", *_stairs(profile)]
    return [*lines, "", *_capacities(profile), *_loaded(profile)]


def identity(machine: Machine) -> list[str]:
    """Lines: every fact with its source, or the reason why it is unknown."""
    width = max(len(name) for name in machine.facts)
    return [
        f"fingerprint {machine.fingerprint}, environment {machine.environment}",
        "",
        *(f"  {name:<{width}}  {_fact(name, fact)}" for name, fact in machine.facts.items()),
        *(f"  warning: {warning}" for warning in machine.warnings),
    ]


def _fact(name: str, fact: Fact) -> str:
    if fact.value is None:
        return f"unknown: {fact.note}"
    doubt = f", {fact.confidence} confidence" if fact.confidence != "high" else ""
    note = f": {fact.note}" if fact.note else ""
    return f"{said(name, fact.value)}  ({fact.source}{doubt}{note})"


def said(name: str, value: object) -> str:
    """The value of a fact, as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and name in _BYTES:
        return size(value)
    if isinstance(value, dict):
        return _dictionary(value)
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _dictionary(value: dict[str, object]) -> str:
    """Each name with its text, such as CPU vulnerabilities. Those that do not affect this CPU are
    only counted.
    """
    concerned = [f"{name}: {said}" for name, said in value.items() if said != "Not affected"]
    rest = len(value) - len(concerned)
    return "; ".join(concerned + [f"{rest} not affected"] * (rest > 0)) or "none"


def _ceilings(profile: MachineProfile) -> Iterator[str]:
    count = max((len(c.samples) for c in profile.ceilings), default=0)
    yield f"Ceilings in GB/s: median of {count} launches (99 % interval); + prefetching, ? unstable"
    if any(len(c.samples) < count for c in profile.ceilings):
        yield "! fewer launches: the interval covers all of them, with less than 99 %"
    kinds = dict.fromkeys([usual_pages(profile.ceilings), *(c.pages for c in profile.ceilings)])
    for cpus in profile.cpu_sets:
        for pages in kinds:
            own = [c for c in profile.ceilings if c.cpus == cpus and c.pages == pages]
            if own:
                yield from _table_of(own, f"{_threads(cpus)}, {_given(own, pages)}", count)
                needed, most = dram_bytes(profile.topology, cpus), max(c.bytes for c in own)
                if needed and most and not any(c.level == "DRAM" for c in own):
                    yield f"  DRAM: not testable, needs {size(needed)} but had only {size(most)}"


def _given(own: Sequence[CeilingRow], pages: str) -> str:
    """The kind of pages asked for, and the share of huge pages that the system really gave."""
    shares = [c.huge for c in own if c.huge is not None]
    return f"{pages} pages" + (
        f" ({min(shares):.0%} of them huge)" if shares and pages != "base" else ""
    )


def _table_of(own: Sequence[CeilingRow], title: str, count: int) -> Iterator[str]:
    """A table: the best rate of all footprints and forms for each level; the least latency."""
    tier = next((c.isa for c in own if c.op in ("read", "write")), "")
    levels = _columns(own)
    rows = []
    for op in _OPS:
        sign = -1 if op == "latency" else 1
        each = [[c for c in ceilings if c.op == op] for ceilings in levels.values()]
        if any(each):
            best = [max(found, key=lambda c: sign * c.median, default=None) for found in each]
            head = "latency ns" if op == "latency" else op
            rows.append(
                dict(zip(("", *levels), (head, *(_cell(c, count) for c in best)), strict=True))
            )
    yield from ("", f"{title}, {tier}")
    if rows:
        yield from (
            f"  {line}"
            for line in ruled(pd.DataFrame(rows), [Column(name, name) for name in rows[0]])
        )
    alone = [c for c in own if c.op in WITHOUT_MEMORY]
    if alone:
        names = (
            f"{'fma' if c.op == FLOPS else c.op} {c.isa}" if c.op in COMPUTE else c.op
            for c in alone
        )
        said = (
            f"{name} {_cell(c, count)} {UNITS[c.op]}" for name, c in zip(names, alone, strict=True)
        )
        yield f"  {', '.join(said)}"


def _columns(own: Sequence[CeilingRow]) -> dict[str, list[CeilingRow]]:
    """The ceilings of each level, by rising footprint. If no level is known: only the ceilings of
    the largest footprint.
    """
    walks = sorted((c for c in own if c.level not in ("mixed", "core")), key=lambda c: c.bytes)
    columns = grouped((c.level, c) for c in walks if c.level != "unknown")
    if walks and not columns:
        largest = {c.op: c.bytes for c in walks if c.op != "latency"}
        most = min(largest.values(), default=walks[-1].bytes)
        columns[size(most)] = [c for c in walks if c.bytes == most]
    return columns


def _cell(ceiling: CeilingRow | None, count: int) -> str:
    if ceiling is None:
        return "-"
    marks = {"+": ceiling.form != PLAIN, "?": not ceiling.stable, "!": len(ceiling.samples) < count}
    mark = "".join(sign for sign, holds in marks.items() if holds)
    return f"{ceiling.median:.3g}{mark} ({ceiling.low:.3g}..{ceiling.high:.3g})"


def _threads(cpus: tuple[int, ...]) -> str:
    return f"{counted(len(cpus), 'thread')} on {_named(cpus)}"


def _named(cpus: tuple[int, ...]) -> str:
    return f"CPU{'s' if len(cpus) > 1 else ''} {cpu_text(cpus)}"


def _stairs(profile: MachineProfile) -> Iterator[str]:
    if not profile.ceilings:
        return
    cpus = profile.cpu_sets[-1]
    counts, rates = staircase(profile.ceilings, cpus)
    levels = {c.bytes: c.level for c in profile.ceilings if c.cpus == cpus and c.op == "read"}
    yield (
        f"Plain read by footprint in GB/s, {_threads(cpus)}, {usual_pages(profile.ceilings)} pages"
    )
    for count, rate in zip(counts, rates, strict=True):
        yield (
            f"  {size(count):>11}  {levels[count]:<7}  {'█' * round(_BAR * rate / max(rates))}"
            f" {rate:.3g}"
        )


def _capacities(profile: MachineProfile) -> Iterator[str]:
    if not profile.topology.caches:
        yield "No cache is declared. Plateaus of the plain reads:"
        for p in profile.plateaus:
            yield f"  {size(p.low_bytes):>9} to {size(p.high_bytes):>9}   {p.gbps:.3g} GB/s"
        return
    yield "Capacities of a cache: declared, and as plain reads show it"
    for c in profile.capacities:
        seen = (
            f"{size(c.effective)}, between {size(c.low)} and {size(c.high)}"
            if c.effective and c.low and c.high
            else c.note
        )
        yield f"  L{c.level}  {size(c.declared):>9}   {seen}"
        if c.effective and c.note:
            yield f"      warning: {c.note}"
    for window in profile.windows:
        state = "can be tested" if window.open else "cannot be tested"
        yield (
            f"  L3 of {_named(window.cpus)} holds footprints of"
            f" {counted(window.threads, 'thread')} from {size(window.low)} to {size(window.high)}:"
            f" {state}; at most {window.largest_threads} threads can test L3"
        )
    if profile.advice:
        yield f"  {profile.advice}"


def _loaded(profile: MachineProfile) -> Iterator[str]:
    """The table of latency beside loads. Plain reads and copies are shown once, from the rounds of
    the first decode.
    """
    if not profile.idle:
        return
    first, virtual = profile.idle[0], is_virtual(profile.topology.facts.get("hypervisor"))
    own = {row.kernel for row in profile.idle}
    rows = [row for row in profile.loaded if row.point == first.point or row.load in own]
    table = pd.DataFrame([*_idle_cells(first), *map(_loaded_cells, rows)])
    yield from ("", words("loaded", "title", first))
    yield from (f"  {line}" for line in ruled(table, [Column(name, name) for name in _HEADS]))
    yield from (f"  {line}" for line in paragraphs("loaded", "sentence", profile.idle, virtual))


def _idle_cells(row: IdleRow) -> Iterator[dict[str, str]]:
    """Two rows: idle, and beside threads that spin in L1. All values are text; empty if unknown."""
    cells = {_SHARE: "", _RATE: "", _TIMES: ""}
    yield _cells(row) | cells | {_LOAD: "none"}
    yield cells | {_LOAD: "spin in L1", _NS: number(row.spin), _TAIL: ""}


def _loaded_cells(row: LoadedRow) -> dict[str, str]:
    return _cells(row) | {
        _LOAD: words("loaded", "load", row.load),
        _SHARE: f"{row.share}%",
        _RATE: number(row.gbps),
        _TIMES: f"{row.times:.2f}",
    }


def _cells(row: IdleRow | LoadedRow) -> dict[str, str]:
    interval = f"{number(row.low)}..{number(row.high)}"
    return {_LOAD: "", _NS: f"{number(row.ns)} ({interval})", _TAIL: number(row.tail)}

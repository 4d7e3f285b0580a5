"""The rules by which a run is valid, noisy, open or invalid. Each broken rule is named, with its
numbers.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Annotated, Any

from kvbench.analysis.limits.above import Roof
from kvbench.analysis.limits.frames import disturbed, known
from kvbench.analysis.measured.speeds import SLOW, speeds
from kvbench.grouping import grouped
from kvbench.machine.placement import place
from kvbench.model import Machine, Point, Record
from kvbench.model.annotated import about
from kvbench.regime import dram_bytes
from kvbench.score.definition import RULES, WIDTHS, counted, geometry

VALID, NOISY, OPEN, INVALID = STATES = ("valid", "noisy", "open", "invalid")
_MILD = {"own": OPEN, "width": NOISY}  # rules that a run may break without being invalid
_WORKLOAD = {"op": "decode", "residency": "rotate"}

Value = str | float


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a run breaks."""

    rule: Annotated[str, about("its name")]
    facts: Annotated[dict[str, Value], about("what was found, and what is wanted")]
    bits: Annotated[int, about("of the figure that it is about; 0: of all")] = 0


@dataclass(frozen=True, slots=True)
class ScoredPoint:
    """A point of the run, its row in the table of points, and its visits."""

    bits: int
    point: Point
    row: dict[str, Any]
    records: tuple[Record, ...]

    @property
    def half_width(self) -> float:
        return self.row["spread"] / 2 if self.row.get("launches", 0) > 1 else 1.0


def state(breaches: Sequence[Breach]) -> str:
    """The worst state that any of the breaches gives a run."""
    return max(
        (_MILD.get(each.rule, INVALID) for each in breaches), key=STATES.index, default=VALID
    )


def weighed(found: Sequence[Breach]) -> tuple[Breach, ...]:
    """Each breach once, the worst first."""
    once = [each for place, each in enumerate(found) if each not in found[:place]]
    return tuple(sorted(once, key=lambda each: -STATES.index(state([each]))))


def breaches(
    machine: Machine, measured: Sequence[ScoredPoint], records: Sequence[Record]
) -> Iterator[Breach]:
    """Find the breached rules. records: all visits of the run, probes too."""
    yield from _contaminated(measured, records)  # first, because much else follows from it
    for bits in WIDTHS:
        kernels = {each.point.kernel for each in measured if each.bits == bits}
        if len(kernels) != 1:
            yield Breach("kernels", {"count": len(kernels)}, bits)
    for each in measured:
        yield from _of_workload(each, machine)
        yield from _of_numbers(each, machine)


def _of_workload(each: ScoredPoint, machine: Machine) -> Iterator[Breach]:
    point, (layers, shape) = each.point, geometry()
    wanted = _WORKLOAD | {one.name: getattr(shape, one.name) for one in fields(shape)}
    for name, value in wanted.items():
        found = getattr(point, name) if name in _WORKLOAD else getattr(point.shape, name)
        right = found > 0 and found % layers == 0 if name == "layers" else found == value
        if not right:
            yield Breach(
                "workload", {"name": name, "found": found, "wanted": value or layers}, each.bits
            )
    if each.bits == WIDTHS[0] and point.variant != "flash":
        yield Breach(
            "workload", {"name": "variant", "found": point.variant, "wanted": "flash"}, each.bits
        )
    if len(set(point.cpus)) < (cores := len(place(machine, None, "all"))):
        yield Breach("cores", {"found": len(set(point.cpus)), "wanted": cores}, each.bits)
    count = counted(point.dtype, shape)
    moved = [record.traffic["point"].bytes_compulsory for record in each.records if record.complete]
    if any(abs(found - count) > RULES.counted * count for found in moved):
        yield Breach(
            "bytes",
            {"found": min(moved, key=lambda found: -abs(found - count)), "wanted": count},
            each.bits,
        )


def _of_numbers(each: ScoredPoint, machine: Machine) -> Iterator[Breach]:
    row, good = each.row, [record for record in each.records if record.complete]
    if errors := [record.error for record in each.records if record.error]:
        yield Breach("answers", {"found": errors[0]}, each.bits)
    if (launches := int(row.get("launches", 0))) < RULES.launches:
        yield Breach("launches", {"found": launches, "wanted": RULES.launches}, each.bits)
    if not good:
        return
    least, footprint = (
        dram_bytes(machine, each.point.cpus),
        min(record.footprint for record in good),
    )
    if least is None or footprint < least:
        yield Breach("caches", {"found": footprint, "wanted": least or 0.0}, each.bits)
    if row["suspect"] and row["above"] != Roof.CORE:
        yield Breach("above", {"found": row["above"], "reason": row["above_reason"]}, each.bits)
    share = known(row["twin_gbps"] / row["ceiling_gbps"]) or 0.0  # NaN if either is missing
    if not RULES.reads[0] <= share <= RULES.reads[1]:
        yield Breach("witnesses", {"found": share}, each.bits)
    if each.point.schedule == "auto" and each.half_width > RULES.half_width:
        yield Breach("width", {"found": each.half_width, "wanted": RULES.half_width}, each.bits)


def _contaminated(measured: Sequence[ScoredPoint], records: Sequence[Record]) -> Iterator[Breach]:
    """Find launches that were disturbed, by number, even if the points' own numbers do not show
    it.
    """
    slow = {
        r.launch: speed
        for r, speed in zip(records, speeds(records), strict=True)
        if isinstance(r.point, Point) and speed and speed < SLOW
    }
    met, taken = Counter[int](), Counter[int]()
    for each in measured:
        for record in each.records:
            taken[record.launch] += len(record.samples)
            met[record.launch] += sum(
                disturbed(sample, each.point.threads) for sample in record.samples
            )
    less = _reads(measured)
    for launch in sorted(taken):
        if met[launch] > RULES.disturbed * taken[launch]:
            yield Breach("contaminated", {"launch": launch, "met": met[launch] / taken[launch]})
        elif less.get(launch, 1.0) < RULES.slower:
            yield Breach("contaminated", {"launch": launch, "reads": less[launch]})
        elif launch in slow:
            yield Breach("contaminated", {"launch": launch, "cores": slow[launch]})


def _reads(measured: Sequence[ScoredPoint]) -> dict[int, float]:
    """By launch: how fast the reads beside the points were, as a share of those of all launches."""
    rates = (
        {
            record.launch: median(
                s.passes / s.seconds for s in record.samples if s.program == "twin"
            )
            for record in each.records
            if any(s.program == "twin" for s in record.samples)
        }
        for each in measured
    )
    shares = grouped(
        (launch, rate / median(own.values())) for own in rates for launch, rate in own.items()
    )
    return {launch: median(found) for launch, found in shares.items()}

"""The figures of a score, computed from the visits of its run."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from kvbench.analysis.limits import frames
from kvbench.analysis.limits.frames import known
from kvbench.analysis.measured.columns import machine_name
from kvbench.analysis.measured.machines import IdleRow, LoadedRow, beside_loads
from kvbench.grouping import grouped
from kvbench.model import AUTO, TUNER, Machine, Point, Record
from kvbench.model.annotated import Printed, about
from kvbench.score.consistency import impossible
from kvbench.score.definition import VERSION, WIDTHS, digest, geometry, width
from kvbench.score.rules import Breach, ScoredPoint, breaches, state, weighed
from kvbench.store import Manifest


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens per second: the median of the launches, and its interval."""

    tokens: Annotated[float, about("tokens per second: of all sequences, attention alone")]
    low: Annotated[float, about("tokens per second: lower end of its interval")]
    high: Annotated[float, about("tokens per second: upper end of its interval")]

    @classmethod
    def of(cls, row: dict[str, Any], batch: int) -> "Rate":
        step = batch / geometry()[0]
        return cls(step / row["seconds"], step / row["seconds_high"], step / row["seconds_low"])


@dataclass(frozen=True, slots=True)
class ScoreFigure:
    """The speed that caches of one width allow."""

    bits: Annotated[int, about("bits of an element")]
    kernel: Annotated[str, about("op.variant.layout.dtype.isa")]
    variant: Annotated[str, about("the way of doing it")]
    layout: Annotated[str, about("layout of the cache")]
    dtype: Annotated[str, about("number format of the cache")]
    tuned: Annotated[
        Rate, about("by the schedule that was measured to be the fastest: the figure to quote")
    ]
    base: Annotated[Rate | None, about("by the schedule that the library uses without measuring")]
    schedule: Annotated[str, about("the schedule that was chosen")]
    gbps: Annotated[float, about("GB/s: of the tuned rate")]
    share: Annotated[float | None, about("share of the plain reads of memory in the same run")]
    error: Annotated[float, about("absolute: largest error of an answer")]


@dataclass(frozen=True, slots=True)
class Longer:
    """The tuned kernel on more tokens; not part of the score."""

    bits: Annotated[int, about("bits of an element")]
    batch: Annotated[int, about("sequences")]
    context: Annotated[int, about("tokens of each")]
    rate: Annotated[Rate, about("of three launches")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Printed):
    """A score. Two can be compared if `score` and `digest` are equal, and neither is invalid."""

    score: Annotated[str, about("version of the workload and of the rules")]
    digest: Annotated[str, about("digest of all that this version covers")]
    state: Annotated[
        str, about("what the rules make of the run", "valid", "noisy", "open", "invalid")
    ]
    breaches: Annotated[tuple[Breach, ...], about("the rules that it breaks")]
    machine: Annotated[str, about("name of the machine")]
    kind: Annotated[str, about("bare metal, the hypervisor's name, or unknown")]
    threads: Annotated[int, about("threads, one for each core")]
    read_gbps: Annotated[float | None, about("GB/s: plain reads of memory by these threads")]
    best_gbps: Annotated[float | None, about("GB/s: the best reads of memory in any form")]
    figures: Annotated[tuple[ScoreFigure, ...], about("by width, the widest first")]
    longer: Annotated[tuple[Longer, ...], about("the second line")]
    idle: Annotated[
        tuple[IdleRow, ...],
        about("idle latency of memory, in the rounds of the 16-bit kernel; not part of the score"),
    ]
    loaded: Annotated[
        tuple[LoadedRow, ...], about("latency of memory beside loads; not part of the score")
    ]
    created: Annotated[str, about("when the run began")]
    run: Annotated[str, about("name of the run")]
    build: Annotated[str, about("build of the kernels")]
    tuner: Annotated[int, about("version of how schedules are chosen")]

    @property
    def tag(self) -> str:
        return f"{self.score} #{self.digest}"


def score(
    manifest: Manifest,
    machine: Machine,
    records: Sequence[Record],
    longer: Sequence[Record] = (),
    loaded: Sequence[Record] = (),
    more: Iterable[Breach] = (),
    archived: bool = False,
) -> Score:
    """Compute a score. longer, loaded: visits of the second and third line. more: breaches found in
    the run's files. archived: anybody may have written the files, so impossible numbers are looked
    for.
    """
    measured = list(_measured(manifest, machine, records))
    own = any(manifest.options.get(option) for option in ("library", "plugin"))
    beside = _rows(longer, machine)
    seen = ([each.row for each in measured if each.row], records), (beside, longer)
    claims = (breach for each in seen for breach in impossible(*each)) if archived else ()
    found = weighed(
        [
            *more,
            *claims,
            *breaches(machine, measured, records),
            *([Breach("own", {})] if own else []),
        ]
    )
    tuned = [each for each in measured if each.point.schedule == AUTO and each.row.get("launches")]
    first = tuned[0].row if tuned else {}
    idle, beside_idle = beside_loads(loaded, machine)
    fact = machine.facts.get("hypervisor")
    kind = str(fact.value) if fact and fact.value else "unknown"
    return Score(
        score=VERSION,
        digest=digest(),
        state=state(found),
        breaches=found,
        machine=machine_name(machine),
        kind="bare metal" if kind == "none" else kind,
        threads=max((each.point.threads for each in measured), default=0),
        read_gbps=known(first["dram_gbps"]) if first else None,
        best_gbps=known(first["ceiling_gbps"]) if first else None,
        figures=tuple(
            _figure(each, measured) for each in sorted(tuned, key=lambda each: -each.bits)
        ),
        longer=tuple(_longer(longer, beside)),
        idle=idle,
        loaded=beside_idle,
        created=manifest.created,
        run=manifest.run,
        build=manifest.versions.get("library", ""),
        tuner=TUNER,
    )


def _measured(
    manifest: Manifest, machine: Machine, records: Sequence[Record]
) -> Iterator[ScoredPoint]:
    rows = {row["name"]: row for row in _rows(records, machine)}
    visits = grouped((record.point, record) for record in records)
    for point in manifest.plan.points:
        if isinstance(point, Point):
            yield ScoredPoint(
                width(point), point, rows.get(point.name, {}), tuple(visits.get(point, ()))
            )


def _figure(tuned: ScoredPoint, measured: Sequence[ScoredPoint]) -> ScoreFigure:
    row, kernel = tuned.row, tuned.point.kernel
    others = [
        each.row for each in measured if each.point.kernel == kernel and each.point.schedule != AUTO
    ]
    base = [Rate.of(other, 1) for other in others if other.get("launches")]
    return ScoreFigure(
        bits=tuned.bits,
        kernel=kernel,
        **{name: getattr(tuned.point, name) for name in ("variant", "layout", "dtype")},
        tuned=Rate.of(row, tuned.point.shape.batch),
        base=base[0] if base else None,
        schedule=row["ran"],
        gbps=row["gbps"],
        share=known(row["gbps"] / row["dram_gbps"]),
        error=row["max_abs_err"],
    )


def _rows(records: Sequence[Record], machine: Machine) -> list[dict[str, Any]]:
    return frames.points(records, machine).to_dict("records") if records else []


def _longer(records: Sequence[Record], rows: Sequence[dict[str, Any]]) -> Iterator[Longer]:
    points = {
        record.point.name: record.point for record in records if isinstance(record.point, Point)
    }
    found = []
    for row in rows:
        if row["launches"]:
            shape, bits = points[row["name"]].shape, width(points[row["name"]])
            found.append(Longer(bits, shape.batch, shape.context, Rate.of(row, shape.batch)))
    yield from sorted(found, key=lambda each: (-each.batch, WIDTHS.index(each.bits)))

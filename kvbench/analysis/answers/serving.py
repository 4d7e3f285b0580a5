"""What a batch of real requests costs, and what padding costs it: steps of the same requests with
their real lengths, with equal lengths and as many tokens, and padded to the longest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Annotated, Any

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Basis, Figure, Reason, Unit
from kvbench.analysis.answers.l3 import figure
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.measured.estimates import Estimate
from kvbench.grouping import grouped
from kvbench.model import DEFAULTS, HEADS, Contrast, Point, Record
from kvbench.model.annotated import about
from kvbench.model.contrast import LENGTHS, lines, value
from kvbench.model.geometry import Geometry
from kvbench.model.point import STEP
from kvbench.model.shape import EVEN

_SETTING = ("variant", "isa", "threads", "pages", "memory", "residency", "schedule", "between")


class Way(StrEnum):
    """The lengths of a batch's sequences."""

    EVEN = "even"
    AS_THEY_ARE = "as they are"
    PADDED = "padded"


@dataclass(frozen=True, slots=True)
class Served:
    """A batch with one kind of lengths."""

    way: Annotated[Way, about("even, as they are, or padded")]
    point: Annotated[str, about("its name")]
    shortest: Annotated[int, about("tokens: of the shortest sequence")]
    longest: Annotated[int, about("tokens: of the longest sequence")]
    tokens: Annotated[int, about("tokens: all sequences together")]
    step: Annotated[Answer, about("seconds: one step of all the model's layers")]
    sequence: Annotated[Answer, about("tokens per second: one sequence")]
    whole: Annotated[Answer, about("tokens per second: the batch")]


@dataclass(frozen=True, slots=True)
class Batch:
    """A number of requests in one format and layout. `ways`: even, as they are, padded, as far as
    timed. A batch of one request has only "as they are".
    """

    batch: Annotated[int, about("sequences")]
    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("layout of the cache")]
    ways: Annotated[tuple[Served, ...], about("by the lengths of its sequences")]
    padding: Annotated[
        Answer, about("times as fast with the real lengths as padded to the longest")
    ]
    raggedness: Annotated[
        Answer, about("times as fast with equal lengths as with the real ones, with as many tokens")
    ]

    @property
    def setting(self) -> tuple[str, str]:
        return self.dtype, self.layout


@dataclass(frozen=True, slots=True)
class Serving:
    """The answers about batches. `batches`: the usual dtype and layout first, then the smallest
    batch first. `padding`: of the largest batch of the first dtype and layout.
    """

    padding: Annotated[
        Answer, about("times as fast with the real lengths as padded to the longest")
    ]
    batches: Annotated[tuple[Batch, ...], about("by dtype, layout and number of requests")]
    model: Annotated[str, about("model of the steps; empty if unknown")] = ""
    layers: Annotated[int, about("layers of the model; steps are reported for all of them")] = 0
    timed: Annotated[int, about("layers of a step as it was timed; all are alike")] = 0
    threads: Annotated[int, about("threads that serve")] = 0
    between: Annotated[int, about("bytes: weights of a layer that a step also reads")] = 0

    @property
    def points(self) -> frozenset[str]:
        """The names of the batches' points."""
        return frozenset(way.point for each in self.batches for way in each.ways)

    @property
    def largest(self) -> Batch:
        return _largest(self.batches)


_Rows = Mapping[str, Row]  # of the table of points, by name


def serving(tables: Tables) -> Serving:
    """The answers from steps whose requests have several lengths: those of one setting with the
    most threads. Suspect steps are left out.
    """
    suspect = tables.points["suspect"].fillna(False).astype(bool)
    known = tables.points[tables.points["seconds"].notna() & ~suspect]
    rows = {row["name"]: row for row in known.to_dict("records")}
    steps = _steps(tables.records, rows)
    found = _of_one_setting(list(lines(steps, LENGTHS)))
    model = _model(found, tables.models)
    if not found or model is None:
        reason = Reason.NO_MODEL if found else Reason.NOT_MEASURED
        return Serving(Answer.untested("padding", reason), ())
    timed = found[0][0].shape.layers
    said = _Said(tables, rows, model.layers / timed)
    alone = [[step] for step in steps if _is_alone(step, found)]
    batches = tuple(said.batch(line) for line in sorted([*alone, *found], key=_order))
    return Serving(
        padding=_largest(batches).padding,
        batches=batches,
        model=model.name,
        layers=model.layers,
        timed=timed,
        threads=found[0][0].threads,
        between=found[0][0].between,
    )


def _largest(batches: Sequence[Batch]) -> Batch:
    """The largest batch of the first number format and layout."""
    return [each for each in batches if each.setting == batches[0].setting][-1]


def _steps(records: Sequence[Record], rows: _Rows) -> list[Point]:
    own = dict.fromkeys(record.point for record in records if isinstance(record.point, Point))
    return [point for point in own if point.op == STEP and point.name in rows]


def _of_one_setting(found: list[list[Point]]) -> list[list[Point]]:
    """The sets of the setting with the most threads; of several such settings the one with the most
    sets.
    """
    settings = grouped((_setting(line[0]), line) for line in found)
    most = [(line[0][0].threads, len(line), line) for line in settings.values()]
    return max(most, key=lambda each: each[:2])[-1] if most else []


def _setting(point: Point) -> tuple[object, ...]:
    shape = point.shape
    own = tuple(getattr(point, name) for name in _SETTING)
    return (*own, shape.layers, shape.window, shape.full_every, *_heads(shape))


def _heads(of: object) -> tuple[int, ...]:
    return tuple(getattr(of, name) for name in HEADS)


def _model(found: Sequence[Sequence[Point]], models: Sequence[Geometry]) -> Geometry | None:
    """The model whose layers a step has: all of them, or any number if all are alike."""
    for model in models if found else ():
        shape = found[0][0].shape
        if _heads(shape) == _heads(model) and (
            shape.layers == model.layers or not shape.window and not model.sliding(shape.context)
        ):
            return model
    return None


def _is_alone(step: Point, found: Iterable[Sequence[Point]]) -> bool:
    """Whether the step is the first request of a larger batch."""
    if step.shape.batch > 1:
        return False
    return any(
        _setting(step) == _setting(line[0])
        and (step.layout, step.dtype) == (line[0].layout, line[0].dtype)
        and step.shape.context == _as_they_are(line).shape.held[0]
        for line in found
    )


def _as_they_are(line: Sequence[Point]) -> Point:
    """The point with the real lengths; if the set has one request, its only point."""
    return next((point for point in line if point.shape.lengths != EVEN), line[0])


def _order(line: Sequence[Point]) -> tuple[object, ...]:
    """The order of sets: the usual number format and layout first."""
    first = line[0]
    usual = (getattr(first, name) != DEFAULTS[name] for name in ("dtype", "layout"))
    return *usual, first.dtype, first.layout, first.shape.batch


class _Said:
    """Builds the answers on a batch. `scale`: the model's layers over the timed layers."""

    def __init__(self, tables: Tables, rows: _Rows, scale: float) -> None:
        self._rows, self._scale = rows, scale
        self._asked = tables.contrasts[tables.contrasts["factor"] == LENGTHS]
        self._beside = _in_rounds(tables.records)

    def batch(self, line: Sequence[Point]) -> Batch:
        own = _as_they_are(line)
        longest = max(own.shape.held)
        ways = {_way(point, own, longest): point for point in line}
        return Batch(
            batch=own.shape.batch,
            dtype=own.dtype,
            layout=own.layout,
            ways=tuple(self._served(point, way) for way, point in ways.items()),
            padding=self._lead("padding", own, ways.get(Way.PADDED)),
            raggedness=self._lead("raggedness", ways.get(Way.EVEN), own),
        )

    def _lead(self, question: str, one: Point | None, other: Point | None) -> Answer:
        if one is None or other is None:
            return Answer.untested(question, Reason.NOT_MEASURED)
        return pairs.lead(self._asked, one.name, other.name, question, f"{one.dtype} {one.layout}")

    def _served(self, point: Point, way: Way) -> Served:
        held, row = point.shape.held, self._rows[point.name]
        beside = self._beside.get(point)
        found = figure(row, "seconds", Unit.SECONDS)
        if beside:
            found = Figure(beside.median, beside.low, beside.high, Unit.SECONDS)
        step, low, high = (self._scale * each for each in (found.value, found.low, found.high))

        def told(question: str, *told: Any) -> Answer:
            return Answer(
                question,
                way,
                (point.name,),
                Figure(*told),
                basis=Basis.ROUNDS if beside else Basis.APART,
                launches=beside.launches if beside else int(row["launches"]),
            )

        batch = len(held)
        return Served(
            way=way,
            point=point.name,
            shortest=min(held),
            longest=max(held),
            tokens=sum(held),
            step=told("step", step, low, high, Unit.SECONDS),
            sequence=told("sequence", 1 / step, 1 / high, 1 / low, Unit.TOKENS),
            whole=told("batch", batch / step, batch / high, batch / low, Unit.TOKENS),
        )


def _way(point: Point, own: Point, longest: int) -> Way:
    if point is own:
        return Way.AS_THEY_ARE
    return Way.PADDED if point.shape.context == longest else Way.EVEN


def _in_rounds(records: Iterable[Record]) -> dict[Point, Estimate]:
    """Seconds of a pass of each point that was timed beside points with other lengths."""
    taken = (
        ((point, record.launch), sample.each)
        for record in records
        if isinstance(record.point, Contrast) and record.point.factor == LENGTHS
        for point in record.point.points
        for sample in record.samples
        if sample.program == value(point, LENGTHS)
    )
    launches = grouped((point, median(own)) for (point, _), own in grouped(taken).items())
    return {point: Estimate.of(values) for point, values in launches.items()}

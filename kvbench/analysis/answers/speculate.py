"""How many draft tokens are worth verifying: how much longer attention takes for several queries in
a step than for one, in the same rounds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Basis, Figure, Held, Reason, State, Unit
from kvbench.analysis.answers.decodes import limited
from kvbench.analysis.answers.l3 import model_of
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.measured.estimates import enough
from kvbench.analysis.measured.families import by_queries
from kvbench.analysis.measured.members import Beside, beside_one
from kvbench.analysis.measured.rates import by_point
from kvbench.grouping import grouped
from kvbench.model import DEFAULTS, Point
from kvbench.model.annotated import about
from kvbench.native import default_library

_USUAL = 5  # queries of a step: the newest token and 4 drafts, a common number
_SAME = ("dtype", "layout", "variant", "group", "context", "threads", "batch")


class Worth(StrEnum):
    """Whether a step with several queries pays, for attention alone."""

    FREE = "free"  # it takes no longer than one query
    MORE = "more tokens"  # it pays if it yields more tokens than its ratio to one query
    HARDLY = "hardly"  # it may take as long as that many steps with one query
    NEVER = "never"  # it surely takes as long
    NOT_CLEAR = "not clear"


@dataclass(frozen=True, slots=True)
class Queries:
    """A step with several queries: one for the newest token and one for each draft token."""

    queries: Annotated[int, about("queries of each sequence in a step")]
    drafts: Annotated[int, about("draft tokens that it verifies: queries - 1")]
    point: Annotated[str, about("its name")]
    times: Annotated[
        Answer,
        about(
            "times as long as a step with one query: attention pays if a step yields more tokens"
            " than this, counting its accepted drafts and the one that every step yields"
        ),
    ]
    accepted: Annotated[
        float | None,
        about(
            "tokens: drafts that a step must have accepted on average so that attention pays:"
            " `times` - 1; null if not timed"
        ),
    ]
    core: Annotated[
        Answer, about("core time (data in a private cache) over the same step with one query")
    ]
    limit: Annotated[Answer, about("what limits it; `reason` is the word")]
    worth: Annotated[Worth, about("whether it pays: free, more tokens, hardly, never, not clear")]


@dataclass(frozen=True, slots=True)
class Line:
    """A decode and its `steps`, from few queries to many."""

    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("layout of the cache")]
    variant: Annotated[str, about("variant of the kernel")]
    group: Annotated[int, about("query heads per KV head")]
    context: Annotated[int, about("tokens that every sequence holds")]
    threads: Annotated[int, about("threads that decode")]
    batch: Annotated[int, about("sequences")]
    mask: Annotated[str, about("which of the newest tokens each query attends to")]
    model: Annotated[str, about("model of the layer; empty if unknown")]
    level: Annotated[str, about("level that feeds it")]
    point: Annotated[str, about("name of the point with one query")]
    limit: Annotated[Answer, about("what limits that point; `reason` is the word")]
    steps: Annotated[tuple[Queries, ...], about("by the number of queries")]

    def at(self, queries: int) -> Queries | None:
        """The step with that many queries; None if not timed."""
        return next((step for step in self.steps if step.queries == queries), None)

    @property
    def place(self) -> tuple[object, ...]:
        """A key that the lines of one panel share."""
        return self.model, self.group, self.context, self.threads, self.batch, self.mask


@dataclass(frozen=True, slots=True)
class Speculation:
    """The answers about several queries. `lines`: those of the page first, at the longest context.
    `usual`: queries of the step on the first screen; 0 if none was timed.
    """

    lines: Annotated[tuple[Line, ...], about("by dtype, layout, heads, context and threads")] = ()
    usual: Annotated[int, about("queries of a step: 5, or the nearest number that was timed")] = 0

    @property
    def page(self) -> tuple[Line, ...]:
        """The lines of the first screen, with the usual mask if that was timed."""
        return tuple(line for line in self.lines if line.place == self.lines[0].place)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of queries that were timed."""
        return tuple(sorted({step.queries for line in self.lines for step in line.steps}))


def speculation(tables: Tables, page: Workload) -> Speculation:
    """The answers, without suspect points."""
    suspect = tables.points["suspect"].fillna(False).astype(bool)
    known = tables.points[tables.points["seconds"].notna() & ~suspect]
    said = _Said(tables, {row["name"]: row for row in known.to_dict("records")}, page)
    lines = sorted(said.lines(), key=lambda line: _order(line, page))
    if not lines:
        return Speculation()
    counts = [step.queries for step in lines[0].steps]
    return Speculation(tuple(lines), min(counts, key=lambda count: abs(count - _USUAL)))


def _order(line: Line, page: Workload) -> tuple[object, ...]:
    """The order of lines: it depends on what was asked for, not on measurements."""
    dtypes = default_library().words("dtype")
    unlike = line.model != page.model, line.threads != page.threads, line.batch != page.batch
    usual = (getattr(line, name) != DEFAULTS[name] for name in ("mask", "layout"))
    where = -line.context, line.model, line.group, -line.threads, line.batch
    dtype = dtypes.index(line.dtype) if line.dtype in dtypes else len(dtypes)
    return *unlike, *where, dtype, line.dtype, *usual, line.variant, line.layout, line.point


class _Said:
    """Builds the answers on steps with several queries. `rows`: of the table of points, by name."""

    def __init__(self, tables: Tables, rows: Mapping[str, Row], page: Workload) -> None:
        self._rows, self._models, self._page = rows, tables.models, page
        asked = tables.contrasts[tables.contrasts["factor"] == pairs.QUERIES]
        self._judged = {row["other_name"]: row for row in asked.to_dict("records")}
        points = by_point(tables.records)
        self._families = by_queries(points)
        self._beside = {point: found for _, point, found in beside_one(points)}

    def lines(self) -> Iterator[Line]:
        for base, members in self._families.items():
            own = [each for each in members if each.name in self._rows and each in self._beside]
            masks = grouped((each.shape.mask, each) for each in own)
            for mask, points in masks.items() if base.name in self._rows else ():
                row = self._rows[base.name]
                yield Line(
                    **{name: row[name] for name in _SAME},
                    mask=mask,
                    model=model_of(row, self._models, self._page),
                    level=row["regime"],
                    point=base.name,
                    limit=limited(row),
                    steps=tuple(map(self._step, points)),
                )

    def _step(self, point: Point) -> Queries:
        row, queries = self._rows[point.name], point.shape.q_len
        times = _times(self._judged[point.name])
        return Queries(
            queries=queries,
            drafts=queries - 1,
            point=point.name,
            times=times,
            accepted=max(0.0, times.figure.value - 1) if times.figure else None,
            core=_core(row, self._beside[point], times.against),
            limit=limited(row),
            worth=_worth(times, queries),
        )


def _times(row: Row) -> Answer:
    """How many times as long as one query a step takes."""
    found = pairs.answer(row, "queries", row["dtype"], turned=True)
    own = found.figure and replace(found.figure, unit=Unit.LENGTH)
    return replace(found, subject=(row["other_name"],), against=row["base_name"], figure=own)


def _core(row: Row, found: Beside, base: str) -> Answer:
    own = found.core
    if own is None or not enough(own.launches):
        reason = Reason.TOO_FEW if own else Reason.NOT_MEASURED
        return Answer.untested("core of queries", reason, row["dtype"])
    return Answer(
        "core of queries",
        row["dtype"],
        (row["name"],),
        Figure(own.median, own.low, own.high, Unit.LENGTH),
        Held.POINT,
        base,
        Basis.ROUNDS,
        launches=own.launches,
    )


def _worth(times: Answer, queries: int) -> Worth:
    """Judge whether a step pays if it yields at most one token for each query."""
    if times.state is State.LEVEL:
        return Worth.FREE
    if times.state is not State.DECIDED or times.figure is None:
        return Worth.NOT_CLEAR
    if times.figure.high >= queries:
        return Worth.NEVER if times.figure.low >= queries else Worth.HARDLY
    return Worth.MORE if times.figure.value > 1 else Worth.FREE

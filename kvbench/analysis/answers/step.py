"""What a whole step takes, whether it is the sum of its parts, and if not, which part differs
within the step.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import pandas as pd

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Basis, Figure, Held, Reason, State, Unit
from kvbench.analysis.answers.decodes import limited
from kvbench.analysis.answers.l3 import figure
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.answers.workload import CONTEXT, Workload
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.judge import FASTER, SLOWER
from kvbench.analysis.limits.bounds import FAR
from kvbench.analysis.measured.estimates import Estimate
from kvbench.analysis.measured.rates import by_point
from kvbench.analysis.measured.steps import whole
from kvbench.model import HEADS, Record
from kvbench.model.annotated import about
from kvbench.model.geometry import Geometry
from kvbench.model.point import STEP
from kvbench.model.shape import EVEN
from kvbench.regime import classify

# columns that are taken from a row of the table of points
_FACTS = ("dtype", "layout", "variant", "isa", "context", "batch", "lengths", "layers", "window")
_MORE = ("full_every", "threads")


@dataclass(frozen=True, slots=True)
class StepPart:
    """All appends, decodes or weights of a step."""

    part: Annotated[str, about("appends, decodes or weights")]
    share: Annotated[Answer, about("share of the step's time")]
    times: Annotated[Answer, about("times as long within the step as alone")]
    adds: Annotated[
        Answer,
        about("its time within the step minus its time alone, as a share of all parts alone"),
    ]
    level: Annotated[str, about("level that feeds it alone: L1, L2, L3, DRAM, mixed or unknown")]


@dataclass(frozen=True, slots=True)
class Step:
    """The answers about one point."""

    point: Annotated[str, about("its name")]
    model: Annotated[str, about("model of its layers; empty if unknown")]
    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("layout of the cache")]
    variant: Annotated[str, about("variant of the kernel")]
    isa: Annotated[str, about("instruction set")]
    context: Annotated[
        int, about("tokens that every sequence holds; if lengths differ, the longest")
    ]
    batch: Annotated[int, about("sequences")]
    lengths: Annotated[str, about("lengths of the sequences")]
    layers: Annotated[int, about("layers of the step")]
    window: Annotated[
        int, about("tokens that layers with a window attend to; 0: no layer has a window")
    ]
    full_every: Annotated[
        int, about("in each set of this many layers the last has no window; 0: all have one")
    ]
    threads: Annotated[int, about("threads that decode")]
    weights: Annotated[int, about("bytes: weights of all layers together")]
    regime: Annotated[str, about("level that feeds it: L1, L2, L3, DRAM, mixed or unknown")]
    seconds: Annotated[Answer, about("seconds: one step")]
    sequence: Annotated[Answer, about("tokens per second: one sequence")]
    tokens: Annotated[Answer, about("tokens per second: the batch")]
    p50: Annotated[Answer, about("seconds: half of the steps took no longer")]
    p99: Annotated[Answer, about("seconds: 99 % of the steps took no longer")]
    memory: Annotated[Answer, about("share of a plain read of as many bytes of memory")]
    whole: Annotated[
        Answer, about("times as long as all its parts alone; `reason`: why it is not 1")
    ]
    parts: Annotated[tuple[StepPart, ...], about("in the order of a layer")]
    limit: Annotated[Answer, about("what limits it; `reason` is the word")]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps: first the one most like the page's workload, preferably with weights; then the
    others by model, dtype, lengths, batch, weights and context.
    """

    rows: Annotated[tuple[Step, ...], about("by point")]


def steps(tables: Tables, page: Workload, served: Collection[str] = ()) -> Steps:
    """The answers about steps, without suspect ones. `served`: names of steps that are reported as
    batches of requests instead, perhaps for more layers than were timed.
    """
    points = tables.points[(tables.points["op"] == STEP) & tables.points["seconds"].notna()]
    points = points[~points["name"].isin(list(served))]
    points = points[~points["suspect"].fillna(False).astype(bool)]
    if points.empty:
        return Steps(())
    judged = {
        (row["visit"], row["base"]): row
        for row in tables.contrasts.to_dict("records")
        if row["factor"] in (pairs.WHOLE, pairs.PART)
    }
    visits = {point.name: own for point, own in by_point(tables.records).items()}
    found = []
    for row in points.to_dict("records"):
        own = visits[row["name"]]
        parts = tuple(_parts(row, own, judged, tables))
        found.append(_step(row, parts, judged, _model(row, tables.models, page)))
    return Steps(_ordered(found, page))


def _ordered(found: Sequence[Step], page: Workload) -> tuple[Step, ...]:
    first = min(found, key=lambda step: _away(step, page))
    others = (step for step in found if step is not first)
    return (first, *sorted(others, key=_place))


def _place(step: Step) -> tuple[object, ...]:
    """The order of rows, in which the context grows down a column."""
    return step.model, step.dtype, step.lengths, step.batch, step.weights, step.context


def _away(step: Step, page: Workload) -> tuple[float, ...]:
    """How far a step is from the page's workload; the first number counts most."""
    return (
        step.model != page.model,
        step.lengths != EVEN,
        abs(step.batch - (page.batch or 1)),
        abs(step.context - (page.context or CONTEXT)),
        abs(step.threads - page.threads),
        -step.weights,
    )


def _model(row: Row, models: Sequence[Geometry], page: Workload) -> str:
    """The model with these layers: the page's if it has them, else the first."""
    asked = (*HEADS, "layers")
    alike = [each.name for each in models if all(getattr(each, n) == row[n] for n in asked)]
    return page.model if page.model in alike else next(iter(alike), "")


def _step(
    row: Row, parts: tuple[StepPart, ...], judged: Mapping[tuple[str, str], Row], model: str
) -> Step:
    seconds = figure(row, "seconds", Unit.SECONDS)
    known = judged.get((row["name"], pairs.ALL_ALONE))
    beside = _longer(known, "step over its parts") if known else None
    return Step(
        point=row["name"],
        model=model,
        **{name: row[name] for name in (*_FACTS, *_MORE)},
        weights=int(row["between"] * row["layers"]),
        regime=row["regime"],
        seconds=_told(row, "step", seconds),
        sequence=_told(row, "step tokens of a sequence", _per(seconds, 1)),
        tokens=_told(row, "step tokens", _per(seconds, row["batch"])),
        p50=_of_column(row, "step p50", "pass_p50", Unit.SECONDS),
        p99=_of_column(row, "step p99", "pass_p99", Unit.SECONDS),
        memory=_of_column(row, "step memory", "efficiency", Unit.SHARE, Held.MEMORY),
        whole=_why(beside, parts, row) if beside else _none(row, "step over its parts"),
        parts=parts,
        limit=limited(row),
    )


def _told(row: Row, question: str, found: Figure, held: Held = Held.NOTHING) -> Answer:
    basis, launches = Basis.ROUNDS if held else Basis.APART, int(row["launches"])
    return Answer(question, row["dtype"], (row["name"],), found, held, "", basis, launches=launches)


def _none(row: Row, question: str) -> Answer:
    return Answer.untested(question, Reason.NOT_MEASURED, row["dtype"])


def _of_column(
    row: Row, question: str, column: str, unit: Unit, held: Held = Held.NOTHING
) -> Answer:
    if pd.isna(row[column]):
        return _none(row, question)
    return _told(row, question, figure(row, column, unit), held)


def _per(seconds: Figure, count: float) -> Figure:
    """`count` tokens in a step, as tokens per second."""
    value, low, high = (count / each for each in (seconds.value, seconds.high, seconds.low))
    return Figure(value, low, high, Unit.TOKENS)


# ---- its parts -----------------------------------------------------------------------------------


def _parts(
    row: Row,
    visits: Sequence[Record],
    judged: Mapping[tuple[str, str], Row],
    tables: Tables,
) -> Iterator[StepPart]:
    found = whole(visits)
    for name, part in found.parts.items() if found else ():
        alone = visits[0].traffic[name].bytes_line
        yield StepPart(
            part=name,
            share=_share(row, "share of a step", name, part.share, Held.STEP),
            times=_longer(judged[row["name"], pairs.alone_of(name)], "part of a step", name),
            adds=_share(row, "added to a step", name, part.adds, Held.PARTS),
            level=classify(tables.machine, tables.cpus[row["name"]], alone).word,
        )


def _share(row: Row, question: str, part: str, found: Estimate, held: Held) -> Answer:
    ends = Figure(found.median, found.low, found.high, Unit.SHARE)
    return replace(_told(row, question, ends, held), of=part)


def _longer(judged: Row, question: str, of: str = "") -> Answer:
    """How many times as long the other point takes as the base."""
    found = pairs.answer(judged, question, of, turned=True)
    own = found.figure and replace(found.figure, unit=Unit.LENGTH)
    return replace(found, figure=own, held=Held.PARTS, against="")


def _why(found: Answer, parts: Sequence[StepPart], row: Row) -> Answer:
    """Why a step surely is not the sum of its parts: the part that surely differs in the same
    direction and contributes most.
    """
    if found.state is not State.DECIDED or not found.figure:
        return found
    longer = found.figure.value > 1
    way = {"way": SLOWER if longer else FASTER}
    moved = [part for part in parts if part.times.state is State.DECIDED and _same(part, longer)]
    if not moved:
        return found.because(found.state, Reason.NO_PART, **way)
    most = max(moved, key=lambda part: abs(_value(part.adds)))
    nearer = longer and most.level not in FAR and most.level != row["regime"]
    reason = Reason.CACHED if nearer else Reason.LONGER if longer else Reason.SHORTER
    numbers = {"times": _value(most.times), "adds": abs(_value(most.adds))}
    return found.because(found.state, reason, **way, part=most.part, level=most.level, **numbers)


def _same(part: StepPart, longer: bool) -> bool:
    return (_value(part.times) > 1) == longer and (_value(part.adds) > 0) == longer


def _value(found: Answer) -> float:
    return found.figure.value if found.figure else math.nan

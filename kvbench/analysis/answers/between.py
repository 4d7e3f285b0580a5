"""How much of L3's gain remains if other bytes are read between passes: decodes of a layer in L3
with such reads, compared with the same decode from memory in the same rounds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from kvbench.analysis.answers import pairs
from kvbench.analysis.answers.answer import Answer, Reason, State
from kvbench.analysis.answers.tables import Tables
from kvbench.analysis.differs.betweens import BETWEEN, FAR, NOTHING
from kvbench.analysis.differs.contrasts import Row
from kvbench.analysis.measured.families import families
from kvbench.model import Point
from kvbench.model.annotated import about
from kvbench.model.geometry import Geometry
from kvbench.native import default_library, packed
from kvbench.regime import levels
from kvbench.units import size, whole_lines


class Kept(StrEnum):
    """How much of a gain remains."""

    ALL = "all"  # level with the gain without other reads
    SOME = "some"  # surely faster than from memory
    NOTHING = "nothing"  # level with memory, or slower
    NOT_CLEAR = "not clear"


class Course(StrEnum):
    """How a gain changes as more bytes are read between passes."""

    FALLS = "falls"  # with the most bytes it is surely smaller, and it rises nowhere
    RISES = "rises"  # it surely rises somewhere
    LEVEL = "level"  # it is level with the gain without other reads, for all numbers of bytes
    NOT_CLEAR = "not clear"


@dataclass(frozen=True, slots=True)
class Left:
    """What remains with a given number of bytes between passes."""

    bytes: Annotated[int, about("bytes: read between passes")]
    weights: Annotated[
        str,
        about(
            "number format in which the weights of a layer of `model` have this size; empty if"
            " none has"
        ),
    ]
    share: Annotated[float | None, about("ratio: these bytes over L3; null if unknown")]
    point: Annotated[str, about("its name")]
    gain: Annotated[Answer, about("times as fast as the same decode from memory")]
    alone: Annotated[Answer, about("times as fast as without other reads")]
    step: Annotated[Answer, about("times as fast as with the next fewer bytes")]
    kept: Annotated[Kept, about("how much of the gain remains: all, some, nothing, not clear")]


@dataclass(frozen=True, slots=True)
class Family:
    """One decode of a layer in L3, with different numbers of bytes between passes. `left`: from few
    bytes to many.
    """

    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("layout of the cache")]
    group: Annotated[int, about("query heads per KV head")]
    model: Annotated[str, about("model of the layer; empty if unknown")]
    context: Annotated[int, about("tokens of the layer")]
    threads: Annotated[int, about("threads that decode")]
    point: Annotated[str, about("name of the point without other reads")]
    gain: Annotated[
        Answer, about("times as fast as the same decode from memory, without other reads")
    ]
    left: Annotated[tuple[Left, ...], about("by the bytes read between passes")]
    course: Annotated[
        Course, about("how the gain changes with the bytes: falls, rises, level, not clear")
    ]
    rises: Annotated[
        tuple[int, ...], about("bytes: numbers of bytes at which the gain surely rises")
    ]

    @property
    def typical(self) -> Left:
        """The entry for a layer's weights if that was timed, else the entry with the most bytes."""
        return next((each for each in self.left if each.weights), self.left[-1])

    @property
    def gains(self) -> bool:
        """Whether there surely is a gain."""
        return _gains(self.gain)


Judged = Mapping[tuple[str, ...], Row]  # by the base, and the names of both points


def of_family(
    base: Row, model: Geometry | None, gain: Answer, tables: Tables, members: Sequence[Point]
) -> Family | None:
    """The family of a point; None if no other number of bytes was timed. `base`: the row of the
    point without other reads.
    """
    asked = tables.contrasts[tables.contrasts["factor"] == BETWEEN]
    names = "base", "base_name", "other_name"
    judged = {tuple(row[name] for name in names): row for row in asked.to_dict("records")}
    left = tuple(_left(base, model, gain, tables, members, judged))
    if not left:
        return None
    rises = tuple(each.bytes for each in left if _surely(each.step, faster=True))
    return Family(
        **{name: base[name] for name in ("dtype", "layout", "group", "context", "threads")},
        model=model.name if model else "",
        point=base["name"],
        gain=gain,
        left=left,
        course=_course(left, bool(rises)),
        rises=rises,
    )


def members(tables: Tables) -> dict[str, tuple[Point, ...]]:
    """The points of each family, by the name of the point without other reads."""
    points = {record.point for record in tables.records if isinstance(record.point, Point)}
    return {base.name: found for base, found in families(points).items()}


def _left(
    base: Row,
    model: Geometry | None,
    gain: Answer,
    tables: Tables,
    points: Sequence[Point],
    judged: Judged,
) -> Iterator[Left]:
    before = None
    for point in points:
        row = judged.get((FAR, point.name, point.name))
        if row is None:
            continue
        alone = _answer(judged.get((NOTHING, base["name"], point.name)), base["dtype"])
        own = pairs.answer(row, "L3's gain left", base["dtype"])
        last = (size(before.streamed), before.name, point.name) if before else ()
        step = _answer(judged.get(last), base["dtype"]) if before else alone
        yield Left(
            bytes=point.streamed,
            weights=_weights(point.streamed, model),
            share=_share(point.streamed, tables, point),
            point=point.name,
            gain=own,
            alone=alone,
            step=step,
            kept=_kept(own, alone),
        )
        before = point


def _answer(row: Row | None, dtype: str) -> Answer:
    if row is None:
        return Answer.untested("L3's gain", Reason.NOT_MEASURED, dtype)
    return pairs.answer(row, "L3's gain", dtype)


def _weights(count: int, model: Geometry | None) -> str:
    """The first format in which a layer's weights have this size."""
    if not model or not model.layer_elements:
        return ""
    formats = default_library().words("dtype")
    sizes = {each: packed(model.layer_elements, each) for each in formats}
    alike = (each for each in formats if whole_lines(sizes[each]) == count)
    return next(alike, "")


def _share(count: int, tables: Tables, point: Point) -> float | None:
    """The bytes as a share of all L3 that the point's threads use."""
    found = levels(tables.machine, point.cpus).get(3, ())
    return count / sum(cache.size for cache in found) if found else None


# ---- words ---------------------------------------------------------------------------------------


def _kept(gain: Answer, alone: Answer) -> Kept:
    if _gains(gain):
        whole = alone.state is State.LEVEL or _surely(alone, faster=True)
        return Kept.ALL if whole else Kept.SOME
    gone = gain.state is State.LEVEL or _surely(gain, faster=False)
    return Kept.NOTHING if gone else Kept.NOT_CLEAR


def _course(left: Sequence[Left], rises: bool) -> Course:
    if rises:
        return Course.RISES
    if _surely(left[-1].alone, faster=False):
        return Course.FALLS
    level = all(each.alone.state is State.LEVEL for each in left)
    return Course.LEVEL if level else Course.NOT_CLEAR


def _gains(gain: Answer) -> bool:
    return _surely(gain, faster=True)


def _surely(answer: Answer, faster: bool) -> bool:
    figure = answer.figure
    return answer.state is State.DECIDED and figure is not None and (figure.value > 1) == faster

"""How much of L3's gain is left after so many bytes: decodes of a layer in L3 between whose passes
other memory is read, over the same from memory, in the same rounds.
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
    """How much of a gain is left."""

    ALL = "all"  # level with the gain alone
    SOME = "some"  # surely faster than from memory
    NOTHING = "nothing"  # level with memory, or slower
    NOT_CLEAR = "not clear"


class Course(StrEnum):
    """What a gain does as more is read in between."""

    FALLS = "falls"  # at the end it is surely less than alone, and it rises nowhere
    RISES = "rises"  # surely, somewhere
    LEVEL = "level"  # with the gain alone, after all of them
    NOT_CLEAR = "not clear"


@dataclass(frozen=True, slots=True)
class Left:
    """After so many bytes."""

    bytes: Annotated[int, about("bytes: that are read in between")]
    weights: Annotated[
        str, about("number format in which a layer of `model` has as many bytes of weights; or no")
    ]
    share: Annotated[float | None, about("ratio: these bytes over L3; null where it is unknown")]
    point: Annotated[str, about("its name")]
    gain: Annotated[Answer, about("times as fast as the same decode from memory")]
    alone: Annotated[Answer, about("times as fast as with nothing in between")]
    step: Annotated[Answer, about("times as fast as with the next fewer bytes in between")]
    kept: Annotated[Kept, about("how much of the gain is left: all, some, nothing, not clear")]


@dataclass(frozen=True, slots=True)
class Family:
    """One decode of a layer in L3. `left`: from few bytes to many."""

    dtype: Annotated[str, about("number format of the cache")]
    layout: Annotated[str, about("of the cache")]
    group: Annotated[int, about("query heads on a KV head")]
    model: Annotated[str, about("whose layer it is; empty where no model is known")]
    context: Annotated[int, about("tokens of the layer")]
    threads: Annotated[int, about("that decode")]
    point: Annotated[str, about("its name, with nothing in between")]
    gain: Annotated[Answer, about("times as fast as the same decode from memory, so")]
    left: Annotated[tuple[Left, ...], about("by what is read in between")]
    course: Annotated[Course, about("whether it falls: falls, rises, level, not clear")]
    rises: Annotated[tuple[int, ...], about("bytes: after which it surely rises")]

    @property
    def typical(self) -> Left:
        """After a layer's weights where that was timed, else after the most bytes."""
        return next((each for each in self.left if each.weights), self.left[-1])

    @property
    def gains(self) -> bool:
        """Whether it surely has something to lose."""
        return _gains(self.gain)


Judged = Mapping[tuple[str, ...], Row]  # by what it is held against, and both names


def of_family(
    base: Row, model: Geometry | None, gain: Answer, tables: Tables, members: Sequence[Point]
) -> Family | None:
    """`base`: the row of the point with nothing between. None where no other was timed so."""
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
    """Of each family, by the name of the point with nothing between."""
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
    """The first format of those in which a layer's weights are so many bytes."""
    if not model or not model.layer_elements:
        return ""
    formats = default_library().words("dtype")
    sizes = {each: packed(model.layer_elements, each) for each in formats}
    alike = (each for each in formats if whole_lines(sizes[each]) == count)
    return next(alike, "")


def _share(count: int, tables: Tables, point: Point) -> float | None:
    """Of all L3 that its threads use."""
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

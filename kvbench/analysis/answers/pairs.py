"""All comparisons of a page in one table, corrected together.

Eight kinds of pairs are timed in the same rounds:

- points of a set
- a decode in L3, and the same from memory
- points that read other bytes between passes, and without such reads
- several queries in a step, and one query
- sinks and the like, and plain scores
- a step and its parts, and each part alone
- latency beside loads, and the idle latency
- schedules, and `off`

Comparisons of schedules use the rounds of one visit; all others use launches.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from kvbench.analysis.answers.answer import Answer, Basis, Figure, Held, Reason, State, Unit
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.differs.betweens import BETWEEN, FAR, NOTHING, betweens
from kvbench.analysis.differs.contrasts import CONTRAST, RATIO, Row, contrasts, row_of
from kvbench.analysis.judge import FASTER, LIMITS, SLOWER
from kvbench.analysis.measured.chases import chased
from kvbench.analysis.measured.columns import BY_COLUMN, table
from kvbench.analysis.measured.families import alone
from kvbench.analysis.measured.members import Beside, beside_one, beside_plain
from kvbench.analysis.measured.rates import by_point, measured
from kvbench.analysis.measured.steps import whole
from kvbench.analysis.ranks import discoveries
from kvbench.model import ROTATED, Contrast, Point, Record, Tuned
from kvbench.model.masks import CHAIN
from kvbench.model.point import STEP
from kvbench.native import default_library

RESIDENCY, SCHEDULE = "residency", "schedule"  # factors in addition to those of sets
QUERIES = "queries"  # factor of several queries in a step; the base has one
SCORES, PLAIN = "scores", "plain"  # factor of operations on scores, and its base
OFF = "off"  # base of SCHEDULE; the base of RESIDENCY is FAR
WHOLE, PART = "step", "part of a step"  # factors of a step
ALL_ALONE = "all parts alone"  # base of WHOLE; the base of PART is that part alone
# factor of a point with a chase, and its bases: latency while the point's CPUs sleep, latency
# beside plain reads of the same GB/s, and the point's rate without the chase
CHASE, IDLE, AS_MUCH, UNCHASED = "chase", "idle", "reads of as much", "unchased"
LEVEL, OPEN, NOT_TESTED = State.LEVEL.value, State.OPEN.value, State.NOT_TESTED.value  # words
_NEAR = ("L3", "most of L3")  # levels that are compared with FAR
_OTHERS = ("group", "threads")  # factors of points with several heads or threads
_DONE = {name: BY_COLUMN[name] for name in ("sinks", "softcap", "alibi", "kept")}  # to scores
_HEAT = 7  # rounds with all schedules; only the better ones continue after them

_STATES = {FASTER: State.DECIDED, SLOWER: State.DECIDED}
_HELD = {
    (RESIDENCY, FAR): Held.FAR,
    (BETWEEN, FAR): Held.FAR,
    (BETWEEN, NOTHING): Held.ALONE,
    (SCHEDULE, OFF): Held.OFF,
    (CHASE, IDLE): Held.IDLE,
    (CHASE, AS_MUCH): Held.READS,
    (CHASE, UNCHASED): Held.UNCHASED,
}


def pairs(
    records: Sequence[Record],
    points: pd.DataFrame,
    most: int = 0,
    page: Workload | None = None,
) -> pd.DataFrame:
    """The table of all pairs.

    most: launches that the run can have, if launches are added until questions are decided; else 0.
    page: without it, schedules are left out. Parts of a step are compared only if the step surely
    is not their sum; they are judged after all else, and corrected together.
    """
    rows = {row["name"]: row for row in points[points["seconds"].notna()].to_dict("records")}
    found = [
        *contrasts(records, points, most),
        *_from_l3(records, rows, most),
        *betweens(records, rows, most),
        *_of_families(records, rows, most),
        *_of_steps(records, rows, most),
        *_of_chases(records, rows, most),
        *_schedules(
            records, {name: rows[name] for name in alone(points)["name"] if name in rows}, page
        ),
    ]
    _judge([row for row in found if row["factor"] != PART])
    moved = {row["visit"] for row in found if row["factor"] == WHOLE and row["word"] in _STATES}
    _judge([row for row in found if row["factor"] == PART and row["visit"] in moved])
    for row in found:
        row.setdefault("word", _unasked(row))
    return table(found, CONTRAST)


def _judge(rows: Sequence[Row]) -> None:
    """Judge rows that are corrected together."""
    asked = [row for row in rows if not math.isnan(row["chance"])]
    corrected = discoveries([row["chance"] for row in asked])
    for row, chance in zip(asked, corrected, strict=True):
        row["corrected"] = chance
    for row in rows:
        row["word"] = _word(row)


def _word(row: Row) -> str:
    ratio = row["ratio"]
    sure = row.get("corrected", 1.0) <= LIMITS.page
    if sure and abs(math.log(ratio)) >= math.log1p(LIMITS.point):
        return FASTER if ratio > 1 else SLOWER
    return _unasked(row)


def _unasked(row: Row) -> str:
    """The verdict from the interval alone: not tested, level or open."""
    if math.isnan(row["chance"]):
        return NOT_TESTED
    _, low, high = (row[name] for name in RATIO)
    return LEVEL if -LIMITS.same < low - 1 and high - 1 < LIMITS.same else OPEN


def _from_l3(records: Iterable[Record], rows: dict[str, Row], most: int) -> Iterator[Row]:
    """Rows of decodes in L3 over the same from memory. The ratio is that of the table of points."""
    for point, visits in by_point(records).items():
        row = rows.get(point.name)
        if not row or point.streamed or point.shape.q_len > 1 or pd.isna(row["l3_gain"]):
            continue
        gains = measured(visits).shares[ROTATED].values
        ends = [row[f"l3_gain{end}"] for end in ("", "_low", "_high")]
        yield row_of(-np.log(gains), most, row, row, ends) | {
            "factor": RESIDENCY,
            "base": FAR,
            "other": row["regime"],
            "visit": point.name,
            "launches": len(gains),
            "rounds": sum(s.program == ROTATED for visit in visits for s in visit.samples),
        }


def _of_families(records: Iterable[Record], rows: dict[str, Row], most: int) -> Iterator[Row]:
    """Rows of members of families, each compared with its base."""
    visits = by_point(records)
    kinds = (
        (QUERIES, queries_word, beside_one(visits)),
        (SCORES, scores_word, beside_plain(visits)),
    )
    for factor, word, beside in kinds:
        for base, point, found in beside:
            if base.name in rows and point.name in rows:
                words = {"factor": factor, "base": word(base), "other": word(point)}
                yield _of_member(found, most, rows[base.name], rows[point.name]) | words


def _of_member(found: Beside, most: int, base: Row, other: Row) -> Row:
    return row_of(np.log(found.times.values), most, base, other) | {
        "visit": other["name"],
        "launches": found.times.launches,
        "rounds": found.rounds,
    }


def queries_word(point: Point) -> str:
    """A word such as "4", or "4 tree" for a mask other than a chain."""
    mask = "" if point.shape.mask == CHAIN else f" {point.shape.mask}"
    return f"{point.shape.q_len}{mask}"


def scores_word(point: Point) -> str:
    """A word such as "sinks" or "cap 50, alibi 8"; "plain" for plain scores."""
    own = {name: getattr(point.shape, name) for name in _DONE}
    return (
        ", ".join(
            field.short.format(own[name])
            for name, field in _DONE.items()
            if own[name] != field.default
        )
        or PLAIN
    )


def _of_steps(records: Iterable[Record], rows: dict[str, Row], most: int) -> Iterator[Row]:
    """Rows of a step over the sum of its parts, and of each part within the step over the part
    alone.
    """
    for point, visits in by_point(records).items():
        row = rows.get(point.name)
        if not row or point.op != STEP or not (found := whole(visits)):
            continue
        asked = {(WHOLE, ALL_ALONE, "step"): found.times}
        asked |= {
            (PART, alone_of(name), f"{name} in the step"): part.times
            for name, part in found.parts.items()
        }
        for (factor, base, other), times in asked.items():
            yield row_of(np.log(times.values), most, row, row) | {
                "factor": factor,
                "base": base,
                "other": other,
                "visit": point.name,
                "launches": times.launches,
                "rounds": found.rounds,
            }


def alone_of(part: str) -> str:
    """The base of a part of a step."""
    return f"{part} alone"


def _of_chases(records: Iterable[Record], rows: dict[str, Row], most: int) -> Iterator[Row]:
    """Rows of latency beside a load over the idle latency, and over latency beside plain reads; and
    of the point's rate with a chase over its rate without.
    """
    for found in chased(by_point(records)):
        row = rows.get(found.point.name)
        if not row:
            continue
        asked = {
            (IDLE, "busy"): np.log(found.busy.times.values),
            (AS_MUCH, row["op"]): np.log(found.alike.times.values),
            (UNCHASED, "chased"): -np.log(found.slowed.values),
        }
        for (base, other), logs in asked.items():
            yield row_of(logs, most, row, row) | {
                "factor": CHASE,
                "base": base,
                "other": other,
                "visit": row["name"],
                "launches": len(logs),
                "rounds": found.rounds,
            }


def _schedules(
    records: Iterable[Record], rows: dict[str, Row], page: Workload | None
) -> Iterator[Row]:
    """Rows of every schedule over `off`, the chosen one first. Only rounds with all schedules
    count, because the later rounds depend on their results.
    """
    for row, tuned in _tuned(records, rows, page) if page else ():
        off, chosen = tuned.ratios.get(OFF, ()), tuned.choice.preset
        for preset in sorted(tuned.ratios, key=lambda preset: preset != chosen):
            rounds = min(len(tuned.ratios[preset]), len(off), _HEAT)
            if preset == OFF or not rounds:
                continue
            logs = np.subtract(tuned.ratios[preset][:rounds], off[:rounds])
            yield row_of(logs, 0, row, row) | {
                "factor": SCHEDULE,
                "base": OFF,
                "other": preset,
                "regime": tuned.parts[-1],
                "visit": "",
                "launches": 1,
                "rounds": rounds,
            }


def _tuned(
    records: Iterable[Record], rows: dict[str, Row], page: Workload
) -> list[tuple[Row, Tuned]]:
    """The tunings from memory and in L3 of one kernel and layout, with the page's threads and
    heads: of the first layout that has both.
    """
    alike = [row for row in rows.values() if _alike(row, rows, page)]
    alike.sort(key=lambda row: (row["regime"] == _NEAR[0], row["name"] in page.points))
    of_class = {
        (f"{row['variant']}.{row['dtype']}", row["layout"], row["regime"] == "DRAM"): row
        for row in alike
    }
    names = {row["name"] for row in alike}
    found: dict[tuple[str, ...], dict[str, tuple[Row, Tuned]]] = defaultdict(dict)
    for record in records:
        if record.tuned and _first(record) in names:
            for tuned in record.tuned:
                kernel, layout = tuned.parts[1], tuned.parts[2].partition(".")[0]
                if row := of_class.get((kernel, layout, tuned.parts[-1] == FAR)):
                    found[tuned.parts[:-1]].setdefault(tuned.parts[-1], (row, tuned))
    layouts = default_library().words("layout")
    levels = [[own[level] for level in (FAR, _near(own)) if level in own] for own in found.values()]
    return min(
        filter(None, levels),
        key=lambda own: (-len(own), layouts.index(own[0][0]["layout"]), own[0][1].of),
        default=[],
    )


def _alike(row: Row, rows: dict[str, Row], page: Workload) -> bool:
    own = rows[page.points[0]] if page.points else {"threads": page.threads}
    columns = ("threads", "group", "head_dim", "isa")
    return row["op"] == "decode" and all(row[name] == own[name] for name in columns if name in own)


def _first(record: Record) -> str:
    """The name of a point with the heads and threads of all visited points; "" if these differ."""
    if isinstance(record.point, Contrast):
        return "" if record.point.factor in _OTHERS else record.point.points[0].name
    return record.point.name


def _near(levels: Iterable[str]) -> str:
    return next((each for each in _NEAR if each in levels), "")


# ---- a row as an answer --------------------------------------------------------------------------


def lead(found: pd.DataFrame, one: str, other: str, question: str = "lead", of: str = "") -> Answer:
    """How many times as fast point `one` is as point `other` of the same set."""
    for row in found.to_dict("records"):
        names = row["base_name"], row["other_name"]
        if one != other and names in ((one, other), (other, one)):
            return answer(row, question, of, turned=one == row["base_name"])
    return Answer.untested(question, Reason.NOT_MEASURED, of)


def answer(row: Row, question: str, of: str = "", turned: bool = False) -> Answer:
    """How many times as fast the other point is as the base; with `turned`, the base as the other.
    With too few launches there is no number.
    """
    ratio, low, high = (row[name] for name in RATIO)
    ends = (1 / ratio, 1 / high, 1 / low) if turned else (ratio, low, high)
    names = (row["other_name"], row["base_name"])
    subject, against = names[::-1] if turned else names
    state = _STATES.get(row["word"]) or State(row["word"])
    return Answer(
        question,
        of,
        (subject,),
        Figure(*ends, Unit.TIMES) if state is not State.NOT_TESTED else None,
        held=_HELD.get((row["factor"], row["base"]), Held.POINT),
        against=against,
        basis=Basis.ROUNDS,
        state=state,
        reason=Reason.TOO_FEW if state is State.NOT_TESTED else Reason.NONE,
        launches=int(row["launches"]),
        chance=_known(row["chance"]),
        corrected=_known(row["corrected"]),
    )


def _known(value: float) -> float | None:
    return None if pd.isna(value) else float(value)

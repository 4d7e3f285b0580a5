"""Points side by side that differ in one thing alone: how much faster the one is than the other."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.columns import POINT, count, ends, number, table, text, within
from kvbench.analysis.judge import FASTER, SLOWER, paired
from kvbench.analysis.launches import by_launch
from kvbench.analysis.looks import outside
from kvbench.model import Record
from kvbench.units import counted

SAME, UNKNOWN = "same within noise", "unknown"
DEPENDS = "depends"  # of several pairs: some are faster and some slower

RATIO = {
    "ratio": number("ratio: seconds of base over those of other: above 1 other is faster"),
    **ends("ratio", "ratio"),
}
CONTRAST = {
    "factor": text("what they differ in: layout, dtype or variant"),
    "base": text("its value of the one"),
    "other": text("its value of the other"),
    "base_name": text("the one point"),
    "other_name": text("the other point"),
    **{name: POINT[name] for name in ("op", "dtype", "layout", "variant")},  # of the base
    **{name: POINT[name] for name in ("context", "batch", "threads", "residency")},
    "regime": text("what feeds them; both where they differ"),
    **RATIO,
    "launches": count("that measured both"),
    "confidence": number("probability: with which low and high enclose the true ratio"),
    "word": text("faster, slower, same within noise, unknown, or depends"),
}
OVERALL = {
    "factor": text("what they differ in"),
    "base": text("its value of the one"),
    "other": text("its value of the other"),
    "op": text("what it does: decode, append, bulk, ..."),
    "regime": text("what feeds them"),
    "pairs": count("how many"),
    **RATIO,
    "faster": count("pairs whose word that is"),
    "slower": count("pairs whose word that is"),
    "same": count("pairs that are the same within noise"),
    "unknown": count("pairs whose word that is"),
    "word": text("faster, slower, same within noise, unknown, or depends"),
    "method": text("of the interval"),
}

# What depends on each factor, and so differs with it.
_WITH = {
    "layout": frozenset(within("layout")),
    "dtype": frozenset(within("dtype")),
    "variant": frozenset(),
    "block_tokens": frozenset(),
    "order": frozenset({"shuffle"}),
    "pages": frozenset(),
}
FACTORS = tuple(_WITH)
_ALIKE = 1.01  # bytes that differ by less, such as those of a page table, are as many
_NEAR = 1.004  # contexts that differ by less are one: sized by a cache, each layout's own padding shifts them a little
_MANY = 0.1  # of the pairs: fewer say faster, or slower, by chance


def contrasts(records: Sequence[Record], points: pd.DataFrame, factor: str, most: int = 0) -> pd.DataFrame:
    """A row for each two `points` that are equal but for the factor, one of FACTORS, and what depends on it.

    Ratios are formed within launches, and judged as pairs. The base moves more compulsory bytes than the other, in all
    pairs together; where they are alike it is the first by its name. `most`: launches that the run can have where some are
    added until questions are decided, else 0.
    """
    seconds = by_launch(records)
    pairs = list(_pairs(points, factor))
    bases = _bases(pairs, factor)
    rows = (_row(factor, *_ordered(pair, factor, bases), seconds, most) for pair in pairs)
    return table((row for row in rows if row), CONTRAST)


def every(records: Sequence[Record], points: pd.DataFrame, most: int = 0) -> pd.DataFrame:
    """The contrasts of all factors."""
    return pd.concat([contrasts(records, points, factor, most) for factor in FACTORS], ignore_index=True)


def overall(contrasts: pd.DataFrame, most: int = 0) -> pd.DataFrame:
    """A row for each factor, base, other, op and regime: what all their pairs say together."""
    keys = list(OVERALL)[:5]
    rows = (dict(zip(keys, key, strict=True)) | _together(own, most) for key, own in contrasts.groupby(keys))
    return table(rows, OVERALL)


# ---- pairs -----------------------------------------------------------------------------------------------------------

_Row = dict[str, Any]
_Pair = tuple[_Row, _Row]


def _pairs(points: pd.DataFrame, factor: str) -> Iterator[_Pair]:
    """Points that have a number. Contexts that are one only nearly pair where neither has an equal."""
    own = {"name", "kernel", "context", "capacity", factor} | _WITH[factor]
    alike = [name for name in POINT if name not in own]
    named = list(dict.fromkeys(("name", factor, "regime", "compulsory_bytes", *(n for n in CONTRAST if n in POINT))))
    measured = _valued(points[points["seconds"].notna()], factor)
    measured = measured.assign(room=_rooms(measured))
    measured = measured[measured.duplicated([*alike, "room"], keep=False)]
    for _, rows in measured.groupby([*alike, "room"], dropna=False, sort=False) if len(measured) else ():
        group = rows[named].to_dict("records")
        there = {(row[factor], row["context"]) for row in group}
        for a, b in combinations(group, 2):
            crossed = {(a[factor], b["context"]), (b[factor], a["context"])}
            if a[factor] != b[factor] and (a["context"] == b["context"] or not crossed & there):
                yield a, b


def _valued(points: pd.DataFrame, factor: str) -> pd.DataFrame:
    """Those that have the factor, its values as words."""
    blocks = points[points["block_tokens"].notna()]
    if factor == "block_tokens":
        return blocks.assign(block_tokens="block=" + blocks["block_tokens"].astype(str))
    if factor == "order":
        return blocks.assign(order=np.where(blocks["shuffle"].isna(), "sequential", "shuffled"))
    return points


def _rooms(points: pd.DataFrame) -> list[tuple[int, int]]:
    """By point the context, as the smallest that is nearly the same, and the capacity beyond it, 0 for none."""
    first: dict[int, int] = {}
    last = 0
    for context in sorted(points["context"].unique()):
        first[context] = first[last] if last and context < _NEAR * last else context
        last = context
    rooms = zip(points["context"], points["capacity"], strict=True)
    return [(first[context], 0 if capacity == context else capacity) for context, capacity in rooms]


def _bases(pairs: Iterable[_Pair], factor: str) -> dict[frozenset[str], str]:
    """By two values of the factor, which is the base."""
    moved: dict[frozenset[str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for pair in pairs:
        for row in pair:
            moved[frozenset(each[factor] for each in pair)][row[factor]] += row["compulsory_bytes"]
    found = {}
    for values, counts in moved.items():
        less, more = sorted(counts, key=lambda value: counts[value])
        found[values] = more if counts[more] > _ALIKE * counts[less] else min(values)
    return found


def _ordered(pair: _Pair, factor: str, bases: dict[frozenset[str], str]) -> _Pair:
    a, b = pair
    return (a, b) if bases[frozenset((a[factor], b[factor]))] == a[factor] else (b, a)


def _row(factor: str, base: _Row, other: _Row, seconds: dict[str, dict[int, float]], most: int) -> _Row | None:
    """None where no launch measured both."""
    of_base, of_other = seconds.get(base["name"], {}), seconds.get(other["name"], {})
    both = np.array([of_other[launch] / of_base[launch] for launch in of_base if launch in of_other])
    if not len(both):
        return None
    found = paired(np.log(both), outside(len(both), most))
    ends = (found.low, found.high) if found.enclosed else np.log((both.min(), both.max()))
    return {name: base[name] for name in CONTRAST if name in POINT} | {
        "factor": factor,
        "base": base[factor],
        "other": other[factor],
        "base_name": base["name"],
        "other_name": other["name"],
        "regime": " and ".join(dict.fromkeys((base["regime"], other["regime"]))),
        **_ratio(found.estimate, *ends),
        "launches": len(both),
        "confidence": found.confidence,
        "word": found.way or SAME if found.enclosed else UNKNOWN,
    }


def _ratio(estimate: float, low: float, high: float) -> dict[str, float]:
    """From logarithms of other's time over base's."""
    return {"ratio": math.exp(-estimate), "ratio_low": math.exp(-high), "ratio_high": math.exp(-low)}


# ---- all pairs together ----------------------------------------------------------------------------------------------


def _together(pairs: pd.DataFrame, most: int) -> _Row:
    """Many pairs are judged by how they differ, few by how their launches do."""
    counts = pairs["word"].value_counts()
    words = {name: int(counts.get(word, 0)) for name, word in _COUNTED.items()}
    found = paired(-np.log(pairs["ratio"].to_numpy()), outside(int(pairs["launches"].max()), most))
    if found.enclosed:
        row = _ratio(*found[:3])
        method = f"signed ranks of {len(pairs)} pairs: Hodges-Lehmann's estimate, {found.confidence:.1%} interval"
    else:
        row = pairs[["ratio", "ratio_low", "ratio_high"]].median().to_dict()
        method = f"median ends of the intervals over launches of {counted(len(pairs), 'pair')}"
    return row | words | {"pairs": len(pairs), "method": method, "word": _agreed(words, row)}


_COUNTED = {"faster": FASTER, "slower": SLOWER, "same": SAME, "unknown": UNKNOWN}


def _agreed(words: dict[str, int], row: dict[str, float]) -> str:
    pairs = sum(words.values())
    if words["unknown"] > pairs / 2:
        return UNKNOWN
    if row["ratio_low"] > 1 or row["ratio_high"] < 1:
        return FASTER if row["ratio"] > 1 else SLOWER
    return DEPENDS if min(words["faster"], words["slower"]) > _MANY * pairs else SAME

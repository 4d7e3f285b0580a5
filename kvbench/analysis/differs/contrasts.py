"""Points side by side that differ in one thing alone: how much faster the one is than the other."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.judge import FASTER, SLOWER, paired
from kvbench.analysis.looks import outside
from kvbench.analysis.measured.columns import POINT, band, count, flag, number, table, text
from kvbench.analysis.measured.rates import by_launch
from kvbench.model import Contrast, Point, Record, Sample, quotients
from kvbench.model.contrast import FACTORS, lines, pairs, value
from kvbench.units import counted

SAME, UNKNOWN = "same within noise", "unknown"
DEPENDS = "depends"  # of several pairs: some are faster and some slower

RATIO = band("ratio", "ratio: seconds of base over those of other: above 1 other is faster")
CONTRAST = {
    "factor": text(f"what they differ in: {', '.join(FACTORS)}"),
    "base": text("its value of the one"),
    "other": text("its value of the other"),
    "base_name": text("the one point"),
    "other_name": text("the other point"),
    **{name: POINT[name] for name in ("op", "dtype", "layout", "variant")},  # of the base
    **{name: POINT[name] for name in ("context", "batch", "threads", "residency")},
    "regime": text("what feeds them; both where they differ"),
    **RATIO,
    "launches": count("that measured both"),
    "beside": flag("whether both were timed in the same rounds"),
    "confidence": number("probability: with which low and high enclose the true ratio"),
    "word": text("faster, slower, same within noise, unknown, or depends"),
}
OVERALL = {
    "factor": text("what they differ in"),
    **{name: CONTRAST[name] for name in ("base", "other", "op")},
    "regime": text("what feeds them"),
    "pairs": count("how many: those timed in the same rounds, where there are such"),
    "beside": flag("whether they were timed in the same rounds"),
    **RATIO,
    **dict.fromkeys(("faster", "slower"), count("pairs whose word that is")),
    "same": count("pairs that are the same within noise"),
    "unknown": count("pairs whose word that is"),
    "word": CONTRAST["word"],
    "method": text("of the interval"),
}

_COUNTED = {"faster": FASTER, "slower": SLOWER, "same": SAME, "unknown": UNKNOWN}
_ALIKE = 1.01  # bytes that differ by less, such as those of a page table, are as many
_MANY = 0.1  # of the pairs: fewer say faster, or slower, by chance


def contrasts(records: Sequence[Record], points: pd.DataFrame, most: int = 0) -> pd.DataFrame:
    """A row for each two of `points` that are equal but for a factor, and what depends on it.
    Ratios are formed within launches, of the rounds that sampled both where there were such. The
    base moves more compulsory bytes than the other, in all pairs together; else it is the first by
    its name. `most`: launches that the run can have where some are added until questions are
    decided, else 0.
    """
    rows = {row["name"]: row for row in points[points["seconds"].notna()].to_dict("records")}
    visited = (record.point for record in records if record.point.name in rows)
    known = {point.name: point for point in visited if isinstance(point, Point)}
    seconds, rounds, found = by_launch(records), _rounds(records), []
    for factor in FACTORS:
        own = [pair for line in lines(known.values(), factor) for pair in pairs(line, factor)]
        bases = _bases(own, factor, rows)
        for pair in own:
            base, other = (
                pair if value(pair[0], factor) == bases[_values(pair, factor)] else pair[::-1]
            )
            ours, theirs = (rounds.get((factor, point.name), {}) for point in (base, other))
            ratios = [
                quotients(theirs[launch], own) for launch, own in ours.items() if launch in theirs
            ]
            beside = [math.log(median(own)) for own in ratios if own]
            one, two = seconds[base.name], seconds[other.name]
            logs = beside or [
                math.log(two[launch] / own) for launch, own in one.items() if launch in two
            ]
            if logs:
                found.append(_row(factor, (base, other), rows, np.array(logs), bool(beside), most))
    return table(found, CONTRAST)


def overall(contrasts: pd.DataFrame, most: int = 0) -> pd.DataFrame:
    """A row for each factor, base, other, op and regime: what all their pairs say together."""
    keys = list(OVERALL)[:5]
    rows = (
        dict(zip(keys, key, strict=True)) | _together(own, most)
        for key, own in contrasts.groupby(keys)
    )
    return table(rows, OVERALL)


_Row = dict[str, Any]
_Pair = tuple[Point, Point]


def _rounds(records: Iterable[Record]) -> dict[tuple[str, str], dict[int, list[Sample]]]:
    """Samples of contrasts, by factor and a point's name, and by launch."""
    found: dict[tuple[str, str], dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if isinstance(record.point, Contrast) and not record.error:
            names = {value(point, record.point.factor): point.name for point in record.point.points}
            for sample in record.samples:
                if name := names.get(sample.program):  # else a witness
                    found[record.point.factor, name][record.launch].append(sample)
    return found


def _values(pair: _Pair, factor: str) -> frozenset[str]:
    return frozenset(value(point, factor) for point in pair)


def _bases(pairs: Iterable[_Pair], factor: str, rows: dict[str, _Row]) -> dict[frozenset[str], str]:
    """By two values of the factor, which is the base."""
    moved: dict[frozenset[str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for pair in pairs:
        for point in pair:
            moved[_values(pair, factor)][value(point, factor)] += rows[point.name][
                "bytes_compulsory"
            ]
    found = {}
    for values, counts in moved.items():
        less, more = sorted(counts, key=lambda value: counts[value])
        found[values] = more if counts[more] > _ALIKE * counts[less] else min(values)
    return found


def _row(
    factor: str, pair: _Pair, rows: dict[str, _Row], logs: np.ndarray, beside: bool, most: int
) -> _Row:
    """Of logarithms, by launch."""
    base, other = (rows[point.name] for point in pair)
    found = paired(logs, outside(len(logs), most))
    ends = (found.low, found.high) if found.enclosed else (logs.min(), logs.max())
    return {name: base[name] for name in CONTRAST if name in POINT} | {
        "factor": factor,
        "base": value(pair[0], factor),
        "other": value(pair[1], factor),
        "base_name": base["name"],
        "other_name": other["name"],
        "regime": " and ".join(dict.fromkeys((base["regime"], other["regime"]))),
        **_ratio(found.estimate, *ends),
        "launches": len(logs),
        "beside": beside,
        "confidence": found.confidence,
        "word": found.way or SAME if found.enclosed else UNKNOWN,
    }


def _ratio(estimate: float, low: float, high: float) -> dict[str, float]:
    """From logarithms of other's time over base's."""
    return {
        "ratio": math.exp(-estimate),
        "ratio_low": math.exp(-high),
        "ratio_high": math.exp(-low),
    }


def _together(pairs: pd.DataFrame, most: int) -> _Row:
    """Many pairs are judged by how they differ, few by how their launches do."""
    if pairs["beside"].any():
        pairs = pairs[pairs["beside"]]
    counts = pairs["word"].value_counts()
    words = {name: int(counts.get(word, 0)) for name, word in _COUNTED.items()}
    found = paired(-np.log(pairs["ratio"].to_numpy()), outside(int(pairs["launches"].max()), most))
    if found.enclosed:
        row = _ratio(*found[:3])
        method = (
            f"signed ranks of {len(pairs)} pairs: Hodges-Lehmann's estimate, {found.confidence:.1%}"
            " interval"
        )
    else:
        row = pairs[["ratio", "ratio_low", "ratio_high"]].median().to_dict()
        method = f"median ends of the intervals over launches of {counted(len(pairs), 'pair')}"
    word = DEPENDS if min(words["faster"], words["slower"]) > _MANY * len(pairs) else SAME
    if row["ratio_low"] > 1 or row["ratio_high"] < 1:
        word = FASTER if row["ratio"] > 1 else SLOWER
    if words["unknown"] > len(pairs) / 2:
        word = UNKNOWN
    return (
        row
        | words
        | {
            "pairs": len(pairs),
            "beside": bool(pairs["beside"].iloc[0]),
            "method": method,
            "word": word,
        }
    )

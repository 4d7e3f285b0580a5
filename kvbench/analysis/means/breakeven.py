"""Whether a layout that is dearer to store pays that back: a prompt is stored once, and read again
for every token.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from kvbench.analysis.measured.columns import POINT, band, flag, number, table, text
from kvbench.analysis.measured.estimates import enough
from kvbench.model import HEADS

_BULK, _APPEND, _DECODE = "bulk", "append", "decode"
_OPS = {
    _BULK: "store a token of a prompt",
    _APPEND: "store a token of a decode",
    _DECODE: "read the context once",
}

# A pair of layouts: to store with `dearer` takes longer. Seconds are of one layer and one sequence.
BREAKEVEN = {
    "dearer": text("the layout that takes longer to store with"),
    "cheaper": text("the other"),
    **{
        name: POINT[name]
        for name in ("dtype", "scale", "batch", *HEADS, "threads", "cpus", "residency", "context")
    },
    "fitted": flag("whether decodes of this context are read off a line"),
    **{
        f"{side}_{op}": number(f"seconds: to {what}, of one layer and one sequence")
        for op, what in _OPS.items()
        for side in ("dearer", "cheaper")
    },
    **band("tokens", "tokens: decoded, that pay a prompt's storing back"),
    **band(
        "even",
        "tokens: of context, from which on a decoded token's read saves more than its append costs",
    ),
    "word": text("pays back, never pays back, or no difference within noise"),
}
PAYS, NEVER, NOISE = "pays back", "never pays back", "no difference within noise"

_CACHE = ("layout", "inner", "block_tokens", "shuffle", "pad")  # what layouts may differ in
_SETTING = ("dtype", "scale", "isa", "batch", *HEADS, "threads", "cpus", "pages", "residency")

_Times = tuple[float, float, float]  # seconds: median, low, high
_Costs = dict[str, dict[int, _Times]]  # by op and context


def breakeven(points: pd.DataFrame, scaling: pd.DataFrame) -> pd.DataFrame:
    """`scaling` stands in for a decode at a context that only stores were measured at. Of variants
    and schedules the fastest counts. Pairs of which something was not measured have no row.
    """
    timed = points[points["seconds"].notna() & (points["window"] == 0)]
    rows = []
    for setting, here in timed.groupby(list(_SETTING), dropna=False):
        facts = dict(zip(_SETTING, setting, strict=True))
        lines = scaling[(scaling[list(_SETTING)] == list(setting)).all(axis=1)]
        caches = []
        for cache, own in here.groupby(list(_CACHE), dropna=False):
            costs = _costs(own)
            if costs.get(_BULK) and costs.get(_APPEND):
                alike = lines
                for name, value in zip(_CACHE, cache, strict=True):
                    alike = alike[
                        (
                            alike[name].isna()
                            if pd.isna(value)
                            else (alike[name] == value).fillna(False)
                        )
                    ]
                caches.append((cache[0], costs, alike))
        told = {name: facts[name] for name in BREAKEVEN if name in facts}
        for one, other in combinations(caches, 2):
            rows += _pair(one, other, told) if one[0] != other[0] else []
    return table(rows, BREAKEVEN)


def _costs(points: pd.DataFrame) -> _Costs:
    """The fastest point of each op and context counts; a store is told for each token and
    sequence.
    """
    found: _Costs = {}
    for (op, context), rows in points.groupby(["op", "context"]):
        row = rows.loc[rows["seconds"].idxmin()]
        tokens = row["batch"] * (context if op == _BULK else 1)
        times = tuple(
            float(row[name]) / tokens for name in ("seconds", "seconds_low", "seconds_high")
        )
        found.setdefault(str(op), {})[int(context)] = _sure(times, row["launches"])
    return found


def _sure(times: _Times, launches: int) -> _Times:
    """Few launches enclose nothing."""
    return times if enough(int(launches)) else (times[0], -math.inf, math.inf)


# its layout, what its points took, the lines through them
_Cache = tuple[str, _Costs, pd.DataFrame]


def _pair(one: _Cache, other: _Cache, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """To store a token takes about as long whatever else is stored."""
    contexts = {
        context for _, costs, _ in (one, other) for times in costs.values() for context in times
    }
    for context in sorted(contexts):
        sides, fitted = [], False
        for layout, costs, lines in (one, other):
            near = (
                min(costs[op], key=lambda known: (abs(known - context), known))
                for op in (_BULK, _APPEND)
            )
            stores = [costs[op][known] for op, known in zip((_BULK, _APPEND), near, strict=True)]
            decode = costs.get(_DECODE, {}).get(context)
            fitted |= decode is None
            if decode := decode or _on_a_line(lines, context, facts["batch"]):
                sides.append((layout, *stores, decode))
        if len(sides) == 2:
            both = sorted(sides, key=lambda side: side[1][0], reverse=True)
            row = dict(facts) | {"context": context, "fitted": fitted}
            for side, (layout, *times) in zip(("dearer", "cheaper"), both, strict=True):
                row |= {side: layout}
                row |= {
                    f"{side}_{op}": own[0]
                    for op, own in zip((_BULK, _APPEND, _DECODE), times, strict=True)
                }
            yield row | _payback(*both, context) | _even(*both, context)


def _on_a_line(lines: pd.DataFrame, context: int, batch: int) -> _Times | None:
    """A decode, for one sequence."""
    within = lines[(lines["context_low"] <= context) & (context <= lines["context_high"])]
    found = []
    for row in within.to_dict("records"):
        ends = (
            (row[f"fixed_seconds{end}"], row[f"token_seconds{end}"])
            for end in ("", "_low", "_high")
        )
        found.append(
            _sure(
                tuple(float(fixed + each * context) / batch for fixed, each in ends),
                row["launches"],
            )
        )
    return min(found, default=None)


def _payback(dearer: Sequence[Any], cheaper: Sequence[Any], context: int) -> dict[str, Any]:
    """Intervals of differences are as wide as those of both sides together: they hold more than
    they promise.
    """
    extra = tuple(context * each for each in _difference(dearer[1], cheaper[1]))
    saved = tuple(
        map(
            sum, zip(*(_difference(cheaper[place], dearer[place]) for place in (2, 3)), strict=True)
        )
    )
    if extra[1] <= 0 or saved[1] <= 0 <= saved[2]:
        return {"word": NOISE}
    if saved[2] < 0:
        return {"word": NEVER}
    low, high = extra[1] / saved[2], extra[2] / saved[1]
    return {"word": PAYS, "tokens": extra[0] / saved[0], "tokens_low": low, "tokens_high": high}


def _even(dearer: Sequence[Any], cheaper: Sequence[Any], context: int) -> dict[str, float]:
    """Nothing where a token is not dearer to append, or reading it saves nothing, beyond noise."""
    lost, saved = _difference(dearer[2], cheaper[2]), _difference(cheaper[3], dearer[3])
    if lost[1] <= 0 or saved[1] <= 0:
        return {}
    low, high = lost[1] / saved[2], lost[2] / saved[1]
    return {
        "even": context * lost[0] / saved[0],
        "even_low": context * low,
        "even_high": context * high,
    }


def _difference(one: _Times, other: _Times) -> _Times:
    return one[0] - other[0], one[1] - other[2], one[2] - other[1]

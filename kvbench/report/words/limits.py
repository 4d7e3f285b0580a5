"""Sentences on what fits, what limits, what follows for published models, and what it costs to
store tokens.
"""

from collections.abc import Iterator

import pandas as pd

from kvbench.analysis.limits.bounds import CLOSE
from kvbench.grouping import grouped
from kvbench.model.point import ONE_TOKEN
from kvbench.report.words.phrases import BINDS, listed, number
from kvbench.units import counted, duration

_MODELS = 4  # that a sentence names
_UNCLEAR = "neither memory nor the core alone"
_COPIES = {"copy": "an ordinary copy", "copy_nt": "a non-temporal copy"}
_WHAT = {
    "append": "Storing one token",
    "bulk": "Storing a prompt",
    "repack": "Growing a cache in place",
    "transpose": "Turning a prompt to head-major order",
    "logits": "Placing a token's logits",
}


def fit(fits: pd.DataFrame) -> str:
    """For the dtype with most rows, and the largest number of threads."""
    if fits.empty:
        return ""
    dtype = fits["dtype"].value_counts().index[0]
    own = fits[fits["dtype"] == dtype]
    own = own[own["threads"] == own["threads"].max()].drop_duplicates("model")
    threads, reach = (
        counted(int(own["threads"].iloc[0]), "thread"),
        own[own["l3_high_context"].notna()],
    )
    if reach.empty:
        return (
            f"No {dtype} layer lies in L3 ({threads}):"
            f" {own['reason'].iloc[0].removeprefix('not testable: ')}."
        )
    full = reach["l3_high_context"] >= reach["max_context"]
    reaches = [
        f"{'the full ' if whole else ''}{context:,} tokens of {listed(names, _MODELS)}"
        for (context, whole), names in reach.groupby(["l3_high_context", full])["model"]
    ]
    return f"One {dtype} layer fits in L3 up to {listed(reaches[::-1], _MODELS)} ({threads})."


def bounds(points: pd.DataFrame) -> str:
    """Dtypes by what limits their decodes from memory by most threads; the table of dtypes has the
    shares.
    """
    far = points[
        (points["op"] == "decode") & (points["regime"] == "DRAM") & (points["bound"] != "")
    ]
    far = far[far["threads"] == far["threads"].max()]
    far = far[far["efficiency"].notna() & far["core_fraction"].notna()]
    if far.empty:
        return ""
    beaten = (far["bound"] == "unknown") & (
        far[["efficiency", "core_fraction"]].max(axis=1) >= CLOSE
    )
    groups = grouped(
        (", then ".join(_stretches(rows[~beaten[rows.index]])) or _UNCLEAR, str(dtype))
        for dtype, rows in far.groupby("dtype")
    )
    limits = "; ".join(f"{limit} for {listed(dtypes)}" for limit, dtypes in groups.items())
    said = (
        f"What limits decode from memory ({counted(int(far['threads'].iloc[0]), 'thread')}):"
        f" {limits}."
    )
    above = sorted(set(far["dtype"][beaten]))
    return (
        f"{said} Some points of {listed(above)} are faster than their limit: suspect."
        if above
        else said
    )


def _stretches(rows: pd.DataFrame) -> Iterator[str]:
    """From so many query heads on a KV head on, what most of the points are bound by."""
    words = rows.groupby("group")["bound"].agg(lambda own: own.value_counts().index[0])
    starts = words[words != words.shift()]
    for place, (group, word) in enumerate(starts.items()):
        yield BINDS.get(word, _UNCLEAR) + (
            f" (from {group} query heads a KV head)" if place else ""
        )


def tokens(tokens: pd.DataFrame) -> str:
    """What reading the cache alone allows at the shortest and the longest context, of the smallest
    batch.
    """
    known = tokens[tokens["tokens_per_second"].notna()]
    known = known[known["batch"] == known["batch"].min()]
    shapes: dict[tuple[tuple[tuple[int, float], ...], str], list[str]] = {}
    for model, rows in (
        known.assign(model=known["model"].str.split(", ")).explode("model").groupby("model")
    ):
        best = rows.groupby("context")["tokens_per_second"].max()
        contexts = dict.fromkeys((best.index.min(), best.index.max()))
        remark = str(rows["note"][rows["context"].idxmax()])
        own = tuple((context, best[context]) for context in contexts)
        shapes.setdefault((own, remark), []).append(str(model))
    if not shapes:
        return ""
    ((ends, remark), models), *others = shapes.items()
    rates = listed(f"{number(rate)} tokens/s at {context:,} tokens" for context, rate in ends)
    rates += f" ({remark})" if remark else ""
    more = f" The table has {counted(len(others), 'other model shape')}." if others else ""
    return (
        f"{listed(models, _MODELS)}, KV reads only, fastest dtype of each: at most {rates}.{more}"
    )


def stores(points: pd.DataFrame) -> str:
    """The fastest point of each op."""
    good = points[points["gbps"].notna() & (points["op"] != "decode")]
    return " ".join(_rate(rows.loc[rows["gbps"].idxmax()]) for _, rows in good.groupby("op"))


def _rate(row: pd.Series) -> str:
    each = 1 if row["op"] in ONE_TOKEN else row["context"]
    seconds = row["seconds"] / (row["batch"] * each)
    share = (
        f", {row['efficiency']:.0%} of the speed of {_COPIES[row['witness']]}"
        if row["witness"]
        else ""
    )
    each = f"{duration(seconds)} a token and layer"
    return (
        f"{_WHAT.get(row['op'], row['op'])} takes {each} ({row['short']}): {number(row['gbps'])}"
        f" GB/s{share}."
    )

"""Which points a figure shows where a run has more kinds of them than one picture can hold."""

from collections.abc import Collection

import pandas as pd

from kvbench.analysis.measured.columns import BY_COLUMN, within

# What makes two shapes or settings another experiment; layout, dtype, context, threads and
# residency are compared.
_COMPARED = (
    "op",
    "layout",
    "dtype",
    "context",
    "capacity",
    "layers",
    "residency",
    "threads",
    "cpus",
    "group",
)
_SETTING = [name for name in BY_COLUMN if name not in _COMPARED]
_FREE = within("dtype", "layout")  # may differ between these


def usual(points: pd.DataFrame, free: Collection[str] = ()) -> pd.DataFrame:
    """The points of the setting that most have: what is left differs in what figures compare, and
    in nothing else.

    `free`: columns of the setting that may differ all the same.
    """
    for name in (name for name in _SETTING if name not in free):
        if points.empty:
            break
        beside = points[_FREE[name]] if name in _FREE else pd.Series("", points.index)
        values = points[name].astype(object).where(points[name].notna(), None).map(repr)
        most = values.groupby(beside).agg(lambda each: each.value_counts().index[0])
        points = points[values == beside.map(most)]
    return points


def setting(points: pd.DataFrame) -> str:
    """What the points have in common, for people: "32 query heads on 8 KV heads of 128, flash,
    avx2".
    """
    if points.empty:
        return ""
    row = points.iloc[0]
    heads = (
        points[["q_heads", "kv_heads", "head_dim"]]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    )
    words = (
        " and ".join(f"{q} query heads on {kv} KV heads of {d}" for q, kv, d in heads),
        row["variant"],
        f"batch {row['batch']}" if row["batch"] > 1 else "",
        f"window {row['window']}" if row["window"] else "",
        row["isa"],
        f"{row['pages']} pages",
    )
    return ", ".join(filter(None, words))

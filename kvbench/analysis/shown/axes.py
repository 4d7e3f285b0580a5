"""Tokens per second along each axis of a run: context, heads, dtype and layout.

A point has the same value in every panel: the value of an answer if there is one about it, else
that of its own visits.
"""

import pandas as pd

from kvbench.analysis.answers.answer import Basis
from kvbench.analysis.answers.workload import Workload
from kvbench.analysis.limits.frames import decodes_of
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import usual
from kvbench.model.shape import EVEN
from kvbench.model.shape import HEADS as SHAPE

CONTEXT, HEADS, DTYPE, LAYOUT = "context", "heads", "dtype", "layout"
_RATE = "tokens_per_second"
_KERNEL = ["dtype", "layout", "variant"]
COLUMNS = {
    "panel": "str",
    "row": "Int64",
    **dict.fromkeys(("dtype", "layout", "variant", "model"), "str"),
    **dict.fromkeys(("context", "q_heads", "kv_heads", "group"), "Int64"),
    **dict.fromkeys((_RATE, f"{_RATE}_low", f"{_RATE}_high"), "float64"),
    "basis": "str",
    "point": "str",
}


def axes(found: Findings) -> pd.DataFrame:
    """The rows of all panels, from memory, with the page's threads and batch. Rates are for all
    layers of `model`; if no model is known, for one layer.
    """
    page = found.answers.workload
    every = _speeds(found, page)
    here = every[(every["model"] == page.model) & (every["context"] == _context(every, page))]
    panels = {
        CONTEXT: _contexts(every[every["model"] == page.model]),
        HEADS: _heads(every[every["context"] == _context(every, page)], page),
        DTYPE: here if here["dtype"].nunique() > 1 else here.iloc[:0],
        LAYOUT: _layouts(here),
    }
    shown = [own.assign(panel=panel) for panel, own in panels.items()]
    return pd.concat(shown)[list(COLUMNS)].astype(COLUMNS).reset_index(drop=True)


def _speeds(found: Findings, page: Workload) -> pd.DataFrame:
    """A row for each decode from memory and each model that has such layers."""
    points = decodes_of(found.points)
    points = points[(points["regime"] == "DRAM") & (points["lengths"] == EVEN)]
    points = points[points["threads"] == page.threads]
    points = points.assign(row=points.index, point=points["name"])
    rates = [_RATE, f"{_RATE}_low", f"{_RATE}_high"]
    if page.model:
        tokens = found.tokens[found.tokens[_RATE].notna()]
        tokens = tokens.assign(model=tokens["model"].str.split(", ")).explode("model")
        points = points.merge(tokens[["name", "model", *rates]], on="name")
        points = points[points["batch"] == page.batch]
    else:
        ends = zip(rates, ("", "_high", "_low"), strict=True)
        own = {name: points["batch"] / points[f"seconds{end}"] for name, end in ends}
        points = usual(points.assign(model="", **own), ("q_heads", "kv_heads", "variant"))
    answers = {row.point: row.speed for row in found.answers.decodes.rows}
    for name, at in zip(rates, ("value", "low", "high"), strict=True):
        figures = {point: getattr(each.figure, at) for point, each in answers.items()}
        own = points["name"].map(figures).where(points["model"] == page.model)
        points = points.assign(**{name: own.astype(float).fillna(points[name])})
    bases = {point: each.basis for point, each in answers.items()}
    basis = [bases.get(name, Basis.APART) for name in points["name"]]
    return points.assign(basis=basis).sort_values(
        ["residency", _RATE], ascending=False, kind="stable"
    )


def _context(rows: pd.DataFrame, page: Workload) -> int:
    """The page's context; if no model is known, the one of most points."""
    return page.context or int(rows["context"].mode().iloc[0] if len(rows) else 0)


def _contexts(rows: pd.DataFrame) -> pd.DataFrame:
    """For each dtype, the kernel with the most contexts (at least two), and of these the fastest.
    The residency is the one of most points.
    """
    rows = rows[rows["residency"].isin(rows["residency"].mode()[:1])]
    rows = rows.drop_duplicates([*_KERNEL, "kv_heads", "q_heads", "context"])
    counts = rows.groupby(_KERNEL)["context"].transform("nunique")
    rows = rows.assign(count=counts)[counts > 1]
    first = rows.sort_values(["count", _RATE], ascending=False, kind="stable")
    chosen = first.drop_duplicates("dtype")[_KERNEL]
    return rows.merge(chosen, on=_KERNEL).sort_values(["dtype", "context"])


def _heads(rows: pd.DataFrame, page: Workload) -> pd.DataFrame:
    """For each dtype, the fastest kernel of each kind of heads, if there are at least two kinds. Of
    models with equal heads the page's is used, or the first.
    """
    heads = list(map(str, rows[list(SHAPE)].itertuples(index=False, name=None)))
    rows = rows.assign(heads=heads, own=rows["model"] == page.model)
    rows = rows.sort_values("own", ascending=False, kind="stable")
    rows = rows.drop_duplicates(["dtype", "heads"])
    several = rows.groupby("dtype")["heads"].transform("nunique") > 1
    return rows[several].sort_values(["group", "dtype"])


def _layouts(rows: pd.DataFrame) -> pd.DataFrame:
    """For each dtype and layout the fastest variant, if the dtype has at least two layouts."""
    rows = rows.sort_values(_RATE, ascending=False, kind="stable")
    rows = rows.drop_duplicates(["dtype", "layout"])
    return rows[rows.groupby("dtype")["layout"].transform("nunique") > 1]

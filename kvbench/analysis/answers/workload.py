"""The workload of a page, chosen once: a model's layers at one context, from memory."""

from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.analysis.measured.families import usual
from kvbench.model.annotated import about

MODEL, CONTEXT = "llama-3-8b", 4096


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload of a page. Points that do not belong to it are named where they are shown."""

    model: Annotated[str, about("model whose layers are decoded; empty if unknown")]
    layers: Annotated[int, about("layers of the model; 0 if unknown")]
    context: Annotated[int, about("tokens that every sequence holds")]
    batch: Annotated[int, about("sequences")]
    threads: Annotated[int, about("threads that decode")]
    points: Annotated[tuple[str, ...], about("names of its points, from memory")]


def workload(tokens: pd.DataFrame, points: pd.DataFrame) -> Workload:
    """The workload of a run, from its tables of tokens and points.

    It is that of `kvbench score` if the run has it: Llama 3 8B, 4,096 tokens, most threads. Else it
    is the nearest: the model with most points, and the context nearest to 4,096. Pairs of dtypes
    are left out.
    """
    rows = tokens[tokens["tokens_per_second"].notna()]
    if rows.empty:
        threads = int(points["threads"].max()) if len(points) else 0
        return Workload("", 0, 0, 0, threads, ())
    own = set(usual(points)["name"])
    models = rows["model"].str.split(", ")
    named = models.map(lambda names: MODEL in names)
    model = MODEL if named.any() else models.value_counts().index[0][0]
    rows = rows[models.map(lambda names: model in names)]
    rows = rows[rows["batch"] == rows["batch"].min()]
    rows = rows[rows["threads"] == rows["threads"].max()]
    rows = _nearest(rows)
    first = rows.iloc[0]
    return Workload(
        model=model,
        layers=int(first["layers"]),
        context=int(first["context"]),
        batch=int(first["batch"]),
        threads=int(first["threads"]),
        points=tuple(name for name in rows["name"] if name in own),
    )


def _nearest(rows: pd.DataFrame) -> pd.DataFrame:
    distance = (rows["context"] - CONTEXT).abs()
    return rows[distance == distance.min()]

"""What fits, what binds, and what follows for published models."""

from collections.abc import Iterator

import pandas as pd

from kvbench.analysis.bounds import CLOSE, CONFIRMED, CORE, REFUTED, UNSTABLE
from kvbench.analysis.diagnosis.phrases import between, listed, number
from kvbench.analysis.launches import enough
from kvbench.analysis.models import NOT_TESTED
from kvbench.units import counted, duration

_MODELS = 4  # that a sentence names
_THERE = {
    CONFIRMED: "faster than from memory",
    REFUTED: "no faster than from memory",
    CORE: "limited by the cores",
    UNSTABLE: "undecided",
    NOT_TESTED: "not tested",
}
_BINDS = {"memory": "memory", "core": "the core", "scheduling": "threads that wait for each other"}


def fit(fits: pd.DataFrame) -> str:
    """For the dtype with most rows, and the largest number of threads."""
    if fits.empty:
        return ""
    own = fits[fits["dtype"] == fits["dtype"].value_counts().index[0]]
    own = own[own["threads"] == own["threads"].max()].drop_duplicates("model")
    setting = f"{own['dtype'].iloc[0]}, {counted(int(own['threads'].iloc[0]), 'thread')}"
    open_, closed = own[own["l3_high_context"].notna()], own[own["l3_high_context"].isna()]
    if open_.empty:
        why = closed["reason"].iloc[0].removeprefix("not testable: ")
        return f"No context's keys and values of one layer lie in L3 ({setting}): {why}."
    whole = open_["l3_high_context"] >= open_["max_context"]
    reach = {
        f"{'the whole ' if all_ else ''}{context}": listed(names, _MODELS)
        for (context, all_), names in open_.groupby(["l3_high_context", whole])["model"]
    }
    upto = listed((f"{context} for {names}" for context, names in reversed(reach.items())), _MODELS)
    text = f"Keys and values of one layer ({setting}) fit the L3 cache up to a context of so many tokens: {upto}"
    return f"{text}; decoding there is {_there(open_)}."


def _there(fits: pd.DataFrame) -> str:
    """The verdicts, those that were tested first."""
    words = {str(word): listed(names, _MODELS) for word, names in fits.groupby("l3")["model"]}
    tested = [f"{_THERE.get(word, word)} for {names}" for word, names in words.items() if word != NOT_TESTED]
    if len(words) == 1:
        return _THERE.get(*words, *words)
    return "; ".join([*tested, *(f"{_THERE[NOT_TESTED]} for the others" for _ in range(NOT_TESTED in words))])


def bound(points: pd.DataFrame) -> str:
    """By dtype, of decodes from memory by most threads: what most of the points are bound by, and the medians.

    Where that changes with the number of query heads on a KV head, it is told from which number on.
    """
    far = points[(points["op"] == "decode") & (points["regime"] == "DRAM") & (points["bound"] != "")]
    far = far[far["threads"] == far["threads"].max()]
    far = far[far["efficiency"].notna() & far["core_fraction"].notna()]
    told = [f"{dtype} {', '.join(_stretches(rows))}" for dtype, rows in far.groupby("dtype")]
    if not told:
        return ""
    what = f"What limits decoding from memory by {counted(int(far['threads'].iloc[0]), 'thread')}"
    return f"{what}, beside bare reads of the same bytes and what the core alone allows: {'; '.join(told)}."


def _stretches(rows: pd.DataFrame) -> Iterator[str]:
    """Without points that are faster than what they are held against, by which nothing is decided."""
    beaten = (rows["bound"] == "unknown") & (rows[["efficiency", "core_fraction"]].max(axis=1) >= CLOSE)
    if not beaten.all():
        yield from _bound(rows[~beaten])
    if beaten.any():
        count = f" at {beaten.sum()} of {counted(len(rows), 'point')}" if not beaten.all() else ""
        yield f"unknown{count}, faster than what should limit it"


def _bound(rows: pd.DataFrame) -> Iterator[str]:
    words = rows.groupby("group")["bound"].agg(lambda own: _BINDS.get(own.value_counts().index[0], "neither alone"))
    stretches = (words != words.shift()).cumsum()
    for stretch, own in rows.groupby(rows["group"].map(stretches)):
        group, twin, core = own["group"].min(), own["efficiency"].median(), own["core_fraction"].median()
        where = f"from {group} query heads on a KV head " if stretch > 1 else ""
        reads = "at the reads" if twin > 1 else f"{twin:.0%} of the reads"
        yield f"{where}{words[group]}, {reads} and {core:.0%} of the core"


def tokens(tokens: pd.DataFrame) -> str:
    """The fastest of what was measured, of the smallest batch: at the shortest and the longest context."""
    known = tokens[tokens["tokens_per_second"].notna()]
    known = known[known["batch"] == known["batch"].min()]
    each = known.assign(model=known["model"].str.split(", ")).explode("model")
    said: dict[str, list[str]] = {}
    for model, rows in each.groupby("model"):
        best = rows.groupby("context")["tokens_per_second"].max()
        ends = dict.fromkeys((best.index.min(), best.index.max()))
        said.setdefault(" and ".join(f"{number(best[c])} with {c}" for c in ends), []).append(str(model))
    if not said:
        return ""
    told = [f"{listed(names)} {rates}" for rates, names in said.items()]
    more = [f"{len(told) - _MODELS} more shapes" for _ in told[_MODELS:][:1]]
    return (
        f"Tokens per second at most, by reading the cache alone in the fastest format measured: "
        f"{'; '.join([*told[:_MODELS], *more])} tokens of context."
    )


def overhead(scaling: pd.DataFrame) -> str:
    """What a pass costs beside its tokens, by the series with most contexts, then most threads, then the highest rate."""
    known = scaling[scaling["gbps"].notna()]
    if known.empty:
        return ""
    row = known.sort_values(["contexts", "threads", "gbps"]).iloc[-1]
    setting = f"{row['layout']} {row['dtype']}, {counted(int(row['threads']), 'thread')}"
    low, high = row["fixed_seconds_low"], row["fixed_seconds_high"]
    fixed = "no fixed cost that shows above noise"
    if not enough(int(row["launches"])):
        fixed = f"a fixed cost that {counted(int(row['launches']), 'launch')} cannot tell from none"
    elif low > 0:
        fixed = f"a fixed cost of {duration(row['fixed_seconds'])} ({duration(low)}..{duration(high)})"
    rate = f"{number(row['gbps'])} GB/s ({between(row['gbps_low'], row['gbps_high'])})"
    return (
        f"A pass over one layer ({setting}) has {fixed}; beyond it, tokens are read at {rate}; measured times lie "
        f"within {row['misfit']:.0%} of the time that this says."
    )

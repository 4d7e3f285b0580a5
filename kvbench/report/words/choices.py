"""Sentences on what to choose, a layout, a dtype, a variant, blocks or pages; and on how many
threads.
"""

import math
from collections.abc import Iterator
from statistics import fmean
from typing import Any

import pandas as pd

from kvbench.analysis.differs.contrasts import DEPENDS, SAME, UNKNOWN
from kvbench.analysis.judge import FASTER, SLOWER
from kvbench.grouping import grouped
from kvbench.report.words.phrases import listed, number, times
from kvbench.units import counted

FASTEST = {  # by factor of the contrasts
    "layout": "{} is the fastest layout",
    "dtype": "in the same layout, {} gives most tokens/s",
    "variant": "{} is the fastest kernel variant",
    "block_tokens": "a block of {} tokens is fastest",
    "order": "{} is the fastest order of blocks",
    "pages": "{} pages are fastest",
}
_OTHERS = {  # what is said of those that the winner does not clearly lead
    SAME: "Level with {} within noise",
    DEPENDS: "Ahead of {} at some points only",
    UNKNOWN: "To tell it from {} takes more launches",
    SLOWER: "Slower than {}",
}
_APART = "Not timed side by side"
_Lead = dict[str, Any]  # a row of `overall`, of the winner as the other


def choice(overall: pd.DataFrame, factor: str) -> str:
    """What is fastest on average of the decodes from memory, or where most pairs are if none are
    from there.
    """
    pairs = overall[
        (overall["factor"] == factor) & (overall["op"] == "decode") & (overall["ratio"] > 0)
    ]
    if pairs.empty:
        return ""
    regimes = pairs.groupby("regime")["pairs"].sum()
    regime = "DRAM" if "DRAM" in regimes.index else str(regimes.idxmax())
    found = _from_both_sides(pairs[pairs["regime"] == regime])
    winner = max(
        sorted(found), key=lambda name: fmean(math.log(lead["ratio"]) for lead in found[name])
    )
    leads, where = found[winner], "memory" if regime == "DRAM" else regime
    clear = sorted(
        (lead for lead in leads if lead["word"] == FASTER), key=lambda lead: lead["ratio"]
    )
    shown = clear if len(clear) < 3 else (clear[0], clear[-1])
    first = f"From {where}, {FASTEST[factor].format(winner)}"
    said = [
        (
            f"{first}: {' and '.join(map(_lead, shown))}"
            if clear
            else f"{first}, but no lead is clear"
        ),
        *_rest(leads),
    ]
    if apart := [lead["base"] for lead in leads if not lead["beside"]]:
        said.append(f"{_APART}{f': {listed(apart)}' if len(apart) < len(leads) else ''}")
    return f"{'. '.join(said)}."


def _from_both_sides(pairs: pd.DataFrame) -> dict[str, list[_Lead]]:
    """By value of the factor, which is the other of each row."""
    rows = pairs.to_dict("records")
    return grouped((each["other"], each) for row in rows for each in (row, _turned(row)))


def _turned(row: _Lead) -> _Lead:
    """The base as the other, and the other as the base."""
    word = {FASTER: SLOWER, SLOWER: FASTER}.get(row["word"], row["word"])
    ratios = {
        "ratio": 1 / row["ratio"],
        "ratio_low": 1 / row["ratio_high"],
        "ratio_high": 1 / row["ratio_low"],
    }
    return row | ratios | {"base": row["other"], "other": row["base"], "word": word}


def _lead(row: _Lead) -> str:
    return f"{row['ratio']:.2f}x {row['base']} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})"


def _rest(leads: list[_Lead]) -> Iterator[str]:
    for word, template in _OTHERS.items():
        if over := [lead["base"] for lead in leads if lead["word"] == word]:
            yield template.format(listed(over))


def threads(saturation: pd.DataFrame, points: pd.DataFrame, contrasts: pd.DataFrame) -> str:
    """Of the usual one of the series of decodes from memory: that with the median knee."""
    decodes = set(points["name"][points["op"] == "decode"])
    groups = (
        rows
        for _, rows in saturation[saturation["name"].isin(decodes)].groupby("series", sort=False)
    )
    series = [rows for rows in groups if (rows["regime"] == "DRAM").all()]
    if not series:
        return ""
    series.sort(key=lambda rows: (rows["threads"][rows["knee"]].iloc[0], -rows["gbps"].max()))
    rows = series[(len(series) - 1) // 2].sort_values(["threads", "gbps"], ascending=[True, False])
    most, best, knee = (
        int(rows["threads"].max()),
        rows[rows["best"]].iloc[0],
        rows[rows["knee"]].iloc[0],
    )
    if knee["threads"] == most:
        return _help(rows[rows["threads"] < most], best, contrasts)
    last = rows[rows["threads"] == most]["fraction_of_best"].max()
    all_ = f" All {most} reach {last:.0%} of it." if best["threads"] < most else ""
    verb, they = ("is", "it reaches") if knee["threads"] == 1 else ("are", "they reach")
    enough = (
        f"{knee['threads']} of {counted(most, 'thread')} {verb} enough: {they}"
        f" {knee['fraction_of_best']:.0%}"
    )
    return (
        f"{enough} of the best rate, {number(best['gbps'])} GB/s from memory with"
        f" {_team(best)}.{all_}"
    )


def _help(fewer: pd.DataFrame, best: pd.Series, contrasts: pd.DataFrame) -> str:
    """The most threads that were measured are needed to come near the best rate: that over the next
    number's.
    """
    before = fewer[fewer["threads"] == fewer["threads"].max()].iloc[0]
    both = (before["name"], best["name"])
    row, *_ = contrasts[
        contrasts["base_name"].isin(both) & contrasts["other_name"].isin(both)
    ].to_dict("records")
    row = row if row["base_name"] == before["name"] else _turned(row)
    more = (
        "More threads help" if row["ratio_low"] > 1 else "Whether more threads help is not decided"
    )
    rates = (
        f"{_team(best)} read {number(best['gbps'])} GB/s from memory, {times(row, 'ratio')} the"
        " rate"
    )
    return f"{more}: {rates} of {_team(before)}.{'' if row['beside'] else f' {_APART}.'}"


def _team(row: pd.Series) -> str:
    return counted(int(row["threads"]), "thread")

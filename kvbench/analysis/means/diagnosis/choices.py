"""What is best of what can be chosen: a layout, a dtype, a variant, blocks, pages; and how many threads."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from kvbench.analysis.differs.contrasts import FASTER, SLOWER
from kvbench.analysis.means.diagnosis.values import Interval

CHOICES = ("layout", "dtype", "variant", "block_tokens", "order", "pages")  # factors of the contrasts


@dataclass(frozen=True, slots=True)
class Lead:
    """The winner's rate, of a dtype that of its tokens, over that of another value, `over`. `word`: of the contrasts.
    `beside`: whether both were timed in the same rounds."""

    over: str
    ratio: Interval
    word: str
    pairs: int
    beside: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Of the values of a factor the one that is fastest on average, by decodes from one level."""

    factor: str
    regime: str
    winner: str
    leads: tuple[Lead, ...]


def choice(overall: pd.DataFrame, factor: str) -> Choice | None:
    """What wins the decodes from memory, or where most pairs are if none are from there."""
    overall = overall[overall["factor"] == factor]
    decodes = overall[(overall["op"] == "decode") & (overall["ratio"] > 0)]
    if decodes.empty:
        return None
    regimes = decodes.groupby("regime")["pairs"].sum()
    regime = "DRAM" if "DRAM" in regimes.index else str(regimes.idxmax())
    leads = _from_both_sides(decodes[decodes["regime"] == regime])
    winner = max(sorted(leads), key=lambda name: float(np.mean([np.log(lead.ratio.value) for lead in leads[name]])))
    return Choice(factor, regime, winner, tuple(leads[winner]))


def _from_both_sides(rows: pd.DataFrame) -> dict[str, list[Lead]]:
    """By value of the factor."""
    found: dict[str, list[Lead]] = {}
    for pair in rows.to_dict("records"):
        ratio, word, facts = Interval.of(pair, "ratio"), pair["word"], (int(pair["pairs"]), bool(pair["beside"]))
        turned = {FASTER: SLOWER, SLOWER: FASTER}.get(word, word)
        found.setdefault(pair["other"], []).append(Lead(pair["base"], ratio, word, *facts))
        found.setdefault(pair["base"], []).append(Lead(pair["other"], ratio.turned, turned, *facts))
    return found


# ---- threads ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThreadsHelp:
    """The most threads that were measured are needed to come near the best rate. `ratio`: of that rate over that of
    `fewer`, the next number."""

    series: str
    of: int  # series, of which this is the usual one
    threads: int
    gbps: float
    fewer: int
    ratio: Interval
    beside: bool


@dataclass(frozen=True, slots=True)
class ThreadsSuffice:
    """`knee` threads come near the best rate, which `best` have: so large is their `share` of it, that of all `last`."""

    series: str
    of: int
    most: int
    knee: int
    share: float
    best: int
    gbps: float
    last: float


def threads(
    saturation: pd.DataFrame, points: pd.DataFrame, contrasts: pd.DataFrame
) -> ThreadsHelp | ThreadsSuffice | None:
    """The usual one of the series of decodes from memory: that with the median knee."""
    decodes = set(points["name"][points["op"] == "decode"])
    groups = (rows for _, rows in saturation[saturation["name"].isin(decodes)].groupby("series", sort=False))
    series = [rows for rows in groups if (rows["regime"] == "DRAM").all()]
    if not series:
        return None
    series.sort(key=lambda rows: (rows["threads"][rows["knee"]].iloc[0], -rows["gbps"].max()))
    rows = series[(len(series) - 1) // 2].sort_values(["threads", "gbps"], ascending=[True, False])
    most, best, knee = int(rows["threads"].max()), rows[rows["best"]].iloc[0], rows[rows["knee"]].iloc[0]
    facts = str(rows["series"].iloc[0]), len(series)
    threads, rate = int(best["threads"]), float(best["gbps"])
    if knee["threads"] < most:
        last = float(rows[rows["threads"] == most]["fraction_of_best"].max())
        return ThreadsSuffice(*facts, most, int(knee["threads"]), float(knee["fraction_of_best"]), threads, rate, last)
    fewer = rows[rows["threads"] < most]
    before = fewer[fewer["threads"] == fewer["threads"].max()].iloc[0]
    both = (before["name"], best["name"])
    row = contrasts[contrasts["base_name"].isin(both) & contrasts["other_name"].isin(both)].iloc[0]
    ratio = Interval.of(row, "ratio")
    ratio = ratio if row["base_name"] == before["name"] else ratio.turned
    return ThreadsHelp(*facts, threads, rate, int(before["threads"]), ratio, bool(row["beside"]))

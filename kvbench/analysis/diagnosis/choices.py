"""What is best of what can be chosen: a layout, a dtype, a variant, blocks, pages; and how many threads."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from kvbench.analysis.contrasts import DEPENDS, FASTER, SAME, SLOWER, UNKNOWN
from kvbench.analysis.diagnosis.phrases import listed, number
from kvbench.units import counted

_RELATIONS = {
    FASTER: "",
    SAME: "but not beyond noise",
    DEPENDS: "faster or slower as the point may be, here",
    UNKNOWN: "with too few launches to be sure",
    SLOWER: "but",
}
_NONE = {  # where that is all there is to say
    SAME: "no difference beyond the noise of single points",
    UNKNOWN: "too few launches to tell",
    DEPENDS: "which is faster depends on the point",
}
_TURNED = {FASTER: SLOWER, SLOWER: FASTER}
_APART = "not timed side by side"


_FASTEST = "decodes fastest"
CHOICES = {  # by factor of the contrasts: what it is called, and what the best of its values does
    "layout": ("Layout of the cache", _FASTEST),
    "dtype": ("Number format of the cache", "gives most tokens per second"),
    "variant": ("Variant of the kernel", _FASTEST),
    "block_tokens": ("Size of the blocks", _FASTEST),
    "order": ("Order of the blocks", _FASTEST),
    "pages": ("Pages of the system", _FASTEST),
}


def choice(overall: pd.DataFrame, factor: str) -> str:
    """What wins the decodes from memory, or where most pairs are if none are from there."""
    what, does = CHOICES[factor]
    overall = overall[overall["factor"] == factor]
    decodes = overall[(overall["op"] == "decode") & (overall["ratio"] > 0)]
    if decodes.empty:
        return ""
    regimes = decodes.groupby("regime")["pairs"].sum()
    regime = "DRAM" if "DRAM" in regimes.index else str(regimes.idxmax())
    where = "decoding from memory" if regime == "DRAM" else f"decoding from {regime}"
    pairs = _from_both_sides(decodes[decodes["regime"] == regime])
    winner = max(sorted(pairs), key=lambda name: float(np.mean([np.log(pair["ratio"]) for pair in pairs[name]])))
    told = {word: [_lead(pair) for pair in pairs[winner] if pair["word"] == word] for word in _RELATIONS}
    if not told[FASTER] and len({pair["word"] for pair in pairs[winner]}) == 1:
        word = pairs[winner][0]["word"]
        return f"{what}, {where}: {_NONE.get(word, _NONE[DEPENDS])}; {winner} is {listed(told[word])}."
    head = f"{winner} {does}" if told[FASTER] else f"none is clearly best; {winner} comes nearest"
    said = (f"{_RELATIONS[word]} {listed(texts)}".strip() for word, texts in told.items() if texts)
    apart = [pair["base"] for pair in pairs[winner] if not pair["beside"]]
    if apart:
        several = f" with {listed(apart)}" if len(apart) < len(pairs[winner]) else ""
        said = [*said, f"{_APART}{several}"]
    return f"{what}, {where}: {head}: {'; '.join(said)}."


def _from_both_sides(rows: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """By value of the factor: its pairs with others, each as one in which it is the other one."""
    found: dict[str, list[dict[str, Any]]] = {}
    for pair in rows.to_dict("records"):
        turned = {"base": pair["other"], "word": _TURNED.get(pair["word"], pair["word"]), "ratio": 1 / pair["ratio"]}
        turned |= {"ratio_low": 1 / pair["ratio_high"], "ratio_high": 1 / pair["ratio_low"]}
        found.setdefault(pair["other"], []).append(pair)
        found.setdefault(pair["base"], []).append(pair | turned)
    return found


def _lead(pair: dict[str, Any]) -> str:
    over = f", {pair['pairs']} pairs" if pair["pairs"] > 1 else ""
    return f"{pair['ratio']:.2f} times {pair['base']} ({pair['ratio_low']:.2f}..{pair['ratio_high']:.2f}{over})"


# ---- threads ---------------------------------------------------------------------------------------------------------


def threads(saturation: pd.DataFrame, points: pd.DataFrame, contrasts: pd.DataFrame) -> str:
    """The usual one of the series of decodes from memory: that with the median knee."""
    decodes = set(points["name"][points["op"] == "decode"])
    series = list(_from_memory(saturation[saturation["name"].isin(decodes)]))
    if not series:
        return ""
    knees = [int(one["threads"][one["knee"]].iloc[0]) for one in series]
    usual = sorted(range(len(series)), key=lambda place: (knees[place], -series[place]["gbps"].max()))
    place = usual[(len(usual) - 1) // 2]
    return _saturates(series[place], knees[place], len(series), contrasts)


def _from_memory(saturation: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for _, rows in saturation.groupby("series", sort=False):
        if (rows["regime"] == "DRAM").all():
            yield rows.sort_values(["threads", "gbps"], ascending=[True, False])


def _saturates(rows: pd.DataFrame, knee: int, series: int, contrasts: pd.DataFrame) -> str:
    most, best = int(rows["threads"].max()), rows[rows["best"]].iloc[0]
    which = f"{rows['series'].iloc[0]}{f', the usual of {series} series' if series > 1 else ''}"
    rate = f"{number(best['gbps'])} GB/s with {counted(int(best['threads']), 'thread')}"
    if knee == most:
        fewer = rows[rows["threads"] < most]
        before = fewer[fewer["threads"] == fewer["threads"].max()].iloc[0]
        gain, low, high, beside = _gain(before["name"], best["name"], contrasts)
        said = (
            f"{rate} are {gain:.2f} times ({low:.2f}..{high:.2f}) what {_readers(int(before['threads']))} from memory"
        )
        said += "" if beside else f", {_APART}"
        if low <= 1:
            return f"Threads: whether more help up to the {most} that were measured is open: {said} ({which})."
        return f"Threads: more still help up to the {most} that were measured: {said} ({which})."
    reached = rows[rows["knee"]].iloc[0]["fraction_of_best"]
    text = f"Threads: beyond {knee} of {most} more hardly help: {knee} reach {reached:.0%} of the best rate, {rate}"
    last = rows[rows["threads"] == most]["fraction_of_best"].max()
    slower = f"; all {most} reach {last:.0%} of it" if int(best["threads"]) < most else ""
    return f"{text}{slower} ({which})."


def _gain(few: str, many: str, contrasts: pd.DataFrame) -> tuple[float, float, float, bool]:
    """How much faster many threads are than few, by the names of the points; and whether both were timed together."""
    row = contrasts[contrasts["base_name"].isin((few, many)) & contrasts["other_name"].isin((few, many))].iloc[0]
    found = row["ratio"], row["ratio_low"], row["ratio_high"]
    ratio, low, high = found if row["base_name"] == few else (1 / found[0], 1 / found[2], 1 / found[1])
    return ratio, low, high, bool(row["beside"])


def _readers(threads: int) -> str:
    return "one thread reads" if threads == 1 else f"{threads} threads read"

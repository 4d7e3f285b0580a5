"""Sentences on what memory gives to a decode, and on L3."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from kvbench.analysis.limits.claims import CONFIRMED, CORE, NOT_TESTABLE, PRIVATE, REFUTED, UNSTABLE
from kvbench.analysis.limits.frames import decodes_of
from kvbench.analysis.means.headline import gain_of, inside_l3, middle
from kvbench.analysis.means.models import clearest
from kvbench.model import Machine
from kvbench.regime import suggestion
from kvbench.report.words.phrases import number, times
from kvbench.units import counted

_ANSWERS = {  # to whether a decode from L3 is faster than a plain read of memory
    CONFIRMED: "yes",
    REFUTED: "no",
    CORE: "no, the core is the limit",
    UNSTABLE: "not decided",
    NOT_TESTABLE: "not tested",
}
_LIMITS = {CORE: ", limited by the core", UNSTABLE: ", not decided"}
_SEVERAL = 2  # points: of many that the core limits, one may look otherwise by chance
_KERNELS = 4  # that gain most: the first of them and the last are told


def memory(points: pd.DataFrame) -> str:
    """The fastest, and its share of plain reads by as many threads where these were measured."""
    decodes = decodes_of(points)
    far = decodes[decodes["regime"] == "DRAM"]
    if far.empty:
        return (
            "Decode from memory was not tested:"
            f" {_untested(decodes, 'every point fits in a cache')}."
        )
    row, held = far.loc[far["gbps"].idxmax()], far[far["dram_gbps"].notna()]
    said = f"Decode reads up to {number(row['gbps'])} GB/s from memory ({row['short']})."
    if held.empty:
        return f"{said} Its share of memory bandwidth is unknown: {row['ceiling_note']}."
    best = held.loc[held["gbps"].idxmax()]
    if best["name"] != row["name"]:
        said += (
            f" The fastest with a plain read beside it gets {number(best['gbps'])} GB/s"
            f" ({best['short']})."
        )
    by, share = "the same thread", best["gbps"] / best["dram_gbps"]
    if best["threads"] > 1:
        by = f"the same {best['threads']} threads"
    said += f" That is {share:.0%} of a plain read by {by}"
    if best["gbps_low"] > best["ceiling_high"]:
        return (
            f"{said}. It exceeds the best read of this run ({number(best['ceiling_gbps'])} GB/s):"
            " suspect."
        )
    if share > 1 and pd.notna(best["ceiling_gbps"]):
        said += (
            f", which prefetches nothing, and {best['ceiling_fraction']:.0%} of the best read of"
            " this run"
        )
    return f"{said}."


def l3(points: pd.DataFrame, machine: Machine) -> str:
    inside, decodes = inside_l3(points), decodes_of(points)
    if inside.empty:
        closed = suggestion(machine, machine.allowed).removeprefix("not testable: ")
        why = _untested(
            decodes, closed.replace("not testable", "not possible", 1) or "no point lies in L3"
        )
        private = int((decodes["l3"] == PRIVATE).sum())
        apart = f", {counted(private, 'point')} in caches private to a core" if private else ""
        return f"L3 was not tested: {why}{apart}."
    tested = inside[inside["l3"] != NOT_TESTABLE]
    if tested.empty:
        row = clearest(inside)
        return f"Whether L3 helps decode was not tested at {row['short']}: {row['l3_reason']}."
    counts = inside["l3"].value_counts()
    words = sorted(counts.index, key=lambda word: word != leading(counts))
    answers = "; ".join(f"{_ANSWERS[word]} at {counts[word]}" for word in words)
    most = tested[tested["threads"] == tested["threads"].max()]
    threads = counted(int(most["threads"].iloc[0]), "thread").capitalize()
    said = [
        (
            "Is decode from L3 faster than a plain read of memory? Of"
            f" {counted(len(inside), 'point')}: {answers}."
        ),
        f"{threads} read L3 {times(middle(most), 'l3_reads')} as fast as memory.",
        _kernels(tested),
    ]
    if (inside["regime_confidence"] != "high").any():
        said.append("The size of L3 is in doubt.")
    return " ".join(said)


def leading(counts: pd.Series) -> str:
    """The word of most points; but those that the core limits say nothing against what several
    others settle.
    """
    others = counts.drop(CORE, errors="ignore")
    settled = len(others) and others.index[0] in (CONFIRMED, REFUTED) and others.iloc[0] >= _SEVERAL
    return str((others if settled else counts).index[0])


def _kernels(tested: pd.DataFrame) -> str:
    """Of each the clearest point at the most threads: beside the same decode from memory, or else
    plain reads of it.
    """
    gain = gain_of(tested)
    groups = (own for _, own in tested.groupby(["dtype", "variant", "group"], sort=False))
    rows = [clearest(own[own["threads"] == own["threads"].max()]) for own in groups]
    rows = sorted(rows, key=lambda row: -row[gain])[:_KERNELS]
    over = "a plain read of memory" if gain == "l3_decode" else "the same decode from memory"
    shown = rows if len(rows) == 1 else (rows[0], rows[-1])
    return f"Decode from L3 against {over}: {'; '.join(_decode(row, gain) for row in shown)}."


def _decode(row: Mapping[str, Any], gain: str) -> str:
    heads = (
        f"with {row['group']} query heads a KV head"
        if row["group"] > 1
        else "without grouped heads"
    )
    kernel = row["dtype"] if row["variant"] == "flash" else f"{row['dtype']} {row['variant']}"
    return f"{times(row, gain)} for {kernel} {heads}{_LIMITS.get(row['l3'], '')}"


def _untested(decodes: pd.DataFrame, otherwise: str) -> str:
    if decodes.empty:
        return "no decode was measured"
    return (
        "the cache sizes of this machine are not known"
        if (decodes["regime"] == "unknown").all()
        else otherwise
    )

"""How much of the memory's bandwidth a decode gets, and whether L3 gives it more."""

import pandas as pd

from kvbench.analysis.bounds import CONFIRMED, CORE, NOT_TESTABLE, PRIVATE, REFUTED, UNSTABLE
from kvbench.analysis.diagnosis.phrases import listed, number
from kvbench.analysis.models import clearest
from kvbench.model import Machine
from kvbench.regime import suggestion
from kvbench.units import counted

_SEVERAL = 2  # points: of many that the core limits, one may look otherwise by chance
_NO_CACHES = "no cache size of this machine is known"
_PLAIN = {
    CONFIRMED: "yes",
    REFUTED: "no",
    CORE: "not shown, for the cores are the limit before L3 is",
    UNSTABLE: "undecided, for the measurements overlap",
    NOT_TESTABLE: "cannot be told",
}
_LIMITS = {CORE: ", the core is the limit", UNSTABLE: ", undecided"}
_KERNELS = 4  # that are told
_SHORT = {CONFIRMED: "yes", REFUTED: "no", CORE: "limited by the cores", UNSTABLE: "undecided", NOT_TESTABLE: "untold"}


def memory(points: pd.DataFrame) -> str:
    decodes = decodes_of(points)
    far = decodes[decodes["regime"] == "DRAM"]
    if far.empty:
        return (
            f"Memory bandwidth of decode attention: not tested: {_why_not(decodes, 'none leaves the caches behind')}."
        )
    held = far[far["dram_gbps"].notna()]
    row = _fastest(far)
    best = f"Decode attention reads up to {number(row['gbps'])} GB/s from memory"
    if held.empty:
        return f"{best} ({row['short']}); what share of the bandwidth that is, is unknown: {row['ceiling_note']}."
    if pd.isna(row["dram_gbps"]):
        best, row = f"{best} ({row['short']})", _fastest(held)
        best = f"{best}, and {number(row['gbps'])} where plain reads were measured, too"
    suspect = ", more than there should be: suspect" if row["gbps_low"] > row["ceiling_high"] else ""
    share, team = row["gbps"] / row["dram_gbps"], _same(row["threads"])
    text = f"{best}, {share:.0%} of the {number(row['dram_gbps'])} GB/s that plain reads by {team} get"
    if pd.notna(row["ceiling_gbps"]):
        by = f"{row['ceiling_form']}, {counted(int(row['ceiling_threads']), 'thread')}"
        text += f" and {row['ceiling_fraction']:.0%} of the {number(row['ceiling_gbps'])} of the best reads ({by})"
    text += suspect
    if len(held) == 1:
        return f"{text} ({row['short']})."
    half = (held["gbps"] / held["dram_gbps"]).median()
    return f"{text} ({row['short']}); half of the {len(held)} points get {half:.0%} of such plain reads or more."


def l3(points: pd.DataFrame, machine: Machine) -> str:
    """What the points in L3 say; how much more L3 gives than memory; and what each kernel makes of that."""
    question = "Is a layer's slice that fits the L3 cache read faster than memory?"
    decodes = decodes_of(points)
    inside = decodes[(decodes["regime"] == "L3") & ~decodes["l3"].isin(["", PRIVATE])]
    if inside.empty:
        closed = suggestion(machine, machine.allowed).removeprefix("not testable: ").replace("not", "it is not", 1)
        return f"{question} Not tested: {_why_not(decodes, closed or _elsewhere(decodes))}."
    counts = inside["l3"].value_counts()
    word = _leading(counts)
    others = "".join(
        f", {_SHORT.get(str(other), other)} at {count}" for other, count in counts.items() if other != word
    )
    plain = _PLAIN.get(word, word) + (", where the cores allow it" if word == CONFIRMED and CORE in counts else "")
    said = f"{question} {plain[0].upper()}{plain[1:]}, at {counts[word]} of {counted(len(inside), 'point')}{others}"
    doubt = "; the size of L3 is in doubt" if (inside["regime_confidence"] != "high").any() else ""
    tested = inside[inside["l3"] != NOT_TESTABLE]
    if tested.empty:
        return f"{said}; such as {(row := clearest(inside))['short']}: {row['l3_reason']}{doubt}."
    return f"{said}{doubt}. {_of_machine(tested)}. {_of_kernels(tested)}."


def _of_machine(tested: pd.DataFrame) -> str:
    """By the number of threads the middle point."""
    sets = tested.sort_values("threads").groupby("threads")
    middle = (own.sort_values("l3_reads").iloc[(len(own) - 1) // 2] for _, own in sets)
    each = (f"{_times(row, 'l3_reads')} to {counted(int(row['threads']), 'thread')}" for row in middle)
    return f"L3 gives plain reads {listed(each)} what memory gives"


def _of_kernels(tested: pd.DataFrame) -> str:
    """Of each kernel the clearest point at the most threads, those that gain most first."""
    gain = "l3_gain" if tested["l3_gain"].notna().all() else "l3_decode"
    groups = (own for _, own in tested.groupby(["dtype", "variant", "group"], sort=False))
    rows = [clearest(own[own["threads"] == own["threads"].max()]) for own in groups]
    each = [_of_kernel(row, gain) for row in sorted(rows, key=lambda row: -row[gain])[:_KERNELS]]
    than = "the same from memory" if gain == "l3_gain" else "plain reads of memory"
    return f"A decode from L3 beside {than}: {'; '.join(each)}"


def _of_kernel(row: pd.Series, gain: str) -> str:
    heads = f"with {row['group']} query heads a KV head" if row["group"] > 1 else "without groups"
    what = row["dtype"] if row["variant"] == "flash" else f"{row['dtype']} {row['variant']}"
    return f"{what} {heads} {_times(row, gain)}{_LIMITS.get(row['l3'], '')}"


def _times(row: pd.Series, name: str) -> str:
    return f"{row[name]:.1f} times ({row[f'{name}_low']:.1f}..{row[f'{name}_high']:.1f})"


def _leading(counts: pd.Series) -> str:
    """The word of most points; but those that the core limits say nothing against what several others settle."""
    others = counts.drop(CORE, errors="ignore")
    settled = len(others) and others.index[0] in (CONFIRMED, REFUTED) and others.iloc[0] >= _SEVERAL
    return str((others if settled else counts).index[0])


def _elsewhere(decodes: pd.DataFrame) -> str:
    near = int((decodes["l3"] == PRIVATE).sum())
    return f"none lies in L3, {near} in caches that a core has to itself" if near else "none lies in L3"


def decodes_of(points: pd.DataFrame) -> pd.DataFrame:
    """Those with a rate, in their places."""
    return points[(points["op"] == "decode") & points["gbps"].notna()]


def _why_not(decodes: pd.DataFrame, otherwise: str) -> str:
    if decodes.empty:
        return "no decode was measured"
    return _NO_CACHES if (decodes["regime"] == "unknown").all() else otherwise


def _fastest(points: pd.DataFrame) -> pd.Series:
    return points.loc[points["gbps"].idxmax()]


def _same(threads: int) -> str:
    return "the same thread" if threads == 1 else f"the same {threads} threads"

"""Sentences on the memory's bandwidth, and on L3."""

from collections.abc import Iterator, Sequence

from kvbench.analysis.limits.bounds import CONFIRMED, CORE, NOT_TESTABLE, REFUTED, UNSTABLE
from kvbench.analysis.means.diagnosis.bandwidth import MemoryRate, MemoryShare, MemoryUntested
from kvbench.analysis.means.diagnosis.l3 import L3Decodes, L3Reads, L3Untested, L3Verdict
from kvbench.analysis.means.diagnosis.values import Untested
from kvbench.report.words.phrases import listed, number, times
from kvbench.units import counted

_WHY = {
    Untested.NO_DECODE: "no decode was measured",
    Untested.UNKNOWN_CACHES: "no cache size of this machine is known",
    Untested.NEARER: "no point is larger than the caches",
    Untested.ELSEWHERE: "no point lies in L3",
}
ANSWERS = {  # to whether a decode from L3 is faster than a plain read of memory
    CONFIRMED: "yes",
    REFUTED: "no",
    CORE: "the core is the limit",
    UNSTABLE: "undecided",
    NOT_TESTABLE: "cannot be told",
}
_LIMITS = {CORE: ": the core is the limit", UNSTABLE: ": undecided"}


def memory_untested(fact: MemoryUntested) -> str:
    return f"The memory bandwidth of decode attention was not tested: {_WHY[fact.why]}."


def memory_rate(fact: MemoryRate) -> str:
    said = f"Decode attention reads up to {number(fact.gbps)} GB/s from memory ({fact.name})."
    if fact.held is None:
        return f"{said} Its share of the memory's bandwidth is unknown: {fact.note}."
    if fact.held.name != fact.name:
        said += f" Where plain reads were measured too, it reads {number(fact.held.gbps)} GB/s ({fact.held.name})."
    return f"{said} {_shares(fact.held)}"


def _shares(held: MemoryShare) -> str:
    by = "the same thread" if held.threads == 1 else f"the same {held.threads} threads"
    said = f"That is {held.share:.0%} of a plain read by {by} ({number(held.plain_gbps)} GB/s)"
    if best := held.best:
        form = f"{number(best.gbps)} GB/s: {best.form}, {counted(best.threads, 'thread')}"
        said += f" and {best.share:.0%} of the best read ({form})"
        said += ". More than the best read is suspect" if best.exceeded else ""
    if held.points > 1:
        said += f". Half of the {held.points} points get {held.usual:.0%} of a plain read or more"
    return f"{said}."


def l3_untested(fact: L3Untested) -> str:
    why = _WHY.get(fact.why) or fact.closed.replace("not testable", "it is not testable", 1)
    private = f", {fact.private} in caches that a core has to itself" if fact.private else ""
    return f"L3 was not tested: {why}{private}."


def l3_verdict(fact: L3Verdict) -> str:
    (word, count), *others = fact.counts
    answer = f"{ANSWERS[word].capitalize()} at {count} of {counted(sum(n for _, n in fact.counts), 'point')}"
    more = "".join(f"; {ANSWERS[other]} at {points}" for other, points in others)
    said = [f"Is a decode from L3 faster than a plain read of memory? {answer}{more}."]
    if fact.doubtful:
        said.append("The size of L3 is in doubt.")
    if name := fact.example[0]:
        said.append(f"For example {name}: {fact.example[1]}.")
    if fact.reads:
        said.append(f"L3 reads {listed(_reads(fact.reads))}.")
    if fact.kernels:
        said.append(f"{'; '.join(_decodes(fact.kernels, 'memory can be read' if fact.plain else 'from memory'))}.")
    return " ".join(said)


def _reads(facts: Sequence[L3Reads]) -> Iterator[str]:
    for place, fact in enumerate(facts):
        than = "" if place else " as fast as memory"
        yield f"{times(fact.ratio)}{than} with {counted(fact.threads, 'thread')}"


def _decodes(facts: Sequence[L3Decodes], other: str) -> Iterator[str]:
    for place, fact in enumerate(facts):
        does, than = ("", "") if place else (" decodes", f" as fast from L3 as {other}")
        yield f"{_kernel(fact)}{does} {times(fact.ratio)}{than}{_LIMITS.get(fact.word, '')}"


def _kernel(fact: L3Decodes) -> str:
    heads = f"with {fact.group} query heads a KV head" if fact.group > 1 else "without groups"
    return f"{fact.dtype} {heads}" if fact.variant == "flash" else f"{fact.dtype} {fact.variant} {heads}"

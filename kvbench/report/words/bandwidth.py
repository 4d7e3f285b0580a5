"""Sentences on what memory gives, and L3."""

from kvbench.analysis.limits.bounds import CONFIRMED, CORE, NOT_TESTABLE, REFUTED, UNSTABLE
from kvbench.analysis.means.diagnosis.bandwidth import MemoryRate, MemoryUntested
from kvbench.analysis.means.diagnosis.l3 import L3Decodes, L3Untested, L3Verdict
from kvbench.analysis.means.diagnosis.values import Untested
from kvbench.report.words.phrases import number, times
from kvbench.units import counted

_WHY = {
    Untested.NO_DECODE: "no decode was measured",
    Untested.UNKNOWN_CACHES: "the cache sizes of this machine are not known",
    Untested.NEARER: "every point fits in a cache",
    Untested.ELSEWHERE: "no point lies in L3",
}
_ANSWERS = {  # to whether a decode from L3 is faster than a plain read of memory
    CONFIRMED: "yes",
    REFUTED: "no",
    CORE: "no, the core is the limit",
    UNSTABLE: "not decided",
    NOT_TESTABLE: "not tested",
}
_LIMITS = {CORE: ", limited by the core", UNSTABLE: ", not decided"}


def memory_untested(fact: MemoryUntested) -> str:
    return f"Decode from memory was not tested: {_WHY[fact.why]}."


def memory_rate(fact: MemoryRate) -> str:
    said = f"Decode reads up to {number(fact.gbps)} GB/s from memory ({fact.name})."
    if fact.held is None:
        return f"{said} Its share of memory bandwidth is unknown: {fact.note}."
    held = fact.held
    if held.name != fact.name:
        said += f" The fastest with a plain read beside it gets {number(held.gbps)} GB/s ({held.name})."
    by = "the same thread" if held.threads == 1 else f"the same {held.threads} threads"
    said += f" That is {held.share:.0%} of a plain read by {by}"
    if held.best and held.best.exceeded:
        return f"{said}. It exceeds the best read of this run ({number(held.best.gbps)} GB/s): suspect."
    if held.best and held.share > 1:
        said += f", which prefetches nothing, and {held.best.share:.0%} of the best read of this run"
    return f"{said}."


def l3_untested(fact: L3Untested) -> str:
    why = _WHY.get(fact.why) or fact.closed.replace("not testable", "not possible", 1)
    private = f", {counted(fact.private, 'point')} in caches private to a core" if fact.private else ""
    return f"L3 was not tested: {why}{private}."


def l3_verdict(fact: L3Verdict) -> str:
    if all(word == NOT_TESTABLE for word, _ in fact.counts):
        return f"Whether L3 helps decode was not tested at {fact.example[0]}: {fact.example[1]}."
    total = counted(sum(count for _, count in fact.counts), "point")
    answers = "; ".join(f"{_ANSWERS[word]} at {count}" for word, count in fact.counts)
    said = [f"Is decode from L3 faster than a plain read of memory? Of {total}: {answers}."]
    if fact.reads:
        most = max(fact.reads, key=lambda each: each.threads)
        said.append(f"{counted(most.threads, 'thread').capitalize()} read L3 {times(most.ratio)} as fast as memory.")
    if fact.kernels:
        over = "a plain read of memory" if fact.plain else "the same decode from memory"
        shown = fact.kernels if len(fact.kernels) == 1 else (fact.kernels[0], fact.kernels[-1])
        said.append(f"Decode from L3 against {over}: {'; '.join(map(_decode, shown))}.")
    if name := fact.example[0]:
        said.append(f"Reason at {name}: {fact.example[1]}.")
    if fact.doubtful:
        said.append("The size of L3 is in doubt.")
    return " ".join(said)


def _decode(fact: L3Decodes) -> str:
    heads = f"with {fact.group} query heads a KV head" if fact.group > 1 else "without grouped heads"
    kernel = fact.dtype if fact.variant == "flash" else f"{fact.dtype} {fact.variant}"
    return f"{times(fact.ratio)} for {kernel} {heads}{_LIMITS.get(fact.word, '')}"

"""Sentences on what fits, what binds, and what follows for published models."""

from collections.abc import Iterator

from kvbench.analysis.means.diagnosis.limits import Bounds, DtypeBound, Fit, ModelTokens, PassCost, Tokens
from kvbench.analysis.means.models import NOT_TESTED
from kvbench.report.words.bandwidth import ANSWERS
from kvbench.report.words.phrases import between, listed, number
from kvbench.units import counted, duration

_MODELS = 4  # that a sentence names
BINDS = {"memory": "memory", "core": "the core", "scheduling": "threads that wait for each other"}


def fit(fact: Fit) -> str:
    setting = f"{fact.dtype}, {counted(fact.threads, 'thread')}"
    if not fact.reaches:
        return f"No context's keys and values of one layer lie in L3 ({setting}): {fact.closed}."
    reaches = (
        f"{'the whole ' if each.whole else ''}{each.context} tokens of {listed(each.models, _MODELS)}"
        for each in fact.reaches
    )
    said = f"L3 holds the keys and values of one layer ({setting}) up to {listed(reaches, _MODELS)}."
    answers = "; ".join(_answers(fact))
    return f"{said} Is decoding there faster than a plain read of memory? {answers[0].upper()}{answers[1:]}."


def _answers(fact: Fit) -> Iterator[str]:
    for word, models in sorted(fact.words, key=lambda each: each[0] == NOT_TESTED):
        others = "the others" if word == NOT_TESTED else listed(models, _MODELS)
        yield ANSWERS.get(word, word) + (f" for {others}" if len(fact.words) > 1 else "")


def bounds(fact: Bounds) -> str:
    said = f"What limits decoding from memory ({counted(fact.threads, 'thread')})"
    return f"{said}, beside the read of the same rows and the core roof? {' '.join(map(_bound, fact.dtypes))}"


def _bound(fact: DtypeBound) -> str:
    parts = []
    for place, each in enumerate(fact.stretches):
        begin = f"from {each.group} query heads a KV head " if place else ""
        reads = "at the read" if each.read > 1 else f"{each.read:.0%} of the read"
        parts.append(f"{begin}{BINDS.get(each.word, 'neither alone')} ({reads}, {each.core:.0%} of the roof)")
    if fact.beaten:
        count = f" at {fact.beaten} of {counted(fact.points, 'point')}" if parts else ""
        parts.append(f"unknown{count}, faster than what should limit it")
    return f"{fact.dtype}: {'; '.join(parts)}."


def tokens(fact: Tokens) -> str:
    told = [f"{listed(each.models)} {_rates(each)}" for each in fact.shapes]
    more = [counted(len(told) - _MODELS, "more shape")] if len(told) > _MODELS else []
    said = "In the fastest format, reading the cache alone allows at most these tokens per second, by context"
    return f"{said}: {'; '.join([*told[:_MODELS], *more])}."


def _rates(fact: ModelTokens) -> str:
    rates = listed(f"{number(rate)} at {context} tokens" for context, rate in fact.rates)
    return f"{rates} ({fact.remark})" if fact.remark else rates


def pass_cost(fact: PassCost) -> str:
    fixed = f"of {duration(fact.fixed.value)} ({duration(fact.fixed.low)}..{duration(fact.fixed.high)})"
    if not fact.enough:
        fixed = f"that {counted(fact.launches, 'launch')} cannot tell from none"
    said = "no fixed cost above the noise" if fact.enough and fact.fixed.low <= 0 else f"a fixed cost {fixed}"
    rate = f"{number(fact.gbps.value)} GB/s ({between(fact.gbps.low, fact.gbps.high)})"
    setting = f"{fact.layout} {fact.dtype}, {counted(fact.threads, 'thread')}"
    return (
        f"A pass over one layer ({setting}) has {said}. Beyond it, tokens are read at {rate}. "
        f"Measured times are within {fact.misfit:.0%} of that line."
    )

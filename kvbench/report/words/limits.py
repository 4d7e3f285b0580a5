"""Sentences on what fits, what limits, and what follows for published models."""

from kvbench.analysis.means.diagnosis.limits import Bounds, DtypeBound, Fit, PassCost, Tokens
from kvbench.report.words.phrases import between, listed, number
from kvbench.units import counted, duration

_MODELS = 4  # that a sentence names
BINDS = {"memory": "memory", "core": "the core", "scheduling": "threads that wait for each other"}
_UNCLEAR = "neither memory nor the core alone"


def fit(fact: Fit) -> str:
    setting = counted(fact.threads, "thread")
    if not fact.reaches:
        return f"No {fact.dtype} layer lies in L3 ({setting}): {fact.closed}."
    reaches = (
        f"{'the full ' if each.whole else ''}{each.context:,} tokens of {listed(each.models, _MODELS)}"
        for each in fact.reaches
    )
    return f"One {fact.dtype} layer fits in L3 up to {listed(reaches, _MODELS)} ({setting})."


def bounds(fact: Bounds) -> str:
    """Dtypes by what limits them; the table of dtypes has the shares."""
    groups: dict[str, list[str]] = {}
    for each in fact.dtypes:
        groups.setdefault(_bound(each), []).append(each.dtype)
    limits = "; ".join(f"{limit} for {listed(dtypes)}" for limit, dtypes in groups.items())
    said = f"What limits decode from memory ({counted(fact.threads, 'thread')}): {limits}."
    beaten = [each.dtype for each in fact.dtypes if each.beaten]
    return f"{said} Some points of {listed(beaten)} are faster than their limit: suspect." if beaten else said


def _bound(fact: DtypeBound) -> str:
    words = [BINDS.get(each.word, _UNCLEAR) for each in fact.stretches] or [_UNCLEAR]
    heads = [f" (from {each.group} query heads a KV head)" for each in fact.stretches[1:]]
    return ", then ".join(word + of for word, of in zip(words, ["", *heads], strict=True))


def tokens(fact: Tokens) -> str:
    first, *others = fact.shapes
    rates = listed(f"{number(rate)} tokens/s at {context:,} tokens" for context, rate in first.rates)
    rates += f" ({first.remark})" if first.remark else ""
    more = f" The table has {counted(len(others), 'other model shape')}." if others else ""
    return f"{listed(first.models, _MODELS)}, KV reads only, fastest dtype of each: at most {rates}.{more}"


def pass_cost(fact: PassCost) -> str:
    setting = f"{fact.layout} {fact.dtype}, {counted(fact.threads, 'thread')}"
    rate = f"Beyond it, tokens are read at {number(fact.gbps.value)} GB/s ({between(fact.gbps.low, fact.gbps.high)})."
    if not fact.enough:
        said = f"has a fixed cost that {counted(fact.launches, 'launch')} cannot tell from zero"
    elif fact.fixed.low <= 0:
        said = "has no fixed cost above the noise"
    else:
        fixed = f"{duration(fact.fixed.low)} to {duration(fact.fixed.high)}"
        said = f"costs {duration(fact.fixed.value)} before its first token ({fixed})"
    return f"A pass over one layer {said}: {setting}. {rate}"

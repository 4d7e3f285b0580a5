"""Sentences on what it costs to store tokens."""

from kvbench.analysis.means.diagnosis.stores import Payback, Pays, StoreRate, Stores
from kvbench.regime import NO_LEVEL
from kvbench.report.words.phrases import between, number
from kvbench.units import duration

_COPIES = {"copy": "a copy with ordinary stores", "copy_nt": "a copy with non-temporal stores"}
_WHAT = {"append": "one token at a time", "bulk": "a whole prompt"}


def stores(fact: Stores) -> str:
    said = list(map(_rate, fact.rates))
    if fact.payback:
        said.append(_payback(fact.payback))
    elif fact.paybacks:
        said.append("What a layout costs to store, or saves to read, is lost in the noise.")
    return " ".join(said)


def _rate(fact: StoreRate) -> str:
    where = "" if fact.regime in NO_LEVEL else f" to {'memory' if fact.regime == 'DRAM' else fact.regime}"
    share = f" and {fact.share:.0%} of {_COPIES[fact.witness]}" if fact.witness else ""
    rate = f"{number(fact.gbps)} GB/s{where}"
    each = f"{duration(fact.seconds)} a token and layer"
    return f"Storing {_WHAT.get(fact.op, fact.op)} runs at {rate} ({fact.name}). That is {each}{share}."


def _payback(fact: Payback) -> str:
    said = f"{fact.dearer} is dearer to store than {fact.cheaper}. It"
    if fact.tokens is None:
        return f"{said} saves nothing in reading that shows above the noise."
    tokens = f"{number(fact.tokens.value)}", f"({between(fact.tokens.low, fact.tokens.high)})"
    if fact.when == Pays.BY_CONTEXT:
        return f"{said} pays its appends only from a context of {tokens[0]} tokens {tokens[1]} on."
    return f"{said} pays that back after {tokens[0]} decoded tokens {tokens[1]} at a context of {fact.context}."

"""Sentences on what it costs to store tokens."""

from kvbench.analysis.means.diagnosis.stores import Payback, Pays, StoreRate, Stores
from kvbench.report.words.phrases import between, number
from kvbench.units import duration

_COPIES = {"copy": "an ordinary copy", "copy_nt": "a non-temporal copy"}
_WHAT = {"append": "Storing one token", "bulk": "Storing a prompt"}


def stores(fact: Stores) -> str:
    said = list(map(_rate, fact.rates))
    if fact.payback:
        said.append(_payback(fact.payback))
    elif fact.paybacks:
        said.append("No layout saves or costs more than the noise.")
    return " ".join(said)


def _rate(fact: StoreRate) -> str:
    share = f", {fact.share:.0%} of the speed of {_COPIES[fact.witness]}" if fact.witness else ""
    each = f"{duration(fact.seconds)} a token and layer"
    return f"{_WHAT.get(fact.op, fact.op)} takes {each} ({fact.name}): {number(fact.gbps)} GB/s{share}."


def _payback(fact: Payback) -> str:
    said = f"{fact.dearer} costs more to store than {fact.cheaper}"
    if fact.tokens is None:
        return f"{said} and saves nothing in reading above the noise."
    tokens = f"{number(fact.tokens.value)}", f"({between(fact.tokens.low, fact.tokens.high)})"
    if fact.when == Pays.BY_CONTEXT:
        return f"{said} and pays off from a context of {tokens[0]} tokens {tokens[1]}."
    return f"{said} and pays off after {tokens[0]} decoded tokens {tokens[1]} at a context of {fact.context:,}."

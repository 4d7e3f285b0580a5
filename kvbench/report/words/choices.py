"""Sentences on what to choose, and on how many threads."""

from collections.abc import Iterator, Sequence

from kvbench.analysis.differs.contrasts import DEPENDS, FASTER, SAME, SLOWER, UNKNOWN
from kvbench.analysis.means.diagnosis.choices import Choice, Lead, ThreadsHelp, ThreadsSuffice
from kvbench.report.words.phrases import listed, number, times
from kvbench.units import counted

_FASTEST = {
    "layout": "{} is the fastest layout",
    "dtype": "in the same layout, {} gives most tokens/s",
    "variant": "{} is the fastest kernel variant",
    "block_tokens": "a block of {} tokens is fastest",
    "order": "{} is the fastest order of blocks",
    "pages": "{} pages are fastest",
}
_OTHERS = {  # what is said of those that the winner does not clearly lead
    SAME: "Level with {} within noise",
    DEPENDS: "Ahead of {} at some points only",
    UNKNOWN: "To tell it from {} takes more launches",
    SLOWER: "Slower than {}",
}
_APART = "Not timed side by side"


def choice(fact: Choice) -> str:
    where = "memory" if fact.regime == "DRAM" else fact.regime
    leads = sorted((lead for lead in fact.leads if lead.word == FASTER), key=lambda lead: lead.ratio.value)
    first = _FASTEST[fact.factor].format(fact.winner)
    if leads:
        shown = leads if len(leads) < 3 else (leads[0], leads[-1])
        head = f"From {where}, {first}: {' and '.join(map(_lead, shown))}"
    else:
        head = f"From {where}, {first}, but no lead is clear"
    said = [head, *_rest(fact.leads)]
    apart = [lead.over for lead in fact.leads if not lead.beside]
    if apart:
        said.append(f"{_APART}{f': {listed(apart)}' if len(apart) < len(fact.leads) else ''}")
    return f"{'. '.join(said)}."


def _lead(lead: Lead) -> str:
    return f"{lead.ratio.value:.2f}x {lead.over} ({lead.ratio.low:.2f} to {lead.ratio.high:.2f})"


def _rest(leads: Sequence[Lead]) -> Iterator[str]:
    for word, template in _OTHERS.items():
        if over := [lead.over for lead in leads if lead.word == word]:
            yield template.format(listed(over))


def threads_help(fact: ThreadsHelp) -> str:
    more = "More threads help" if fact.ratio.low > 1 else "Whether more threads help is not decided"
    apart = "" if fact.beside else f" {_APART}."
    rates = f"{counted(fact.threads, 'thread')} read {number(fact.gbps)} GB/s from memory"
    return f"{more}: {rates}, {times(fact.ratio)} the rate of {counted(fact.fewer, 'thread')}.{apart}"


def threads_suffice(fact: ThreadsSuffice) -> str:
    last = f" All {fact.most} reach {fact.last:.0%} of it." if fact.best < fact.most else ""
    enough = f"{fact.knee} of {counted(fact.most, 'thread')} {'is' if fact.knee == 1 else 'are'} enough"
    reach = f"{'it reaches' if fact.knee == 1 else 'they reach'} {fact.share:.0%} of the best rate"
    return f"{enough}: {reach}, {number(fact.gbps)} GB/s from memory with {counted(fact.best, 'thread')}.{last}"

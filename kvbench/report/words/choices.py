"""Sentences on what can be chosen, and on how many threads."""

from kvbench.analysis.differs.contrasts import DEPENDS, FASTER, SAME, SLOWER, UNKNOWN
from kvbench.analysis.means.diagnosis.choices import Choice, Lead, ThreadsHelp, ThreadsSuffice
from kvbench.report.words.phrases import listed, number, times
from kvbench.units import counted

_FACTORS = {
    "layout": "Layout",
    "dtype": "Number format",
    "variant": "Kernel variant",
    "block_tokens": "Block size",
    "order": "Order of the blocks",
    "pages": "Pages",
}
_RELATIONS = {  # of one lead among others
    FASTER: "",
    SAME: "within the noise ",
    DEPENDS: "depending on the point ",
    UNKNOWN: "with too few launches to be sure ",
    SLOWER: "but ",
}
_ALL = {  # where that is all there is to say
    SAME: "no difference shows above the noise",
    UNKNOWN: "there are too few launches to tell",
    DEPENDS: "which is fastest depends on the point",
}
_APART = "not timed side by side"


def choice(fact: Choice) -> str:
    where = "memory" if fact.regime == "DRAM" else fact.regime
    does = f"{'gives the most tokens per second' if fact.factor == 'dtype' else 'decodes fastest'} from {where}"
    by_word = {word: listed(_lead(lead) for lead in fact.leads if lead.word == word) for word in _RELATIONS}
    said = "; ".join(f"{_RELATIONS[word]}{leads}" for word, leads in by_word.items() if leads)
    words = {lead.word for lead in fact.leads}
    if FASTER in words:
        head = f"{fact.winner} {does}: {said}"
    elif len(words) == 1:
        head = f"{_ALL.get(*words, _ALL[DEPENDS])}. From {where}, {fact.winner} is {by_word[words.pop()]}"
    else:
        head = f"none clearly {does}. {fact.winner} comes nearest: {said}"
    apart = [lead.over for lead in fact.leads if not lead.beside]
    which = f"Those with {listed(apart)}" if len(apart) < len(fact.leads) else "They"
    return f"{_FACTORS[fact.factor]}: {head}{f'. {which} were {_APART}' if apart else ''}."


def _lead(lead: Lead) -> str:
    over = f", {lead.pairs} pairs" if lead.pairs > 1 else ""
    return f"{lead.ratio.value:.2f}x {lead.over} ({lead.ratio.low:.2f}..{lead.ratio.high:.2f}{over})"


def threads_help(fact: ThreadsHelp) -> str:
    more = "More threads still help" if fact.ratio.low > 1 else "Whether more threads help is open"
    apart = "" if fact.beside else f", {_APART}"
    return (
        f"{more}: {counted(fact.threads, 'thread')}, the most that were measured, read {number(fact.gbps)} GB/s from memory. "
        f"That is {times(fact.ratio)} the rate of {counted(fact.fewer, 'thread')} ({_series(fact)}{apart})."
    )


def threads_suffice(fact: ThreadsSuffice) -> str:
    best = f"{number(fact.gbps)} GB/s from memory with {counted(fact.best, 'thread')}"
    last = f" With all {fact.most} it reaches {fact.last:.0%} of it." if fact.best < fact.most else ""
    reached = f"with {fact.knee} of {fact.most}, decoding reaches {fact.share:.0%} of its best rate"
    return f"More threads hardly help: {reached}, {best} ({_series(fact)}).{last}"


def _series(fact: ThreadsHelp | ThreadsSuffice) -> str:
    return f"{fact.series}, the median of {fact.of} series" if fact.of > 1 else fact.series

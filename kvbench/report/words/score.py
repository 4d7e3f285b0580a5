"""What is said of a score: on a terminal, in at most six lines."""

from collections.abc import Iterator

from kvbench.report.words.phrases import number
from kvbench.score import Breach, Figure, Rate, Score
from kvbench.units import counted, size

_BREACHES = {
    "answers": "an answer is wrong or missing: {found}",
    "kernels": "{count} kernels in one run, and not the one that was picked before it",
    "workload": "{name} is {found}, and must be {wanted}",
    "bytes": "a pass reads {found:,.0f} bytes, and {wanted:,} count",
    "cores": "{found} of {wanted} cores",
    "launches": "{found} launches, and {wanted} are needed",
    "caches": "{found} in rotation, and {wanted} are needed to leave the last-level caches behind",
    "caches unknown": "no last-level cache is known, so nobody can tell whether one helps (see --override)",
    "above": "faster than can be explained: {found}",
    "witnesses": "reads beside it at {found:.0%} of the best reads of memory",
    "no witnesses": "no reads of memory in this run to hold it against",
    "met": "launch {launch} is contaminated: other work took part in {met:.0%} of its samples",
    "reads": "launch {launch} is contaminated: memory gave {reads:.0%} of what it gave in the others",
    "cores slow": "launch {launch} is contaminated: its cores had {cores:.0%} of their speed",
    "unsealed": "it is not finished: kvbench score --resume --out DIR",
    "files": "{name} was changed since the score was made",
    "version": "it is score {found}, and this kvbench makes {wanted}",
    "own": "own kernels or an own build",
    "width": "the interval reaches up to {found:.1%} from the middle, and {wanted:.0%} are allowed",
}
_ALIKE = "attention of Llama-3-8B at 4,096 tokens; compare with valid or noisy scores {tag}; overlapping intervals tie"
_COMPARE = {
    "valid": _ALIKE,
    "noisy": _ALIKE,
    "open": "compare it with open scores {tag} alone",
    "invalid": "compare it with nothing",
}


def breach(found: Breach) -> str:
    facts = dict(found.facts)
    name = found.rule
    if name == "contaminated":
        name = next(kind for kind in ("met", "reads", "cores") if kind in facts).replace("cores", "cores slow")
    if name == "witnesses" and not facts["found"]:
        name = "no witnesses"
    if name == "caches":
        name = name if facts["wanted"] else "caches unknown"
        facts = {key: size(float(value)) for key, value in facts.items()}
    text = _BREACHES[name].format(**facts)
    return f"{found.bits} bits: {text}" if found.bits else text


def why(found: Score, most: int = 1) -> str:
    """The first of its breaches, and how many more there are; empty where there is none."""
    first = "; ".join(map(breach, found.breaches[:most]))
    left = len(found.breaches) - most
    return first + (f"; and {left} more" if left > 0 else "")


def verdict(found: Score) -> str:
    """In one line."""
    return f"score {found.tag}: {found.state.upper()}" + (f", {why(found)}" if found.breaches else "")


def lines(found: Score) -> list[str]:
    """Six at most."""
    reads = f", plain reads of memory {number(found.read_gbps)} GB/s" if found.read_gbps else ""
    said = [f"score {found.tag} {found.state.upper()}: {machine(found)}{reads}", *_figures(found)]
    said += [f"  beside it (sequences x tokens; 16 / 8 / 4 bits): {_longer(found)}"] if found.longer else []
    broken = f"{found.state}: {why(found)}; " if found.breaches else ""
    return [*said, f"  {broken}{_COMPARE[found.state].format(tag=found.tag)}"]


def machine(found: Score) -> str:
    return ", ".join([found.machine, counted(found.threads, "core"), *([kind(found)] if kind(found) else [])])


def kind(found: Score) -> str:
    """The class that it belongs to; empty where nobody knows."""
    return {"bare metal": found.kind, "unknown": ""}.get(found.kind, f"virtual machine ({found.kind})")


def _figures(found: Score) -> Iterator[str]:
    for each in found.figures:
        share = f", {each.share:.0%} of the reads" if each.share else ""
        base = f"; untuned {number(each.base.tokens)}" if each.base else ""
        error = f"; error {each.error:.0e}" if each.bits < found.figures[0].bits else ""
        yield (
            f"  {each.bits:>2} bits  {number(each.tuned.tokens):>6} tokens/s ({_interval(each.tuned)})  "
            f"{number(each.gbps)} GB/s{share}; {kernel(each)}{base}{error}"
        )


def kernel(found: Figure) -> str:
    _, variant, layout, dtype, _ = found.kernel.split(".")
    return " ".join([dtype, *([variant] if variant != "flash" else []), layout])


def _interval(found: Rate) -> str:
    return f"{number(found.low)} to {number(found.high)}"


def _longer(found: Score) -> str:
    shapes = dict.fromkeys((each.batch, each.context) for each in found.longer)
    each = {shape: [x for x in found.longer if (x.batch, x.context) == shape] for shape in shapes}
    return "; ".join(
        f"{batch} x {context:,} {' / '.join(number(one.rate.tokens) for one in own)}"
        for (batch, context), own in each.items()
    ) + (" tokens/s" if each else "")

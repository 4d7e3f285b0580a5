"""The words for a verdict, the same in every form that people read."""

from collections.abc import Sequence

from kvbench.model import Comparison, Judged
from kvbench.model.verdict import EQUIVALENT, INCONCLUSIVE, WORDS
from kvbench.units import counted, duration

UNKNOWN = "?"


def title(comparison: Comparison) -> str:
    return f"kvbench {comparison.command}: {comparison.verdict}"


def sides(comparison: Comparison) -> str:
    return (
        f"head {comparison.head} against base {comparison.base}, on {comparison.machine},"
        f" {comparison.created}"
    )


def counts(judged: Sequence[Judged], noun: str) -> str:
    """Count verdicts, such as "600 points: 3 REGRESSION, 597 EQUIVALENT"."""
    words = [one.verdict for one in judged]
    each = ", ".join(f"{words.count(word)} {word}" for word in WORDS if word in words)
    return f"{counted(len(judged), noun)}{f': {each}' if each else ''}"


def change(judged: Judged) -> str:
    """The change, such as "+8.0 [+6.9, +9.1]": by how many % of base's time head takes longer. The
    caller states the unit.
    """
    if judged.effect is None:
        return UNKNOWN
    around = f" [{', '.join(map(percent, judged.ends))}]" if judged.ends else ""
    return percent(judged.effect) + around


def percent(share: float) -> str:
    rounded = round(100 * share, 1) + 0.0  # avoids -0.0
    return f"{rounded:+.1f}" if abs(share) < 100 else f"{rounded:+.2g}"


def rates(judged: Judged) -> str:
    """The rates, such as "38.4 → 36.1": GB/s of base and head. The caller states the unit. "" if
    neither is known.
    """
    both = (judged.base_gbps, judged.head_gbps)
    return (
        ""
        if both == (None, None)
        else " → ".join(UNKNOWN if rate is None else f"{rate:.4g}" for rate in both)
    )


def probability(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2g}"


def detectable(judged: Judged) -> str:
    """The smallest slowdown that would have been seen, if nothing was found."""
    if judged.detectable is None or judged.verdict not in (INCONCLUSIVE, EQUIVALENT):
        return ""
    return (
        f"a slowdown of {percent(judged.detectable).lstrip('+')} % of base's time would have been"
        " seen"
    )


def sentence(judged: Judged) -> str:
    """All but the name and the verdict, as one text."""
    (base, head), speed = judged.launches, rates(judged)
    times = [each for each in (judged.base_seconds, judged.head_seconds) if each is not None]
    parts = (
        f"change of time [95 % interval], in % of base's time: {change(judged)}",
        f"{speed} GB/s" if speed else "",
        f"{' → '.join(map(duration, times))} per pass" if len(times) == 2 else "",
        f"q {probability(judged.q)}" if judged.q is not None else "",
        f"{counted(base, 'launch')} of base, {head} of head",
        detectable(judged),
        judged.note,
    )
    return "; ".join(filter(None, parts))

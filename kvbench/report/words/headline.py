"""The first screen: the machine, five answers, and how far to trust them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvbench.analysis.limits.bounds import CONFIRMED, CORE, REFUTED, UNSTABLE
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import FAIR, FEWEST, GOOD, Bar, Enclosed, Headline, Helped, Quality
from kvbench.analysis.measured.columns import machine_name
from kvbench.report.words.limits import BINDS
from kvbench.report.words.phrases import listed, number
from kvbench.store import Manifest
from kvbench.units import counted

_FEW = 3  # kernels or dtypes that a line names
_LIMITED = BINDS | {"memory": "memory bandwidth", "unknown": "not known"}


@dataclass(frozen=True, slots=True)
class Tile:
    title: str
    value: str
    detail: str


def title(found: Findings) -> str:
    return f"Decode attention on {machine_name(found.machine)}"


def subtitle(found: Findings, manifest: Manifest) -> str:
    launches = counted(int(found.samples["launch"].nunique()), "launch")
    made = f"{counted(len(found.points), 'point')} in {launches}"
    return f"Suite {manifest.suite}: {made}, {manifest.created[:10]}, run {found.run}."


def machine(found: Headline) -> str:
    name = f"{found.machine} (virtual machine)" if found.virtual else found.machine
    return ", ".join(filter(None, [name, counted(found.threads, "thread"), found.isa.upper()]))


def workload(found: Headline) -> str:
    return f"{found.model}, {found.context:,} tokens, KV cache only" if found.model else "no known model"


def tiles(found: Headline) -> list[Tile]:
    return [_fastest(found), _memory(found), _l3(found), _helps(found), _limits(found.bars)]


def _fastest(found: Headline) -> Tile:
    title = "Fastest decode"
    if not found.bars:
        return Tile(title, "not measured", "no decode of a known model from memory")
    best, *others = found.bars
    level = [bar.dtype for bar in others if bar.level]
    tie = f"; {listed(level, _FEW)} {'is' if len(level) == 1 else 'are'} level within noise" if level else ""
    what = f"{best.dtype}, layout {best.layout}, {number(best.gbps)} GB/s{tie}"
    return Tile(title, f"{number(best.tokens_per_second.value)} tokens/s", what)


def _memory(found: Headline) -> Tile:
    title = "Memory read"
    if not found.memory:
        return Tile(title, "not measured", f"no read of memory by {counted(found.threads, 'thread')}")
    return Tile(
        title, f"{number(found.memory.value)} GB/s", f"plain read, {_by(found)} (interval {_range(found.memory)})"
    )


def _l3(found: Headline) -> Tile:
    title = "L3 read"
    if not found.l3:
        return Tile(title, "not measured", found.no_l3 or f"no read of L3 by {counted(found.threads, 'thread')}")
    beside = f"{_times(found.l3_reads)} memory, side by side" if found.l3_reads else f"plain read, {_by(found)}"
    return Tile(title, f"{number(found.l3.value)} GB/s", beside)


def _helps(found: Headline) -> Tile:
    title = "Does L3 help?"
    if not found.helped:
        then = "" if "not testable" in found.no_l3 else ": kvbench sweep l3fit times them"
        return Tile(title, "not tested", f"{found.no_l3}{then}")
    words = {each.verdict for each in found.helped}
    value = "yes" if words == {CONFIRMED} else "partly" if CONFIRMED in words else "no"
    if CONFIRMED not in words and UNSTABLE in words:
        value = "not decided"
    shown = found.helped if len(found.helped) <= _FEW else (*found.helped[:2], found.helped[-1])
    return Tile(title, value, "; ".join(map(_help, shown)))


def _help(each: Helped) -> str:
    heads = f"with {each.group} query heads a KV head" if each.group > 1 else "without grouped heads"
    why = {CORE: ": the core is the limit", UNSTABLE: ": not decided", REFUTED: ": no gain"}.get(each.verdict, "")
    return f"{each.dtype} {heads} {_times(each.times)}{why}"


def _limits(bars: Sequence[Bar]) -> Tile:
    title = "What limits"
    groups: dict[str, list[str]] = {}
    for bar in bars:
        groups.setdefault(bar.bound, []).append(bar.dtype)
    if not groups:
        return Tile(title, "not measured", "no decode from memory")
    if len(groups) == 1:
        return Tile(title, *(_LIMITED.get(bound, bound) for bound in groups), "of all dtypes measured")
    detail = "; ".join(f"{_LIMITED.get(bound, bound)}: {listed(sorted(own))}" for bound, own in groups.items())
    return Tile(title, "by dtype", detail)


def badge(quality: Quality) -> tuple[str, str]:
    """The grade, and the reason with what to do."""
    return f"{quality.grade.upper()} RUN", ". ".join(_sentence(text) for text in _reasons(quality)) + "."


def _reasons(quality: Quality) -> Iterator[str]:
    if quality.spread is None:
        yield f"{counted(quality.launches, 'launch')}: noise is unknown"
        yield f"run at least {FEWEST} launches before you compare"
        return
    if quality.launches < FEWEST:
        yield f"{counted(quality.launches, 'launch')} are too few: {FEWEST} or more are needed"
    if quality.failed:
        yield f"{quality.failed} of {counted(quality.points, 'point')} failed in a launch"
    if quality.suspect:
        yield f"{counted(quality.suspect, 'point')} above a ceiling without an explanation"
    yield f"between launches a typical point varied by {quality.spread:.0%} of its time"
    if quality.unstable:
        yield f"{quality.unstable} of {counted(quality.points, 'point')} {'is' if quality.unstable == 1 else 'are'} unstable"
    if quality.grade == GOOD:
        yield f"differences above {quality.spread:.0%} can be trusted"
    elif quality.grade == FAIR:
        yield "smaller differences are not decided, unless they were timed side by side"
    else:
        yield "do not rank close results; rerun on an idle host or add launches"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _by(found: Headline) -> str:
    return counted(found.threads, "thread")


def _range(each: Enclosed) -> str:
    return f"{number(each.low)} to {number(each.high)}"


def _times(each: Enclosed) -> str:
    return f"{each.value:.1f}x ({each.low:.1f} to {each.high:.1f})"


def hero_title(found: Headline) -> str:
    whose = f" {found.model}, {found.context:,} tokens, {_by(found)}" if found.bars else ""
    return f"Which dtype gives most tokens per second?{whose}"


def hero_about(found: Headline) -> str:
    return (
        "Fastest layout and variant of each dtype, one sequence, KV cache only: weights and all other work are left out. "
        "Error: the largest difference of an output to float64 arithmetic on the same codes."
    )

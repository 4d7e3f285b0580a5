"""Rates of several runs side by side, with their ratios to the first run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvbench.analysis.answers.answer import Answer
from kvbench.analysis.means.findings import Findings
from kvbench.model import PLAIN

_NEAR = ("L1", "L2")


@dataclass(frozen=True, slots=True)
class Rate:
    """One rate of every run; None if a run lacks it. `ratios`: to the first run; None if a ratio
    would mean nothing.
    """

    what: str
    unit: str
    values: tuple[float | None, ...]
    ratios: tuple[float | None, ...]
    beside: tuple[str, ...] = ()  # the kernel of each value, which may differ between runs


def rates(studies: Sequence[Findings]) -> Iterator[Rate]:
    """The rates of all runs: tokens/s by dtype, reads by level, the multiply-add peak."""
    yield from _decodes(studies)
    answers = [found.answers for found in studies]
    for level in _NEAR:
        yield from _known(f"{level} read", "GB/s", [_plain(each, level) for each in studies])
    yield from _known("L3 read", "GB/s", [_value(each.reads.l3_rate) for each in answers])
    yield from _known("memory read", "GB/s", [_value(each.reads.memory) for each in answers])
    beside = tuple(_value(each.reads.l3) for each in answers)
    yield Rate("L3 over memory, same rounds", "times", beside, (None,) * len(beside))
    yield from _known("multiply-add peak", "GFLOP/s", list(map(_peak, studies)))


def _decodes(studies: Sequence[Findings]) -> Iterator[Rate]:
    """Tokens/s by dtype. Ratios only if all runs have the same workload."""
    pages = [found.answers.workload for found in studies]
    alike = len({(page.model, page.context, page.batch) for page in pages}) == 1
    rows = [{row.dtype: row for row in found.answers.decodes.rows} for found in studies]
    for dtype in dict.fromkeys(dtype for own in rows for dtype in own):
        own = [each.get(dtype) for each in rows]
        values = tuple(_value(row.speed) if row else None for row in own)
        kernels = tuple(f"{row.variant}, {row.layout}" if row else "" for row in own)
        yield Rate(dtype, "tokens/s", values, _ratios(values, alike), kernels)


def _known(what: str, unit: str, values: list[float | None]) -> Iterator[Rate]:
    if any(value is not None for value in values):
        yield Rate(what, unit, tuple(values), _ratios(tuple(values)))


def _ratios(values: tuple[float | None, ...], alike: bool = True) -> tuple[float | None, ...]:
    first, *others = values
    known = alike and first
    return (None, *(value / known if value and known else None for value in others))


def _value(answer: Answer) -> float | None:
    return answer.figure.value if answer.figure else None


def _plain(found: Findings, level: str) -> float | None:
    """Plain reads of the level by the workload's threads, at its largest footprint."""
    threads = found.answers.workload.threads
    own = [
        (each.probe.bytes, each.median)
        for each in found.ceilings
        if (each.probe.op, each.form, each.level) == ("read", PLAIN, level)
        and each.probe.threads == threads
    ]
    return max(own)[1] if own else None


def _peak(found: Findings) -> float | None:
    """The highest multiply-add rate of any tier, by the workload's threads."""
    threads = found.answers.workload.threads
    own = [c.median for c in found.ceilings if c.probe.op == "flops" and c.probe.threads == threads]
    return max(own, default=None)

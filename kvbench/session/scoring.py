"""The runs of a score.

candidates  time each kernel of each width in one launch, and those near the fastest in another;
            only the winners' names are kept
the score   time the winners, base and tuned, in launches of their own: the selection does not
            influence their numbers
the longer  the same on more tokens, in a folder of the run
the loaded  the latency of memory beside the kernel of 16 bits, in another folder
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvbench.errors import BadArgument, Refused, Unwritable, WrongAnswer
from kvbench.grouping import grouped
from kvbench.model import AUTO, Point, Record
from kvbench.runner import run
from kvbench.score import LOADED_LAUNCHES, LONGER, LONGER_LAUNCHES, SUITE, WIDTHS, width
from kvbench.session.loaded import of_kernel
from kvbench.session.options import Options
from kvbench.session.planning import Follow, planned
from kvbench.session.session import Session
from kvbench.store import names
from kvbench.store.evidence import Evidence
from kvbench.store.run import is_vacant

_FASTER = 1.02  # how many times as fast a candidate must be as those named before it
# Candidates within _HEAT times the fastest are timed again; so about _NEARLY launches are made.
_HEAT, _NEARLY = 1.3, 1.4
UNCHASED = BadArgument, Refused  # raised if no thread can chase beside a kernel
# how candidates are timed
_BRIEF: dict[str, Any] = {"axes": ("layers=0",), "launches": 1, "samples": 3, "sample_time": 0.015}


def forecast(asked: dict[str, Any]) -> tuple[float, float]:
    """Seconds of the whole score, and seconds of it outside timed samples, such as filling
    memory.
    """
    again = 2.0  # candidates are verified and tuned, and some are timed again
    parts = [(again, planned(options := _candidates(asked), options.kernels)[1])]
    for options in (_score(asked), _longer(asked)):
        sweep, seen, _ = planned(options, options.kernels)
        parts.append((len(WIDTHS) / len({point.kernel for point in sweep.points}), seen))
    with suppress(*UNCHASED):
        parts.append((1.0, planned(options := _loaded(asked), options.kernels)[1]))
    seconds, timed = (
        sum(share * getattr(seen, name) for share, seen in parts) for name in ("seconds", "timed")
    )
    return seconds, seconds - timed


def pick(asked: dict[str, Any], follow: Follow) -> tuple[str, ...]:
    """Find the fastest kernels, one of each width, and return their names. Raises WrongAnswer if no
    kernel of a width gives right answers.
    """
    options = _candidates(asked)
    sweep, _, machine = planned(options, options.kernels)
    evidence = Evidence.asked(options.tuning, machine.fingerprint, options.kernels.path)
    plan = replace(sweep.plan, points=sweep.points, tuning=evidence.read()[0] if evidence else None)
    records: list[Record] = []
    heats: list[Callable[[], Sequence[Point]]] = [
        lambda: sweep.points,
        lambda: _near(sweep.points, records),
    ]
    more = run(
        plan,
        machine,
        sweep.needs,
        more=lambda number: heats[number]() if number < len(heats) else (),
    )
    for record in follow(more, round(_NEARLY * len(plan.points))):
        records.append(record)
    if evidence and (tunings := [tuned for record in records for tuned in record.tuned]):
        evidence.add(tunings)
    return tuple(_fastest(sweep.points, records, bits) for bits in WIDTHS)


def _near(points: Sequence[Point], records: Iterable[Record]) -> list[Point]:
    """The candidates that another launch may find to be the fastest."""
    seconds = _seconds(records)
    best = {
        bits: min((own for p, own in seconds.items() if width(p) == bits), default=0.0)
        for bits in WIDTHS
    }
    return [
        point
        for point in points
        if point in seconds and seconds[point] <= _HEAT * best[width(point)]
    ]


def _seconds(records: Iterable[Record]) -> dict[Any, float]:
    """Seconds of each point's fastest pass. Other work can make a candidate slower, never
    faster.
    """
    found = grouped(
        (record.point, sample.each)
        for record in records
        if not record.error
        for sample in record.samples
        if sample.program == "point"
    )
    return {point: min(own) for point, own in found.items()}


def _fastest(points: Sequence[Point], records: Iterable[Record], bits: int) -> str:
    seconds, errors = (
        _seconds(records),
        {record.point: record.error for record in records if record.error},
    )
    own = [point for point in points if width(point) == bits]
    if not (right := [point for point in own if point in seconds and point not in errors]):
        why = next((errors[point] for point in own if point in errors), "there is none")
        raise WrongAnswer(f"no kernel of {bits} bits answers right: {why}", "run kvbench verify")
    best = right[0]
    for point in right[1:]:
        best = point if seconds[best] > _FASTER * seconds[point] else best
    return best.kernel


def refuse_no_room(out: Path | None) -> None:
    """Refuse an occupied or unwritable place before anything is measured."""
    if out and not is_vacant(out):
        raise BadArgument(
            f"{out} is not empty", "name another --out, or finish that run with --resume"
        )
    place = (out or Path("runs")).absolute()
    there = next(folder for folder in (place, *place.parents) if os.path.lexists(folder))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise Unwritable(f"cannot write {there}", "name another --out")


def begin(asked: dict[str, Any], kernels: Sequence[str], out: Path | None, command: str) -> Session:
    return Session.begin(_score(asked, kernels), out, command)


def begin_longer(first: Session) -> Session:
    """Start or resume the longer run with the kernels that `first` measured."""
    folder = first.directory.path / names.LONGER
    if (folder / names.MANIFEST).exists():
        return Session.resume(folder)
    points, options = first.directory.manifest.plan.points, first.options
    kernels = list(dict.fromkeys(point.kernel for point in points if isinstance(point, Point)))
    asked = {name: getattr(options, name) for name in ("pages", "library", "plugin", "tuning")}
    return Session.begin(_longer({**asked, "isa": options.isa}, kernels), folder, "kvbench score")


def begin_loaded(first: Session) -> Session:
    """Start or resume the loaded run with the kernel of 16 bits that `first` measured. Raises an
    error of UNCHASED if no core is free for a chase, or memory is short.
    """
    folder = first.directory.path / names.LOADED
    if (folder / names.MANIFEST).exists():
        return Session.resume(folder)
    points = first.directory.manifest.plan.points
    widest = (p.kernel for p in points if isinstance(p, Point) and width(p) == WIDTHS[0])
    asked = {name: getattr(first.options, name) for name in ("pages", "library", "tuning", "isa")}
    return Session.begin(_loaded(asked, next(widest)), folder, "kvbench score")


# ---- what each of them asks for ------------------------------------------------------------------


def _candidates(asked: dict[str, Any]) -> Options:
    return _with_plugin(Options(SUITE, **_BRIEF, **asked))


def _score(asked: dict[str, Any], kernels: Sequence[str] = ("*",)) -> Options:
    options = Options(SUITE, only=tuple(f"{kernel}/*" for kernel in kernels), **asked)
    return _with_plugin(
        replace(options, axes=(f"schedule={AUTO},{options.kernels.schedule(AUTO)}",))
    )


def _longer(asked: dict[str, Any], kernels: Sequence[str] = ("*",)) -> Options:
    batches, contexts = (",".join(map(str, sorted(values))) for values in zip(*LONGER, strict=True))
    only = tuple(
        f"{kernel}/b{batch}.*/ctx{tokens}.*" for kernel in kernels for batch, tokens in LONGER
    )
    axes = (f"batch={batches}", f"context={contexts}", "layers=0")
    return _with_plugin(Options(SUITE, axes=axes, only=only, launches=LONGER_LAUNCHES, **asked))


def _loaded(asked: dict[str, Any], kernel: str = "decode.flash.head.f16.*") -> Options:
    """Options of the loaded run. Plug-ins are left out: a score measures none of them beside a
    chase.
    """
    own = {name: value for name, value in asked.items() if name != "plugin"}
    return of_kernel(kernel, LOADED_LAUNCHES, own)


def _with_plugin(options: Options) -> Options:
    """Add a plug-in's kernels to the suite's."""
    if not (own := options.kernels.foreign_variants):
        return options
    known = dict.fromkeys(v for grid in options.asked_suite.grids for v in grid["variant"])
    return replace(options, axes=(*options.axes, f"variant={','.join([*known, *own])}"))

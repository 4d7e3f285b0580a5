"""Accepted steps: changes that were intended or cannot be helped. After such a step, a point is
compared with its new level. People decide this, so the file accepted.json lies beside the runs; it
can be read, corrected and put under version control.
"""

import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kvbench.analysis.differs.trend import Accepted, Past
from kvbench.errors import BadArgument, BadRun
from kvbench.store.files import read_json, short, write_json, writing
from kvbench.store.locks import locked
from kvbench.store.names import ACCEPTED
from kvbench.store.values import read
from kvbench.units import now

_FORMAT = 1
_NEAR = 1  # runs by which the accepted run may differ from the step's: noise blurs the place
_TOLD = 4  # steps that a hint lists
PATTERNS = (
    "patterns are as in a shell, such as 'decode.*.i8.*'; kvbench history show lists the points"
)


def accepted(root: Path) -> tuple[Accepted, ...]:
    path = root / ACCEPTED
    if not os.path.lexists(path):
        return ()
    try:
        facts = read(dict[str, object], read_json(path))
        if facts.get("format") != _FORMAT:
            raise ValueError(
                f"format is {str(facts.get('format'))[:20]}, but this kvbench reads format"
                f" {_FORMAT}"
            )
        return read(tuple[Accepted, ...], facts.get("accepted"))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or short(error)
        raise BadRun(
            f"{path} cannot be used: {why}", "correct it, or move it away and accept again"
        ) from None


def accept(history: Any, pattern: str, run: str, reason: str, who: str) -> tuple[Accepted, ...]:
    """Accept the open steps at this run of a History, or next to it, of all points that match the
    pattern.
    """
    root, (past, at) = history.root, _find(history, run)
    if not (trends := past.only(pattern).every):
        raise BadArgument(f"no point of these runs is named {pattern!r}", PATTERNS)
    points: dict[int, list[str]] = {}
    for trend in trends:
        place = sum(own < at for own in trend.series.runs)  # a point may lack the run
        for step in trend.open():
            if abs(trend.series.runs.index(step.run) - place) <= _NEAR:
                points.setdefault(step.run, []).append(trend.series.point)
    if not points:
        counts = sorted(Counter(step.run for trend in trends for step in trend.open()).items())
        told = ", ".join(f"{past.runs[place].run} ({count})" for place, count in counts[-_TOLD:])
        raise BadArgument(
            f"no point named {pattern!r} has an open step at run {run}",
            f"their open steps are at {told}" if told else "they have no open step",
        )
    when, steps = now(), sorted(points.items())
    found = tuple(
        Accepted(past.runs[place].run, tuple(own), reason, who, when) for place, own in steps
    )
    with writing(root / ACCEPTED, "then accept again"), locked(root):
        write_json(
            root / ACCEPTED,
            {"format": _FORMAT, "accepted": [asdict(e) for e in (*accepted(root), *found)]},
        )
    return found


def _find(history: Any, run: str) -> tuple[Past, int]:
    """Find a run by its name, or by its folder's name."""
    for past in history.pasts:
        for place, ran in enumerate(past.runs):
            if run.rstrip("/") in (
                ran.run,
                ran.path,
                Path(ran.path).name,
                str(history.root / ran.path),
            ):
                return past, place
    latest = ", ".join(past.runs[-1].run for past in history.pasts)
    hint = f"the latest is {latest}" if latest else "there are no runs: kvbench history add"
    raise BadArgument(f"--run: there is no run {run!r} below {history.root}", hint)

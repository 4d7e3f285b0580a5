"""Sentences on how far to trust a run's numbers."""

from collections.abc import Iterator, Sequence

import pandas as pd

from kvbench.analysis.limits.bounds import SUSPECT
from kvbench.analysis.limits.frames import noise as spreads
from kvbench.model import Check
from kvbench.report.words.phrases import listed
from kvbench.units import counted

_WARNINGS = 6  # that a sentence names


def above(points: pd.DataFrame) -> str:
    """Points that are faster than a roof of theirs, and one of them: of those that nothing explains, if there are any."""
    found = points[points["above"] != ""]
    if found.empty:
        return ""
    unexplained = found[found["above_reason"].str.startswith(SUSPECT)]
    row = (found if unexplained.empty else unexplained).iloc[0]
    said = f"{len(found)} of {counted(len(points), 'point')} are faster than what should limit them"
    example, reason = f"{row['short']} exceeds its {row['above']}", row["above_reason"].removeprefix(SUSPECT)
    if unexplained.empty:
        return f"{said}, all for a known reason. Example: {example}: {reason}."
    return f"{said}, {len(unexplained)} for no known reason: suspect. Example: {example}, perhaps because {reason}."


def noise(points: pd.DataFrame) -> str:
    return f"{'. '.join(_noise(points))}." if len(points) else ""


def _noise(points: pd.DataFrame) -> Iterator[str]:
    found, every = spreads(points), counted(len(points), "point")
    if found.gbps is None or found.gbps_most is None:
        yield "Noise is unknown: no point has more than one launch"
    else:
        yield f"Noise: a typical point varied by {found.gbps:.0%} of its time between launches"
        yield f"One point in ten varied by {found.gbps_most:.0%} of its time or more"
    if unstable := int(points["unstable"].fillna(False).sum()):
        yield f"{unstable} of {every} {'is' if unstable == 1 else 'are'} unstable"
    if found.disturbed:
        yield f"Other work disturbed {found.disturbed:.1%} of the samples"
    if uneven := int((points["uneven"].fillna(0) > 0).sum()):
        yield f"{counted(uneven, 'point')} cannot be compared launch by launch: their samples differ in length"
    if slow := int(points["slow"].fillna(0).sum()):
        yield _slow(points, slow)
    if failed := int((points["failed"] > 0).sum()):
        yield f"{failed} of {every} failed in a launch or more"


def _slow(points: pd.DataFrame, slow: int) -> str:
    """Visits while the cores were slow, so many of all, so many set aside."""
    aside = int(points["set_aside"].sum())
    visits = int(points.loc[points["core_speed"].notna(), "launches"].sum()) + aside
    speed = f"{points['slow_speed'].median():.0%} of their speed"
    said = f"The cores ran at {speed} in {slow} of {counted(visits, 'visit')}"
    if aside == slow:
        return f"{said}, which are left out"
    return f"{said}; {aside or 'none'} of these are left out, for too few others remain"


def warnings(checks: Sequence[Check]) -> str:
    """Of the preflight."""
    warned = [f"{check.name} ({check.value})" for check in checks if check.status == "warn"]
    return f"What may have disturbed the run: {listed(warned, _WARNINGS)}." if warned else ""

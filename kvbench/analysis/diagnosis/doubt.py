"""What a run's numbers should be trusted with."""

from collections.abc import Sequence

import pandas as pd

from kvbench.analysis.bounds import SUSPECT
from kvbench.analysis.diagnosis.phrases import listed
from kvbench.analysis.frames import noise
from kvbench.model import Check
from kvbench.units import counted

_WARNINGS = 6  # that a sentence names


def suspect(points: pd.DataFrame) -> str:
    """Points that are faster than a roof of theirs."""
    above = points[points["above"] != ""]
    if above.empty:
        return ""
    unexplained = above[above["above_reason"].str.startswith(SUSPECT)]
    count = f"{len(above)} of {counted(len(points), 'point')} exceed what should bound them"
    if unexplained.empty:
        row = above.iloc[0]
        example = f"{row['short']}, above its {row['above']}: {row['above_reason']}"
        return f"{count}, all with an explanation; such as {example}."
    row = unexplained.iloc[0]
    why = row["above_reason"].removeprefix(SUSPECT)
    said = f"{count}, {len(unexplained)} without an explanation: suspect"
    return f"{said}; such as {row['short']}, above its {row['above']}: perhaps {why}."


def measured(points: pd.DataFrame) -> str:
    """Noise between launches, disturbed samples, points that lack something."""
    if points.empty:
        return ""
    found, told = noise(points), []
    if found.gbps is None:
        told.append("Noise is unknown, for no point has more than one launch")
    else:
        told.append(
            f"Noise between launches: half of the points spread by {found.gbps:.1%} of their time or less, nine in ten "
            f"by {found.gbps_most:.1%} of it"
        )
    unstable = int(points["unstable"].fillna(False).sum())
    if unstable:
        told.append(f"{unstable} of {counted(len(points), 'point')} jump between launches")
    if found.disturbed:
        told.append(f"{found.disturbed:.1%} of the samples met other work")
    if uneven := int((points["uneven"].fillna(0) > 0).sum()):
        told.append(
            f"launches of {counted(uneven, 'point')} are left out of ratios, for their samples differ in length"
        )
    if slow := int(points["slow"].fillna(0).sum()):
        visits, aside = int(points.loc[points["core_speed"].notna(), "launches"].sum()), int(points["set_aside"].sum())
        told.append(_slow(points["slow_speed"].median(), slow, visits + aside, aside))
    if failed := int((points["failed"] > 0).sum()):
        told.append(f"launches failed at {failed} of {counted(len(points), 'point')}")
    return f"{'; '.join(told)}."


def _slow(speed: float, slow: int, visits: int, aside: int) -> str:
    what = f"cores at {speed:.0%} of their speed during {slow} of {visits} visits"
    if aside == slow:
        return f"{what}, which are set aside"
    return f"{what}, of which {aside or 'none'} are set aside, for too few others are left"


def surroundings(checks: Sequence[Check]) -> str:
    warned = [check for check in checks if check.status == "warn"]
    if not warned:
        return ""
    return f"Doubts about the machine: {listed((f'{check.name} ({check.value})' for check in warned), _WARNINGS)}."

"""What a run says of its machine, in sentences by topic; and what it lacks, which a report says
before all else.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Annotated

import pandas as pd

from kvbench.analysis.judge import COVERAGE
from kvbench.analysis.limits.bounds import SUSPECT
from kvbench.analysis.limits.frames import noise
from kvbench.analysis.means.findings import Findings
from kvbench.intervals import held
from kvbench.model import OURS, Check, Point, Probe
from kvbench.model.annotated import about
from kvbench.report.words import bandwidth, limits, paragraphs
from kvbench.report.words import said as words
from kvbench.report.words.phrases import listed
from kvbench.store import Manifest
from kvbench.texts import resume_command
from kvbench.units import counted

_WARNINGS = 6  # that a sentence names
_RESUMED = ("sweep", "peers", "score")  # commands that finish runs of their own


@dataclass(frozen=True, slots=True)
class Sentence:
    """topic: a word to find it by; two sentences may share one."""

    topic: Annotated[str, about("a word to find it by")]
    text: Annotated[str, about("it")]


def sentences(found: Findings) -> tuple[Sentence, ...]:
    """What it has nothing to say of is left out; but that memory or L3 was not tested is said."""
    points = found.points[found.points["engine"] == OURS]
    said = [
        ("peers", words("peers", "summary", found.beside) if len(found.peers) else ""),
        ("bandwidth", bandwidth.memory(points)),
        ("l3", bandwidth.l3(points, found.machine)),
        ("fit", limits.fit(found.fits)),
        ("bound", limits.bounds(points)),
        ("tokens", limits.tokens(found.tokens)),
        ("stores", limits.stores(points)),
        ("suspect", _above(points)),
        ("doubt", f"{'. '.join(_noise(points))}." if len(points) else ""),
        ("doubt", warnings(found.checks)),
    ]
    return tuple(Sentence(topic, text) for topic, text in said if text)


def _above(points: pd.DataFrame) -> str:
    """Points that are faster than a roof of theirs, and one of them: of those that nothing
    explains, if there are any.
    """
    found = points[points["above"] != ""]
    if found.empty:
        return ""
    unexplained = found[found["above_reason"].str.startswith(SUSPECT)]
    row = (found if unexplained.empty else unexplained).iloc[0]
    said = f"{len(found)} of {counted(len(points), 'point')} are faster than what should limit them"
    example, reason = (
        f"{row['short']} exceeds its {row['above']}",
        row["above_reason"].removeprefix(SUSPECT),
    )
    if unexplained.empty:
        return f"{said}, all for a known reason. Example: {example}: {reason}."
    return (
        f"{said}, {len(unexplained)} for no known reason: suspect. Example: {example}, perhaps"
        f" because {reason}."
    )


def _noise(points: pd.DataFrame) -> Iterator[str]:
    found, every = noise(points), counted(len(points), "point")
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
        yield (
            f"{counted(uneven, 'point')} cannot be compared launch by launch: their samples differ"
            " in length"
        )
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


def resume(manifest: Manifest, place: str) -> str:
    """The command that finishes a run: in `place`, or where it was begun."""
    try:
        words = shlex.split(manifest.command)
    except ValueError:  # anybody may have written it
        words = []
    command = next((word for word in words[1:2] if word in _RESUMED), "sweep")
    places = [after for word, after in pairwise([*words, ""]) if word == "--out"]
    places += [word.removeprefix("--out=") for word in words if word.startswith("--out=")]
    begun = next(iter(places), f"runs/{manifest.suite}-{manifest.run}")
    return resume_command(command, place or begun)


def gaps(found: Findings, manifest: Manifest, place: str = "") -> list[str]:
    """A visit that failed was made. `place`: of the run, where it is known."""
    points, plan = found.points, manifest.plan
    planned = sum(isinstance(point, Point) for point in plan.points)
    made = points[["launches", "set_aside", "failed"]].fillna(0).sum(axis=1)
    visits = {
        "planned": planned,
        "every": planned * plan.launches,
        # some have more, where launches were added
        "made": int(made.clip(upper=plan.launches).sum()),
        "lost": points.loc[points["gbps"].isna(), "error"].tolist(),
        "some": int(((points["failed"] > 0) & points["gbps"].notna()).sum()),
        "launches": int(found.samples["launch"].nunique()),
        "enough": next(number for number in count(1) if held(number, COVERAGE) >= COVERAGE),
        "coverage": COVERAGE,
        "resume": resume(manifest, place),
    }
    lost = {point for point in plan.points if isinstance(point, Probe)} - {
        c.probe for c in found.ceilings
    }
    far = any(c.level == "DRAM" and c.probe.op == "read" for c in found.ceilings)
    ceilings = {"lost": len(lost), "far": far}
    return paragraphs("gaps", "gaps", found, manifest, visits, ceilings)

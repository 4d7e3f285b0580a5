"""What a run lacks. A report says it first."""

import shlex
from itertools import pairwise

from kvbench.analysis.judge import COVERAGE
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.visits import lacking
from kvbench.report.words import paragraphs
from kvbench.store import Manifest
from kvbench.texts import resume_command

_RESUMED = ("sweep", "peers", "score")  # commands that finish runs of their own


def resume(manifest: Manifest, place: str) -> str:
    """The command that finishes a run in `place`, or, if that is empty, where it was begun."""
    try:
        words = shlex.split(manifest.command)
    except ValueError:  # a foreign manifest may hold anything
        words = []
    command = next((word for word in words[1:2] if word in _RESUMED), "sweep")
    places = [after for word, after in pairwise([*words, ""]) if word == "--out"]
    places += [word.removeprefix("--out=") for word in words if word.startswith("--out=")]
    begun = next(iter(places), f"runs/{manifest.suite}-{manifest.run}")
    return resume_command(command, place or begun)


def gaps(found: Findings, manifest: Manifest, place: str = "") -> list[str]:
    """Sentences on what the run lacks. `place`: the run directory, if known."""
    plan = manifest.plan
    lacks = lacking(plan, found.points, found.samples, found.ceilings)
    begun = resume(manifest, place)
    return paragraphs("gaps", "gaps", lacks, plan, manifest.skips, COVERAGE, begun)

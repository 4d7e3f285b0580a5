"""What a run lacks, in sentences: a report says it before anything else."""

from itertools import count

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.launches import COVERAGE, held
from kvbench.model import Point, Probe
from kvbench.report.words import paragraphs
from kvbench.store import Manifest


def gaps(found: Findings, manifest: Manifest) -> list[str]:
    """A visit that failed was made."""
    points, plan = found.points, manifest.plan
    planned = sum(isinstance(point, Point) for point in plan.points)
    made = points[["launches", "set_aside", "failed"]].fillna(0).sum(axis=1)
    visits = {
        "planned": planned,
        "every": planned * plan.launches,
        "made": int(made.clip(upper=plan.launches).sum()),  # some have more, where launches were added
        "lost": points.loc[points["gbps"].isna(), "error"].tolist(),
        "some": int(((points["failed"] > 0) & points["gbps"].notna()).sum()),
        "launches": int(found.samples["launch"].nunique()),
        "enough": next(number for number in count(1) if held(number, COVERAGE) >= COVERAGE),
        "coverage": COVERAGE,
    }
    lost = {point for point in plan.points if isinstance(point, Probe)} - {c.probe for c in found.ceilings}
    far = any(c.level == "DRAM" and c.probe.op == "read" for c in found.ceilings)
    return paragraphs("gaps", "gaps", found, manifest, visits, {"lost": len(lost), "far": far})

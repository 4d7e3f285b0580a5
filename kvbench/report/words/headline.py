"""The first screen: the machine, five answers, and how far to trust them."""

from collections import namedtuple

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.headline import FEWEST, Headline, Quality
from kvbench.analysis.measured.columns import machine_name
from kvbench.report.words import paragraphs, said
from kvbench.store import Manifest
from kvbench.units import counted

Tile = namedtuple("Tile", ("title", "value", "detail"))


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
    return (
        f"{found.model}, {found.context:,} tokens, KV cache only"
        if found.model
        else "no known model"
    )


def tiles(found: Headline) -> list[Tile]:
    return [Tile(*line.split(" | ", 2)) for line in paragraphs("headline", "tiles", found)]


def badge(quality: Quality) -> tuple[str, str]:
    """The grade, and the reason with what to do."""
    return f"{quality.grade.upper()} RUN", said("headline", "reasons", quality, FEWEST)

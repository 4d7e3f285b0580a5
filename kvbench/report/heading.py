"""What a report is of."""

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.columns import machine_name
from kvbench.model import Machine
from kvbench.store import Manifest
from kvbench.units import counted


def title(machine: Machine) -> str:
    return f"Decode attention on {machine_name(machine)}"


def subtitle(found: Findings, manifest: Manifest) -> str:
    launches = counted(int(found.samples["launch"].nunique()), "launch")
    made = f"{counted(len(found.points), 'point')} in {launches}"
    return f"Suite {manifest.suite}: {made}, {manifest.created[:10]}, run {found.run}."

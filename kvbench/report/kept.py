"""What lies in the folder of a machine, as pages show it: its runs, each judged once, and its
scores.
"""

from dataclasses import dataclass

from kvbench.analysis.means.engines import Engines
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.means.standings import Entry
from kvbench.score import Score
from kvbench.store import Manifest

QUICK = "quick"  # the suite whose first screen says what a machine is


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run directory. `name`: of its folder. `engines`: None if it measured no other engine.
    `report`: whether its page lies in it.
    """

    name: str
    found: Findings
    manifest: Manifest
    engines: Engines | None
    report: bool

    @property
    def quick(self) -> bool:
        return self.manifest.suite == QUICK


@dataclass(frozen=True, slots=True)
class KeptScore:
    """A score. `name`: of its file or folder. `version`: of kvbench, that made it."""

    name: str
    score: Score
    version: str


@dataclass(frozen=True, slots=True)
class KeptMachine:
    """A folder with at least one run or score. `runs`: those of `quick` first, then those with
    other engines. `entry`: its line in the list of all machines, None if it has neither a score nor
    a run of `quick` that counts. `tables`: CSV files that pages name.
    """

    name: str
    cpu: str
    cores: int
    virtual: bool | None  # None if the machine does not say
    runs: tuple[KeptRun, ...]
    scores: tuple[KeptScore, ...]
    entry: Entry | None
    tables: tuple[str, ...]
    bits: dict[str, int]  # of an element, by the number formats of scores

    def run(self, name: str) -> KeptRun | None:
        return next((each for each in self.runs if each.name == name), None)

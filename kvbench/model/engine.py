"""Whose kernels a run has measured beside ours: other engines and plug-ins, each by the file that
it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Engine:
    """`sha256` of the file at `path`; empty, as the version, where it is not known. `python`: the
    interpreter that it ran in, "" of kvbench's own.
    """

    name: str
    version: str
    path: str
    sha256: str
    python: str = ""

    @property
    def told(self) -> str:
        """Its version, and what tells two files of one version apart."""
        digest = f"sha256 {self.sha256[:8]}" if self.sha256 else "no library found"
        return f"{self.version} ({digest})" if self.version else digest


def differing(base: Iterable[Engine], head: Iterable[Engine]) -> tuple[tuple[Engine, Engine], ...]:
    """Engines that both have, by two files. Runs of before tell of none."""
    others = {engine.name: engine for engine in head}
    pairs = ((engine, others[engine.name]) for engine in base if engine.name in others)
    return tuple(
        (one, other)
        for one, other in pairs
        if (one.sha256, one.version) != (other.sha256, other.version)
    )

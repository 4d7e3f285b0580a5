"""The engines and plug-ins that a run measured beside our kernels, each identified by its file."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine or a plug-in that was measured.

    sha256: of the file at `path`. sha256 and version are empty if unknown. python: the interpreter
    that ran it; empty for kvbench's own.
    """

    name: str
    version: str
    path: str
    sha256: str
    python: str = ""

    @property
    def told(self) -> str:
        """The version, with a digest that tells two files of one version apart."""
        digest = f"sha256 {self.sha256[:8]}" if self.sha256 else "no library found"
        return f"{self.version} ({digest})" if self.version else digest


def differing(base: Iterable[Engine], head: Iterable[Engine]) -> tuple[tuple[Engine, Engine], ...]:
    """The engines that both sides have, but from different files. Older runs record no engines."""
    others = {engine.name: engine for engine in head}
    pairs = ((engine, others[engine.name]) for engine in base if engine.name in others)
    return tuple(
        (one, other)
        for one, other in pairs
        if (one.sha256, one.version) != (other.sha256, other.version)
    )

"""Which peers there are, and which of them are here."""

from dataclasses import dataclass
from functools import cache
from importlib import metadata

from kvbench.peers.interface import Peer

GROUP = "kvbench.peers"


@dataclass(frozen=True, slots=True)
class Known:
    """`lacking`: why it cannot be measured, with what would help; empty where it can."""

    name: str
    kind: type[Peer] = Peer
    version: str = ""
    lacking: str = ""

    def takes(self, dtype: str, layout: str) -> bool:
        return dtype in self.kind.formats and layout in self.kind.layouts.split()


@cache
def known(name: str, path: str = "") -> Known:
    """Nothing of its engine is imported."""
    try:
        kind = entries()[name].load()
        version = metadata.version(kind.package) if kind.package and not path else ""
        return Known(name, kind, version, kind.lacks(path))
    except metadata.PackageNotFoundError:
        return Known(name, kind, lacking=f"not installed: {kind.install}")
    except Exception as error:  # noqa: BLE001  # somebody's module may do anything
        return Known(name, lacking=f"{type(error).__name__}: {error}")


@cache
def entries() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name)}

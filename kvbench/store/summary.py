"""A small file with what a history needs of a run: a journal has megabytes.

The summary is made from the manifest and the journal, and is valid while they match it: `journal`
is the size of the journal, `manifest` a digest of the manifest. Copies and checkouts keep both.
Anybody may have written the file. If it does not fit the types or limits, it is ignored.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from kvbench import named
from kvbench.model import Point
from kvbench.model.annotated import Positive, Size
from kvbench.store.files import replacing, writing
from kvbench.store.manifest import COMMIT, Manifest
from kvbench.store.names import JOURNAL, MANIFEST, SUMMARY


@dataclass(frozen=True, slots=True)
class Result:
    """A point in a run: medians of its launches. `efficiency`: its GB/s over its witness's. `low`
    and `high`: the efficiencies of two launches that enclose it. `seconds`: of a pass.
    """

    point: Point
    launches: Size
    efficiency: Positive
    low: Positive
    high: Positive
    seconds: Positive
    gbps: Positive
    witness: str
    ran: str = ""  # the schedule that ran


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run. `machine`: a fingerprint. `name`: the machine's name for people.
    `build`, `environment`: digests.
    """

    journal: int
    manifest: str
    run: str
    created: str  # ISO, with its zone
    suite: str
    machine: str
    name: str
    build: str
    environment: str
    results: tuple[Result, ...]
    format: Literal[2] = 2
    commit: str = ""
    branch: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        if datetime.fromisoformat(self.created).tzinfo is None:
            raise ValueError("created has no zone")
        if len({result.point.name for result in self.results}) < len(self.results):
            raise ValueError("a point occurs twice")

    @classmethod
    def of(cls, manifest: Manifest, stamp: tuple[int, str], results: Iterable[Result]) -> Self:
        """Make a summary. `stamp`: of the files when they were read."""
        own = manifest.identity
        digests: dict[str, Any] = {
            name: own.get(name, "") for name in ("machine", "build", "environment")
        }
        name = manifest.versions.get("cpu_model_name") or "a machine without a name"
        digests |= {name: manifest.versions.get(name, "") for name in COMMIT}
        return cls(
            journal=stamp[0],
            manifest=stamp[1],
            run=manifest.run,
            created=manifest.created,
            suite=manifest.suite,
            name=name,
            results=tuple(results),
            **digests,
        )

    @property
    def began(self) -> float:
        """Seconds since 1970."""
        return datetime.fromisoformat(self.created).timestamp()


_decode = msgspec.json.Decoder(Summary).decode


def stamp(run: Path) -> tuple[int, str]:
    """Size of the journal and digest of the manifest. Raises OSError if either is not an ordinary
    file.
    """
    found = (run / JOURNAL).lstat()
    named.refuse_kind(run / JOURNAL, found)
    return (
        found.st_size,
        sha256(named.text(run / MANIFEST, named.KEPT, follow=False).encode()).hexdigest(),
    )


def read_summary(run: Path) -> Summary | None:
    """Read the summary; None if it is missing or does not match the run."""
    try:
        found = _decode(named.text(run / SUMMARY, named.LISTED, follow=False))
        return found if (found.journal, found.manifest) == stamp(run) else None
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


def write_summary(run: Path, summary: Summary) -> None:
    with writing(run / SUMMARY, "then call it again"), replacing(run / SUMMARY) as file:
        file.write(msgspec.json.encode(summary) + b"\n")

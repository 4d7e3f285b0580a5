"""Every pair of a gate as a line of a table, so that its verdicts can be judged again by anybody."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvbench.errors import Unwritable
from kvbench.gate.duels import pairs
from kvbench.model import BESIDE, SIDES, Record
from kvbench.store.files import streams
from kvbench.texts import csv_text

_PROGRAMS, _SUMS = (*SIDES, *BESIDE.values()), ("switches", "steal", "throttled")
_HEADING = (
    "stage",
    "launch",
    "point",
    "pair",
    *(f"{name}_s" for name in _PROGRAMS),
    "switches",
    "steal_s",
    "throttled",
)


@contextmanager
def kept_pairs(folder: Path | None) -> Iterator[Callable[[str, Record], None]]:
    """What writes a record's into pairs.csv in `folder`; without one, nothing is kept. Seconds are those of a pass."""
    if folder is None:
        yield lambda stage, record: None
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        streams(folder / "pairs.csv", asked=False)  # it would wait at a pipe, and be led away by a link
        file = (folder / "pairs.csv").open("w", newline="")
    except OSError as error:
        raise Unwritable(f"cannot write {folder}: {error.strerror}", "name another --out") from None
    with file:
        file.write(csv_text([_HEADING]))

        def add(stage: str, record: Record) -> None:
            file.write(csv_text(_rows(stage, record)))
            file.flush()

        yield add


def _rows(stage: str, record: Record) -> Iterator[tuple[Any, ...]]:
    for pair in pairs(record):
        sums = (sum(getattr(sample, what) for sample in pair.values()) for what in _SUMS)
        times = (pair[name].pass_seconds[0] for name in _PROGRAMS)
        yield stage, record.launch, record.point.name, pair["base"].round, *times, *sums

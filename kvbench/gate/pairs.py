"""Every pair of a gate as a line of a table, so that its verdicts can be judged again by anybody."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kvbench.errors import Unwritable
from kvbench.gate.duels import pairs
from kvbench.model import BESIDE, SIDES, Record, Sample
from kvbench.store.files import streams
from kvbench.texts import csv_text

_PROGRAMS = (*SIDES, *BESIDE.values())
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


class Pairs:
    """pairs.csv in `folder`; without one, nothing is kept. Seconds are those of a pass."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            streams(folder / "pairs.csv", asked=False)  # it would wait at a pipe, and be led away by a link
            self._file = (folder / "pairs.csv").open("w", newline="")
        except OSError as error:
            raise Unwritable(f"cannot write {folder}: {error.strerror}", "name another --out") from None
        self._file.write(csv_text([_HEADING]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def add(self, stage: str, record: Record) -> None:
        if not self._file:
            return
        who = (stage, record.launch, record.point.name)
        self._file.write(csv_text((*who, pair["base"].round, *_facts(pair)) for pair in pairs(record)))
        self._file.flush()


def _facts(pair: Mapping[str, Sample]) -> tuple[float, ...]:
    times = (pair[name].pass_seconds[0] for name in _PROGRAMS)
    return (*times, *(sum(getattr(s, what) for s in pair.values()) for what in ("switches", "steal", "throttled")))

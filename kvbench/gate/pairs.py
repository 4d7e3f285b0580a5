"""Every pair of a gate as a line of a table, so that its verdicts can be judged again by anybody."""

from pathlib import Path

from kvbench.closing import Closing
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


class Pairs(Closing):
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

    def close(self) -> None:
        if self._file:
            self._file.close()

    def add(self, stage: str, record: Record) -> None:
        if not self._file:
            return
        rows = []
        for pair in pairs(record):
            sums = (sum(getattr(sample, what) for sample in pair.values()) for what in _SUMS)
            times = (pair[name].pass_seconds[0] for name in _PROGRAMS)
            rows.append((stage, record.launch, record.point.name, pair["base"].round, *times, *sums))
        self._file.write(csv_text(rows))
        self._file.flush()

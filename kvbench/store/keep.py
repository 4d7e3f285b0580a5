"""A run that others are held against: a copy of it, in the place of the one before."""

import os
import shutil
from pathlib import Path

from kvbench.store.files import sync_folder, writing
from kvbench.store.run import FILES, RunDirectory


def keep(run: Path, place: Path) -> None:
    """What was at `place`, a run or nothing, is there until the copy is whole. Reports beside the run are not copied."""
    if place.exists():
        RunDirectory.open(place).close()  # nothing else is ever replaced
    part, old = (place.with_name(f".{place.name}.{word}{os.getpid()}") for word in ("new", "old"))
    with writing(place):
        try:
            part.mkdir(parents=True)
            for name in FILES:
                if (run / name).exists():
                    shutil.copyfile(run / name, part / name)
            sync_folder(part)
            if place.exists():
                place.rename(old)
            part.rename(place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)

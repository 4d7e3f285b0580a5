"""A run that others are held against: its own files, in the place of those of the one before."""

import os
import shutil
from contextlib import ExitStack, closing
from pathlib import Path

from kvbench.errors import BadArgument
from kvbench.named import opened
from kvbench.store.files import reading, sync_folder, writing
from kvbench.store.journal import Journal
from kvbench.store.run import FILES, RunDirectory, half_kept


def is_vacant(place: Path) -> bool:
    """Is no run there, nor anything else that somebody would miss?"""
    with reading(place):
        half = half_kept(place, FILES[0]).exists() and not (place / FILES[0]).exists()
        return half or not place.exists() or place.is_dir() and not any(place.iterdir())


def keep(run: Path, place: Path) -> None:
    """Whatever else lies at `place` stays. Whenever this is killed, a run is there, the old or the new one; or a folder
    of which RunDirectory.open() says that this must be done again."""
    head, base = run.resolve(), place.resolve()
    if head == base or head in base.parents or base in head.parents:
        raise BadArgument(f"{place} and {run} are one folder, or one holds the other", "name two that lie apart")
    with ExitStack() as held, writing(place, "then bless it again"):
        if not is_vacant(place):
            RunDirectory.open(place).close()  # nothing else is ever replaced
            held.enter_context(closing(Journal(place / FILES[1])))  # nobody may be writing it
        place.mkdir(parents=True, exist_ok=True)
        _clear(place)
        held.callback(_clear, place)
        for name in FILES:
            if os.path.lexists(run / name):
                with opened(run / name, follow=False) as file, half_kept(place, name).open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                    copy.flush()
                    os.fsync(copy.fileno())
        (place / FILES[0]).unlink(missing_ok=True)  # between the two manifests there is no run
        for name in reversed(FILES):
            (place / name).unlink(missing_ok=True)
            if half_kept(place, name).exists():
                half_kept(place, name).replace(place / name)
        sync_folder(place)


def _clear(place: Path) -> None:
    """But for the manifest's where there is none: it says what was interrupted."""
    for name in FILES if (place / FILES[0]).exists() else FILES[1:]:
        half_kept(place, name).unlink(missing_ok=True)

"""Measurements of schedules on this machine and build, kept over runs in a file in the user's cache
folder, or another file.

The file is complete at any instant. Runs that end at once add to it one after the other, under a
lock of its folder.
"""

import errno
import hashlib
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kvbench import named
from kvbench.errors import Unwritable
from kvbench.model import TUNER, Tuned, pooled
from kvbench.model.annotated import Number
from kvbench.store.files import refuse_output, short, streams, write_json
from kvbench.store.locks import locked
from kvbench.store.values import parsed, read

OFF = "off"  # instead of a file: do not tune
# Bytes of a file: a class has 64 rounds of a dozen presets, 20 KB; a plan has a hundred classes or
# so.
_MOST = 16 << 20
# after these errors the content of the file is unknown
_FAILED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)


def cache_folder() -> Path:
    """The user's folder for files that can be made again."""
    asked = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (asked if asked.is_absolute() else Path.home() / ".cache") / "kvbench"


@dataclass(frozen=True, slots=True)
class _Kept:
    machine: str
    build: str
    tuner: int
    classes: dict[str, dict[str, tuple[Number, ...]]] = field(default_factory=dict)


class Evidence:
    """The file of measurements. `machine`: its fingerprint. `library`: the library with the
    kernels. `asked`: the file's name; by default one in the cache folder.
    """

    def __init__(self, machine: str, library: Path, asked: str | None = None) -> None:
        build = hashlib.sha256(library.read_bytes()).hexdigest()[:16]
        self._own, self._asked = _Kept(machine, build, TUNER), bool(asked)
        self.path = Path(asked) if asked else cache_folder() / "tuning" / f"{machine}-{build}.json"

    @classmethod
    def asked(cls, name: str | None, machine: str, library: Path) -> Self | None:
        """The file with that name; None for OFF, which means that nothing is tuned."""
        return None if name == OFF else cls(machine, library, name)

    def read(self) -> tuple[dict[str, dict[str, tuple[float, ...]]], str]:
        """Ratios by class; and a message if an existing file cannot be used. Raises Unwritable if a
        file that the user named could not be written.
        """
        if self._asked:  # now, not after minutes of measuring
            try:
                refuse_output(self.path, "then run it again")
            except Unwritable as error:
                raise Unwritable(error.args[0], "name another file with --tuning, or off") from None
        try:
            return self._held()
        except OSError as error:
            return {}, self._afresh(_why(error))

    def _held(self) -> tuple[dict[str, dict[str, tuple[float, ...]]], str]:
        """As read(), but raises OSError if the system could not read the file."""
        try:
            found = read(_Kept, parsed(named.text(self.path, _MOST, follow=self._asked)))
        except FileNotFoundError:
            return {}, ""
        except (OSError, ValueError, RecursionError) as error:
            if isinstance(error, OSError) and error.errno in _FAILED:
                raise
            return {}, self._afresh(_why(error))
        own = self._own
        different = [
            name
            for name in ("machine", "build", "tuner")
            if getattr(found, name) != getattr(own, name)
        ]
        if different:
            return (
                {},
                (
                    f"{self.path} is from another {' and '.join(different)}: all classes are tuned"
                    " afresh"
                ),
            )
        # not more than are kept
        return {of: pooled(ratios) for of, ratios in found.classes.items()}, ""

    def _afresh(self, why: str) -> str:
        return f"{self.path}: {why}: all classes are tuned afresh"

    def add(self, tunings: Iterable[Tuned], fresh: bool = False) -> str:
        """Add measurements to what the file holds now, or with `fresh` replace it. Returns a
        message if the file cannot be written.
        """
        try:
            with self._alone():
                self._replace(tunings, {} if fresh else self._held()[0])
        except OSError as error:
            return f"the tuning is not kept for later runs: {self.path}: {_why(error)}"
        return ""

    def _alone(self) -> AbstractContextManager[None]:
        """Keep other processes from adding meanwhile. A special file such as /dev/null needs no
        lock: it cannot be added to.
        """
        path = Path(os.path.realpath(self.path)) if self._asked else self.path
        return nullcontext() if streams(self.path, self._asked) else locked(path.parent)

    def _replace(
        self, tunings: Iterable[Tuned], classes: dict[str, dict[str, tuple[float, ...]]]
    ) -> None:
        for tuned in tunings:
            classes[tuned.of] = pooled(classes.get(tuned.of, {}), tuned.ratios)
        own = self._own
        write_json(self.path, _Kept(own.machine, own.build, own.tuner, classes), self._asked)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or short(error)

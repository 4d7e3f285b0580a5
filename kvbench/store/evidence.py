"""What tunings of this machine and build have seen, kept over runs: a file in the user's cache folder, or another one.

The file is whole at any instant. Two runs that end at once may lose what one of them has seen; its own journal has it.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kvbench.errors import Unwritable
from kvbench.model import TUNER, Tuned, pooled
from kvbench.model.annotated import Number
from kvbench.store.files import read_json, refuse_output, short, write_json
from kvbench.store.values import read

OFF = "off"  # in place of a file: nothing is tuned


def cache_folder() -> Path:
    """The user's, for what can be made again."""
    asked = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (asked if asked.is_absolute() else Path.home() / ".cache") / "kvbench"


@dataclass(frozen=True, slots=True)
class _Kept:
    machine: str
    build: str
    tuner: int
    classes: dict[str, dict[str, tuple[Number, ...]]] = field(default_factory=dict)


class Evidence:
    """`machine`: its fingerprint. `library`: of the kernels. `asked`: the file's name; without it, one of our own."""

    def __init__(self, machine: str, library: Path, asked: str | None = None) -> None:
        build = hashlib.sha256(library.read_bytes()).hexdigest()[:16]
        self._own, self._asked = _Kept(machine, build, TUNER), bool(asked)
        self.path = Path(asked) if asked else cache_folder() / "tuning" / f"{machine}-{build}.json"

    @classmethod
    def asked(cls, name: str | None, machine: str, library: Path) -> Self | None:
        """Of a file so named, or OFF: then there is none, and nothing is tuned."""
        return None if name == OFF else cls(machine, library, name)

    def read(self) -> tuple[dict[str, dict[str, tuple[float, ...]]], str]:
        """Ratios by class; and a line on why there are none, where a file is there and cannot be used. Unwritable where
        one that was asked for could not be written."""
        if self._asked:  # before minutes of measuring, not after them
            try:
                refuse_output(self.path, "then run it again")
            except Unwritable as error:
                raise Unwritable(error.args[0], "name another file with --tuning, or off") from None
        try:
            found = read(_Kept, read_json(self.path, follow=self._asked))
        except FileNotFoundError:
            return {}, ""
        except (OSError, ValueError, RecursionError) as error:
            return {}, f"{self.path}: {_why(error)}: all classes are tuned afresh"
        own = self._own
        different = [name for name in ("machine", "build", "tuner") if getattr(found, name) != getattr(own, name)]
        if different:
            return {}, f"{self.path} is of another {' and '.join(different)}: all classes are tuned afresh"
        return found.classes, ""

    def add(self, tunings: Iterable[Tuned], fresh: bool = False) -> str:
        """To what the file holds by now, or `fresh` in place of it. A line on why not, where it cannot be written."""
        classes = {} if fresh else self.read()[0]
        for tuned in tunings:
            classes[tuned.of] = pooled(classes.get(tuned.of, {}), tuned.ratios)
        own = self._own
        try:
            write_json(self.path, _Kept(own.machine, own.build, own.tuner, classes), self._asked)
        except OSError as error:
            return f"what was tuned is not kept for later runs: {self.path}: {_why(error)}"
        return ""


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or short(error)

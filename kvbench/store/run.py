"""A run directory: all that one run asked, found and measured. It is complete at any instant, also
if a process is killed.

manifest.json  what the run is; written last when the directory is made, so it marks a run
journal.jsonl  a line for each visit
machine.json   the machine that the run met
run.json.gz    for pyperf; rebuilt from the journal
summary.json   for a history; rebuilt from the journal
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from kvbench import named
from kvbench.closing import Closing
from kvbench.errors import BadArgument, BadRun, Unwritable
from kvbench.model import Record
from kvbench.store.files import (
    copy_file,
    read_json,
    reading,
    replacing,
    short,
    sync_folder,
    within,
    write_json,
    writing,
)
from kvbench.store.locks import locked
from kvbench.store.manifest import Manifest, from_json, to_json
from kvbench.store.names import EXPORT, FILES, JOURNAL, MACHINE, MANIFEST
from kvbench.store.parts import is_part
from kvbench.store.summary import Result, Summary, stamp, write_summary
from kvbench.store.values import decoder, line, parsed, read, record_line, refuse_unfit


class Journal:
    """The writer of a file of lines that only grows. Each line is on the disk before the next
    begins. A child process does not inherit it. A second writer gets Unwritable.

    A line counts once its newline is there. What a killed process left after the last newline is
    not read, and is cut off before a line is added.
    """

    def __init__(self, path: Path) -> None:
        """Make the file if missing. An existing file stays as it is until append()."""
        self._path, flags = (
            path,
            os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK,
        )
        self._file = os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0)
        try:
            named.refuse_kind(path, os.fstat(self._file.fileno()))
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._size = sum(map(len, lines(path)))  # bytes of the lines that count
        except BaseException as error:
            self._file.close()
            if isinstance(error, BlockingIOError):
                raise Unwritable(
                    f"{path.parent} is being written by another process",
                    "wait for it, or name another --out",
                ) from None
            raise

    def append(self, line: bytes) -> None:
        """Append a line, given without its newline. If this fails or is interrupted, part of the
        line may be written; a full line counts for the next process that opens the file.
        """
        self.refuse_changed()
        # cut off what follows the last full line
        if os.fstat(self._file.fileno()).st_size != self._size:
            os.ftruncate(self._file.fileno(), self._size)
            os.fsync(self._file.fileno())
        left = line + b"\n"
        while left:
            left = left[os.write(self._file.fileno(), left) :]
        os.fsync(self._file.fileno())
        self._size += len(line) + 1

    def refuse_changed(self) -> None:
        """Raise Unwritable if the file is not where this process left it, or is shorter."""
        own = os.fstat(self._file.fileno())
        with suppress(OSError):
            if os.path.samestat(own, self._path.lstat()) and own.st_size >= self._size:
                return
        raise Unwritable(
            f"{self._path} was changed, moved or removed by another program while kvbench wrote it",
            "its full lines still count: go on with kvbench sweep --out RUN --resume, where RUN"
            " is the directory",
        )

    def close(self) -> None:
        self._file.close()


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, with their newlines. The last line may be incomplete, still being
    written.
    """
    return (line for line in named.lines(path) if line.endswith(b"\n"))


class RunDirectory(Closing):
    """A run directory, open for reading; or for writing, by one process at a time, until it is
    closed.
    """

    def __init__(self, path: Path, manifest: Manifest, journal: Journal | None = None) -> None:
        """Called by create() and open(). It owns the journal."""
        self.path, self._journal = path, journal
        self._take(manifest)
        self.records: list[Record] = []  # in the order of the journal
        self._seen: set[tuple[int, str]] = set()  # launch, point

    def _take(self, manifest: Manifest) -> None:
        self.manifest, self._points = manifest, manifest.named()
        self._decode = decoder(Record, self._points)

    @classmethod
    def create(cls, path: Path | str, manifest: Manifest) -> Self:
        """Make a new run directory, open for writing. The path must not exist, or be an empty
        folder.
        """
        path = Path(path)
        try:
            facts = to_json(manifest)
            kept = from_json(parsed(line(facts)))
        except ValueError as error:
            raise BadArgument(
                f"this run cannot be stored: {short(error)}", "ask for other values"
            ) from None
        with writing(path, "then begin again"):
            _refuse_taken(path)
            with within(path):
                found = cls(path, kept, Journal(path / JOURNAL))
                try:
                    _refuse_taken(path)  # another process may have been faster, and be finished
                    write_json(path / MANIFEST, facts)
                except BaseException:
                    _take_away(path)
                    found.close()
                    raise
        return found

    @classmethod
    def open(cls, path: Path | str, write: bool = False) -> Self:
        path = Path(path)
        found = cls(path, _manifest(path))
        try:
            if write:
                with writing(path):
                    found._journal = Journal(path / JOURNAL)
            found._load()
        except BaseException:
            found.close()
            raise
        return found

    # ---- reading ---------------------------------------------------------------------------------

    def _load(self) -> None:
        path = self.path / JOURNAL
        with reading(path):
            for number, text in enumerate(lines(path), 1):
                try:
                    found = refuse_unfit(self._decode(text))
                    self._refuse_other(found)
                    self._keep(found)
                except (ValueError, RecursionError) as error:
                    raise BadRun(
                        f"{path}:{number} is not a record: {short(error)}",
                        "it was damaged; remove this line to use the rest, and --resume"
                        " measures it again",
                    ) from None

    def _refuse_other(self, found: Record) -> None:
        """Raise ValueError if a record is not of this run, or if its launch has visited the point
        before.
        """
        self.manifest.refuse_foreign({"run": found.run, "launch": found.launch})
        if (name := found.point.name) not in self._points:
            raise ValueError(f"the run has no point {name[:60]!r}")
        if (found.launch, name) in self._seen:
            raise ValueError(f"launch {found.launch} has visited {name} before")

    def _keep(self, found: Record) -> None:
        self._seen.add((found.launch, found.point.name))
        self.records.append(found)

    def machine(self) -> dict[str, Any] | None:
        """The facts from write_machine(), and the `run`."""
        path = self.path / MACHINE
        with reading(path):
            if not path.exists():
                return None
            found = read(dict[str, Any], read_json(path))
            self.manifest.refuse_foreign(found)
            return found

    # ---- writing ---------------------------------------------------------------------------------

    def append(self, found: Record) -> None:
        """Append a record; it is on the disk on return. The record is checked first, so that
        nothing is written that cannot be read again.
        """
        journal = self._writer()
        if found.run not in ("", self.manifest.run):
            raise BadArgument(
                f"a record is of run {found.run!r}", f"this is run {self.manifest.run!r}"
            )
        try:
            kept = refuse_unfit(replace(found, run=self.manifest.run))
            self._refuse_other(kept)
            text = record_line(kept).encode()
        except (TypeError, ValueError) as error:
            raise BadArgument(
                f"{found.point.name}: {short(error)}", "a record of this run, each point once"
            ) from None
        with writing(self.path / JOURNAL):
            journal.append(text)
        self._keep(kept)

    def rewrite(self, manifest: Manifest) -> None:
        """Replace the manifest by one of the same run with other launches, options or line."""
        self._writer()
        with writing(self.path / MANIFEST):
            write_json(self.path / MANIFEST, to_json(manifest))
        self._take(manifest)

    def write_machine(self, facts: dict[str, Any]) -> None:
        self._writer()
        with writing(self.path / MACHINE):
            write_json(self.path / MACHINE, facts | {"run": self.manifest.run})

    def export(self) -> bool:
        """Rebuild run.json.gz. Returns False, and leaves the file, if no launch is complete."""
        from kvbench.store.export import dump, suite  # imported here because pyperf loads slowly

        self._writer()
        found = suite(self.manifest, self.records)
        if found is None:
            return False
        with writing(self.path / EXPORT), replacing(self.path / EXPORT) as file:
            dump(found, file)
        return True

    def summarize(self, results: Iterable[Result]) -> None:
        """Write the summary. `results`: of all points that have a witness."""
        self._writer()
        with reading(self.path / JOURNAL):
            found = Summary.of(self.manifest, stamp(self.path), results)
        write_summary(self.path, found)

    def _writer(self) -> Journal:
        if self._journal is None:
            raise Unwritable(f"{self.path} is not open for writing", "open it with write=True")
        self._journal.refuse_changed()
        return self._journal

    def close(self) -> None:
        if self._journal:
            self._journal.close()
        self._journal = None


def _refuse_taken(path: Path) -> None:
    """Refuse a path that holds a run or other files. The leftovers of a creation that was killed do
    not count.
    """
    if not path.exists():
        return
    if not path.is_dir():
        raise Unwritable(f"{path} is a file", "name another --out")
    if (path / MANIFEST).exists():
        raise BadArgument(
            f"{path} holds a run already", "name another --out, or finish that run with --resume"
        )
    for entry in path.iterdir():
        empty = entry.name == JOURNAL and entry.is_file() and not entry.stat().st_size
        if not empty and not is_part(entry.name, MANIFEST):
            raise BadArgument(f"{path} is not empty: it holds {entry.name}", "name another --out")


def _take_away(path: Path) -> None:
    """Remove the journal of a run that could not be made; the caller holds it."""
    with suppress(OSError):
        if not (path / MANIFEST).exists() and not (path / JOURNAL).stat().st_size:
            (path / JOURNAL).unlink()


def _manifest(path: Path) -> Manifest:
    file, hint = path / MANIFEST, "name a folder that kvbench sweep has written"
    with reading(file):
        if not file.exists():
            if _half_kept(path, MANIFEST).exists():
                raise BadRun(
                    f"{path}: replacing it by --bless was interrupted",
                    "bless it once more",
                )
            raise BadRun(f"{path} is not a run directory: {file} is missing", hint)
        found = from_json(read_json(file))
    with reading(path / JOURNAL):
        named.opened(path / JOURNAL, follow=False).close()
    return found


def _half_kept(path: Path, name: str) -> Path:
    """The copy of a file that is to replace the one at `path`. If it exists and the manifest does
    not, the replacement was interrupted.
    """
    return path / f".{name}.kept"


# ---- a run that others are held against: its own files, in the place of those of the one before --


def is_vacant(place: Path) -> bool:
    """Whether the place holds no run and nothing else that the user would miss."""
    with reading(place):
        half = _half_kept(place, MANIFEST).exists() and not (place / MANIFEST).exists()
        return half or not place.exists() or place.is_dir() and not any(place.iterdir())


def keep(run: Path, place: Path, then: str = "then bless it again") -> None:
    """Put the files of `run` in the place of those at `place`; other files stay. If this is killed,
    `place` holds the old run, the new run, or a folder for which RunDirectory.open() says to do it
    again. `then`: what to do when there is room.
    """
    head, base = run.resolve(), place.resolve()
    if head == base or head in base.parents or base in head.parents:
        raise BadArgument(
            f"{place} and {run} are the same folder, or one is inside the other",
            "name two that lie apart",
        )
    with ExitStack() as held, writing(place, then):
        held.enter_context(within(place))
        held.enter_context(locked(place))
        if not is_vacant(place):
            RunDirectory.open(place).close()  # only a run is ever replaced
            held.enter_context(closing(Journal(place / JOURNAL)))  # nobody may be writing it
        _clear(place)
        held.callback(_clear, place, empty=not any(place.iterdir()))
        for name in FILES:
            if os.path.lexists(run / name):
                copy_file(run / name, _half_kept(place, name))
        (place / MANIFEST).unlink(missing_ok=True)  # not a run until the new one
        for name in reversed(FILES):
            (place / name).unlink(missing_ok=True)
            if _half_kept(place, name).exists():
                _half_kept(place, name).replace(place / name)
        sync_folder(place)


def _clear(place: Path, empty: bool = False) -> None:
    """Remove keep()'s copies. Without a manifest, its copy stays to show the interruption, unless
    the place was empty before.
    """
    for name in FILES if empty or (place / MANIFEST).exists() else FILES[1:]:
        _half_kept(place, name).unlink(missing_ok=True)

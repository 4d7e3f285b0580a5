"""A run directory: all that one run asked, met and measured. It is whole at any instant, whoever is killed.

manifest.json   what the run is: written last when the directory is made, so without it there is none
journal.jsonl   a line for each visit
machine.json    the machine that the run met
run.json.gz     for pyperf; rebuilt from the journal
summary.json    for a history; likewise
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from kvbench.closing import Closing
from kvbench.errors import BadArgument, BadRun, Unwritable
from kvbench.model import Record
from kvbench.named import opened
from kvbench.store.files import (
    part_of,
    read_json,
    reading,
    replacing,
    short,
    sync_folder,
    write_json,
    writing,
)
from kvbench.store.journal import Journal, lines
from kvbench.store.manifest import Manifest, from_json, to_json
from kvbench.store.summary import JOURNAL as _JOURNAL
from kvbench.store.summary import MANIFEST as _MANIFEST
from kvbench.store.summary import SUMMARY, Result, Summary, stamp, write_summary
from kvbench.store.values import line, parsed, plain, read, record

_MACHINE, _EXPORT = "machine.json", "run.json.gz"
FILES = (_MANIFEST, _JOURNAL, _MACHINE, _EXPORT, SUMMARY)


class RunDirectory(Closing):
    """Open to be read; or to be written, by one process at a time, until it is closed."""

    def __init__(self, path: Path, manifest: Manifest, journal: Journal | None = None) -> None:
        """As create() and open() call it. It owns the journal."""
        self.path, self.manifest, self._journal = path, manifest, journal
        self.records: list[Record] = []  # in the order of the journal
        self._points = manifest.named()
        self._seen: set[tuple[int, str]] = set()  # launch, point

    @classmethod
    def create(cls, path: Path | str, manifest: Manifest) -> Self:
        """A new one, open to be written. There must be nothing yet, or an empty folder."""
        path = Path(path)
        try:
            facts = to_json(manifest)
            kept = from_json(parsed(line(facts)))
        except ValueError as error:
            raise BadArgument(f"this run cannot be kept: {short(error)}", "ask for other values") from None
        with writing(path, "then begin again"):
            _refuse_taken(path)
            path.mkdir(parents=True, exist_ok=True)
            found = cls(path, kept, Journal(path / _JOURNAL))
            try:
                _refuse_taken(path)  # another process may have been faster, and be done
                sync_folder(path.parent)
                write_json(path / _MANIFEST, facts)
            except BaseException:
                found.close()
                raise
        return found

    @classmethod
    def open(cls, path: Path | str, write: bool = False) -> Self:
        path = Path(path)
        found = cls(path, _manifest(path))
        try:
            if write:
                found._lock()
            found._load()
        except BaseException:
            found.close()
            raise
        return found

    def _lock(self) -> None:
        with writing(self.path):
            self._journal = Journal(self.path / _JOURNAL)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        path = self.path / _JOURNAL
        with reading(path):
            for number, text in enumerate(lines(path), 1):
                try:
                    self._keep(self._record(text))
                except (ValueError, RecursionError) as error:
                    hint = "it was damaged; without this line the rest can be used, and --resume measures it again"
                    raise BadRun(f"{path}:{number} is no record: {short(error)}", hint) from None

    def _record(self, text: bytes) -> Record:
        """ValueError where it is none of this run, or the point was visited before in its launch."""
        facts = read(dict[str, Any], parsed(text))
        self.manifest.refuse_foreign(facts)
        name = facts.get("point")
        if not isinstance(name, str) or name not in self._points:
            raise ValueError(f"the run has no point {str(name)[:60]!r}")
        found = record(facts | {"point": self._points[name], "run": self.manifest.run})
        if (found.launch, found.point.name) in self._seen:
            raise ValueError(f"launch {found.launch} has visited {name} before")
        return found

    def _keep(self, found: Record) -> None:
        self._seen.add((found.launch, found.point.name))
        self.records.append(found)

    def machine(self) -> dict[str, Any] | None:
        """What write_machine() was given last, and the `run`."""
        path = self.path / _MACHINE
        with reading(path):
            if not path.exists():
                return None
            found = read(dict[str, Any], read_json(path))
            self.manifest.refuse_foreign(found)
            return found

    # ---- writing -----------------------------------------------------------------------------------------------------

    def append(self, found: Record) -> None:
        """It is on the disk when this returns."""
        journal = self._writer()
        if found.run not in ("", self.manifest.run):
            raise BadArgument(f"a record is of run {found.run!r}", f"this is run {self.manifest.run!r}")
        try:
            text = line(plain(found) | {"point": found.point.name, "run": self.manifest.run}).encode()
            kept = self._record(text)  # nothing is written that could not be read
        except (TypeError, ValueError) as error:
            raise BadArgument(f"{found.point.name}: {short(error)}", "a record of this run, each point once") from None
        with writing(self.path / _JOURNAL):
            journal.append(text)
        self._keep(kept)

    def rewrite(self, manifest: Manifest) -> None:
        """The manifest of the same run, with other launches or options."""
        self._writer()
        with writing(self.path / _MANIFEST):
            write_json(self.path / _MANIFEST, to_json(manifest))
        self.manifest = manifest

    def write_machine(self, facts: dict[str, Any]) -> None:
        self._writer()
        with writing(self.path / _MACHINE):
            write_json(self.path / _MACHINE, facts | {"run": self.manifest.run})

    def export(self) -> bool:
        """Rebuild run.json.gz. False where no launch is complete: then it stays as it is."""
        from kvbench.store.export import dump, suite  # here, for pyperf takes its time to load

        self._writer()
        found = suite(self.manifest, self.records)
        if found is None:
            return False
        with writing(self.path / _EXPORT), replacing(self.path / _EXPORT) as file:
            dump(found, file)
        return True

    def summarize(self, results: Iterable[Result]) -> None:
        """`results`: of all points that have a witness."""
        self._writer()
        with reading(self.path / _JOURNAL):
            found = Summary.of(self.manifest, stamp(self.path), results)
        write_summary(self.path, found)

    def _writer(self) -> Journal:
        if self._journal is None:
            raise Unwritable(f"{self.path} is not open to be written", "open it with write=True")
        self._journal.refuse_changed()
        return self._journal

    def close(self) -> None:
        if self._journal:
            self._journal.close()
        self._journal = None


def _refuse_taken(path: Path) -> None:
    """What a creation that was killed has left is nothing."""
    if not path.exists():
        return
    if not path.is_dir():
        raise Unwritable(f"{path} is a file", "name another --out")
    if (path / _MANIFEST).exists():
        raise BadArgument(f"{path} holds a run already", "name another --out, or finish that run with --resume")
    for entry in path.iterdir():
        empty = entry.name == _JOURNAL and entry.is_file() and not entry.stat().st_size
        if not empty and entry != part_of(path / _MANIFEST):
            raise BadArgument(f"{path} is not empty: it holds {entry.name}", "name another --out")


def _manifest(path: Path) -> Manifest:
    file, hint = path / _MANIFEST, "name a folder that kvbench sweep has written"
    with reading(file):
        if not file.exists():
            if half_kept(path, _MANIFEST).exists():
                raise BadRun(f"{path} was being replaced by --bless, and that was interrupted", "bless it once more")
            raise BadRun(f"{path} is no run directory: there is no {file}", hint)
        found = from_json(read_json(file))
    with reading(path / _JOURNAL):
        opened(path / _JOURNAL, follow=False).close()
    return found


def half_kept(path: Path, name: str) -> Path:
    """A file of the run that is to take the place of the one at `path`. Without a manifest, that was interrupted."""
    return path / f".{name}.kept"

"""The runs below a folder, in one SQLite file beside them, so that a question need not read them all again.

It holds nothing that the run directories do not say: it may be deleted at any time. A run is read again when its
journal is another, by size or time; one that is gone is forgotten.
"""

import gc
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, Self

from kvbench.errors import BadArgument, BadRun
from kvbench.history.reading import JOURNAL, MANIFEST, Reading, read
from kvbench.model import Point
from kvbench.store import plain
from kvbench.texts import printable

FILE = "history.sqlite"
_VERSION = 1  # of the tables; another one is built anew
_MANY = 32  # runs to read that are worth further processes
_PATIENCE = 60.0  # seconds that another process may take to build it

_TABLES = """
CREATE TABLE machine (id INTEGER PRIMARY KEY, fingerprint TEXT UNIQUE, name TEXT);
CREATE TABLE point (id INTEGER PRIMARY KEY, name TEXT UNIQUE, facts TEXT);
CREATE TABLE run (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE, stamp TEXT, run TEXT, created TEXT, began REAL, machine INTEGER,
    suite TEXT, build TEXT, environment TEXT);
CREATE TABLE result (
    run INTEGER, point INTEGER, launches INTEGER, efficiency REAL, low REAL, high REAL, seconds REAL, gbps REAL,
    witness TEXT, PRIMARY KEY (run, point)) WITHOUT ROWID;
"""

_NUMBERS = ("launches", "efficiency", "low", "high", "seconds", "gbps", "witness")  # columns of a result

_Tell = Callable[[str], None]


class RunRow(NamedTuple):
    """`began`: seconds since 1970. `created`: the same as ISO, in the zone of the run."""

    id: int
    path: str  # below the root
    run: str
    created: str
    began: float
    suite: str
    build: str
    environment: str


class Index:
    """Close it. `notes`: what could not be used, and why."""

    def __init__(self, root: Path, rebuild: bool = False) -> None:
        if not root.is_dir():
            hint = "name the folder that your runs are in with --root; kvbench sweep writes into runs/"
            raise BadArgument(f"--root: {root} is no folder", hint)
        self._root, self.notes = root, []
        self._base = self._opened(root / FILE, rebuild)

    def _opened(self, file: Path, rebuild: bool) -> sqlite3.Connection:
        if file.exists() and not file.is_file():
            raise BadArgument(f"{file} is no file", "take it away: it is made anew of the runs")
        if not os.access(file if file.exists() else self._root, os.W_OK):
            self.notes.append(f"{file} cannot be written: the runs are read again each time")
            return _made(":memory:")
        if rebuild:
            file.unlink(missing_ok=True)
        try:
            return _made(file)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):  # locked, or the disk is full
                raise BadRun(f"cannot use {file}: {error}", "wait for the other process, or make room") from None
            self.notes.append(f"{file} was damaged and is built anew")
        file.unlink()
        return _made(file)

    def update(self, tell: _Tell) -> None:
        """Read what is new. `tell` is told when that takes a while."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            there = self._there()
            stamps = {name: _stamp(path) for name, path in there.items()}
            known = dict(self._base.execute("SELECT path, stamp FROM run"))
            self._forget(name for name in known if stamps.get(name) != known[name])
            fresh = sorted(name for name in there if stamps[name] != known.get(name))
            if len(fresh) >= _MANY:
                tell(f"reading {len(fresh)} runs into {self._root / FILE}")
            for name, found in zip(fresh, _readings([there[name] for name in fresh]), strict=True):
                if isinstance(found, str):
                    self.notes.append(f"left out: {found}")
                else:
                    self._keep(name, stamps[name], found)
            self._base.execute("COMMIT")
        except BaseException:
            self._base.execute("ROLLBACK")
            raise

    def _there(self) -> dict[str, Path]:
        """Run directories, by their names below the root, which a table holds only where they are text."""
        found = {}
        for path in _runs(self._root):
            name = str(path.relative_to(self._root))
            if name == name.encode(errors="replace").decode():
                found[name] = path
            else:
                self.notes.append(f"left out: the name of {printable(name)} is not UTF-8: rename it")
        return found

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._base.execute("DELETE FROM result WHERE run = (SELECT id FROM run WHERE path = ?)", (name,))
            self._base.execute("DELETE FROM run WHERE path = ?", (name,))

    def _keep(self, path: str, stamp: str, found: Reading) -> None:
        manifest = found.manifest
        machine = self._id("machine", "fingerprint", manifest.identity.get("machine", ""), _brand(found))
        facts = (manifest.run, manifest.created, datetime.fromisoformat(manifest.created).timestamp(), machine)
        facts += (manifest.suite, *(manifest.identity.get(name, "") for name in ("build", "environment")))
        sql = "INSERT INTO run (path, stamp, run, created, began, machine, suite, build, environment) VALUES "
        run = self._base.execute(f"{sql}(?, ?, ?, ?, ?, ?, ?, ?, ?)", (path, stamp, *facts)).lastrowid
        rows = [(run, self._point(each.point), *(getattr(each, name) for name in _NUMBERS)) for each in found.results]
        self._base.executemany("INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def _point(self, point: Point) -> int:
        return self._id("point", "name", point.name, lambda: json.dumps(plain(point)))

    def _id(self, table: str, column: str, value: str, more: Callable[[], str]) -> int:
        """Of a row, which is made where there is none."""
        found = self._base.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()
        return (
            found[0]
            if found
            else self._base.execute(f"INSERT INTO {table} VALUES (NULL, ?, ?)", (value, more())).lastrowid
        )

    # ---- questions -------------------------------------------------------------------------------------------------------

    def machines(self) -> list[tuple[int, str, str]]:
        """Number, fingerprint and name of those that have runs, the one with most of them first."""
        sql = "SELECT m.id, fingerprint, name FROM machine m JOIN run ON run.machine = m.id GROUP BY m.id"
        return self._base.execute(f"{sql} ORDER BY count(*) DESC, fingerprint").fetchall()

    def runs(self, machine: int) -> list[RunRow]:
        """In the order of time. A run that is there twice counts once, where it was found first."""
        sql = "SELECT id, path, run, created, began, suite, build, environment FROM run WHERE machine = ? ORDER BY path"
        found: dict[str, RunRow] = {}
        for row in map(RunRow._make, self._base.execute(sql, (machine,))):
            first = found.setdefault(row.run, row)
            if first is not row:
                self.notes.append(f"left out: {row.path} is the same run as {first.path}")
        return sorted(found.values(), key=lambda row: (row.began, row.run))

    def results(self, machine: int) -> Iterator[tuple]:
        """Number of the run, name of the point, then as the columns of `result`."""
        sql = """SELECT result.run, point.name, launches, efficiency, low, high, seconds, gbps, witness FROM result
                 JOIN run ON run.id = result.run JOIN point ON point.id = result.point
                 WHERE run.machine = ? ORDER BY point.name"""
        return self._base.execute(sql, (machine,))

    def points(self, names: Iterable[str]) -> dict[str, dict]:
        """What these points are, by name."""
        wanted = set(names)
        rows = self._base.execute("SELECT name, facts FROM point")
        return {name: json.loads(facts) for name, facts in rows if name in wanted}

    def where(self, run: str) -> Path | None:
        """The folder of a run."""
        found = self._base.execute("SELECT path FROM run WHERE run = ? ORDER BY path", (run,)).fetchone()
        return self._root / found[0] if found else None

    def close(self) -> None:
        self._base.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _made(file: Path | str) -> sqlite3.Connection:
    """Open and with its tables; sqlite3.DatabaseError where it is none, or damaged."""
    base = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)
    try:
        if base.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
        (version,) = base.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            drop = "".join(f'DROP TABLE "{name}";' for name in tables)
            base.executescript(f"BEGIN IMMEDIATE;{drop}{_TABLES}PRAGMA user_version = {_VERSION};COMMIT;")
    except BaseException:
        base.close()
        raise
    return base


def _brand(found: Reading) -> Callable[[], str]:
    return lambda: found.manifest.versions.get("cpu_model_name") or "a machine without a name"


# ---- run directories -------------------------------------------------------------------------------------------------


def _runs(root: Path) -> Iterator[Path]:
    """Wherever they are below it. What begins with a dot is unfinished, or none of ours."""
    for folder, below, files in os.walk(root):
        if MANIFEST in files:
            below.clear()
            yield Path(folder)
        below[:] = sorted(name for name in below if not name.startswith("."))


def _stamp(run: Path) -> str:
    """It is another when the journal has grown, or either file was replaced."""
    try:
        found = [(run / name).stat() for name in (JOURNAL, MANIFEST)]
    except OSError:
        return ""  # it is read, and says itself what is wrong
    return " ".join(f"{each.st_size} {each.st_mtime_ns}" for each in found)


def _readings(paths: list[Path]) -> Iterator[Reading | str]:
    """Of each run, or why there is none. A run takes some hundredths of a second, most of it JSON: which makes no
    cycles, so that nobody need look for them."""
    if len(paths) < _MANY:
        yield from map(_reading, paths)
        return
    processes = min(len(os.sched_getaffinity(0)), len(paths) // (_MANY // 2))
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=gc.disable) as pool:
        yield from pool.map(_reading, paths, chunksize=4)


def _reading(path: Path) -> Reading | str:
    try:
        return read(path)
    except BadRun as error:
        return error.args[0]

"""The files of a score: a run directory that is sealed when it is complete, and an archive of it
that others may read.

score.json lies beside a run's own files: the version of the score, and digests of all files that it
is made of.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from kvbench import named
from kvbench.analysis.measured.machines import ceiling_rows, profile
from kvbench.errors import BadRun, KvbenchError, OutOfMemory
from kvbench.model import Fact
from kvbench.report.redact import redact
from kvbench.results import Run, load
from kvbench.score import VERSION, Breach, Score, digest, score
from kvbench.store import RunDirectory, archive, plain, read, write_json
from kvbench.store.files import read_json, reading, replacing, within, writing
from kvbench.store.names import JOURNAL, LOADED, LONGER, MACHINE, MANIFEST, SEAL

ENDING = ".tar.gz"
_OWN = (MANIFEST, JOURNAL, MACHINE)
_BESIDE = (LONGER, LOADED)  # folders that a score may have
_PARTS = (*_OWN, *(f"{folder}/{name}" for folder in _BESIDE for name in _OWN))
_MIB = 1 << 20
# bytes at most: ten times what a score has, or more
_SIZES = {MANIFEST: _MIB, JOURNAL: 16 * _MIB, MACHINE: 4 * _MIB}
_LIMITS = {name: _SIZES[name.rpartition("/")[2]] for name in _PARTS} | {SEAL: _MIB}
_POINTS, _LAUNCHES = 256, 200  # in an archive, at most: a score has 11 in 10
_Found = TypeVar("_Found")
_HINT = "name an archive that kvbench score --pack has written"


@dataclass(frozen=True, slots=True)
class Seal:
    """What score.json holds."""

    score: str
    digest: str
    files: dict[str, str]  # their digests, by name


def seal(path: Path) -> Score:
    """When all that it asks for is measured."""
    found = _scored(path)
    with writing(path / SEAL):
        write_json(path / SEAL, plain(Seal(VERSION, digest(), _digests(path))))
    return found


def holds(path: Path) -> bool:
    return (path / SEAL).is_file()


def scored(path: Path, archived: bool = False) -> Score:
    """Of a run directory, computed anew. What was changed since it was sealed makes it invalid.
    `archived`: it is, or is to be, what others get, so it must be consistent too.
    """
    if not holds(path):
        return _scored(path, Breach("unsealed", {}), archived=archived)
    then, own = _kept(path), f"{VERSION} #{digest()}"
    kept = f"{then.score} #{then.digest}"[:40]
    found = [Breach("files", {"name": name}) for name in _changed(path, then)]
    if kept != own:
        found.append(Breach("version", {"found": kept, "wanted": own}))
    return _scored(path, *found, archived=archived)


def refuse_changed(path: Path) -> None:
    """Before a sealed one is resumed, which seals it anew."""
    if holds(path) and (names := _changed(path, _kept(path))):
        raise BadRun(f"{path / names[0]} was changed since the score was made", "begin another one")


def _kept(path: Path) -> Seal:
    with reading(path / SEAL):
        return read(Seal, read_json(path / SEAL))


def _changed(path: Path, then: Seal) -> list[str]:
    now = _digests(path)
    return sorted(name for name in {*then.files, *now} if then.files.get(name) != now.get(name))


def _scored(path: Path, *more: Breach, archived: bool = False) -> Score:
    run = load(path)
    begun = [name for name in _BESIDE if _is_begun(path / name)]
    beside = {name: load(path / name) for name in begun}
    for each in (run, *beside.values()) if archived else ():
        _refuse_more(each)
    longer, loaded = (beside[name].records if name in beside else () for name in _BESIDE)
    try:
        return score(run.manifest, run.machine, run.records, longer, loaded, more, archived)
    except (KeyError, ArithmeticError) as error:
        raise BadRun(
            f"{path}: no score can be made of it: {error!r}", "name a run of kvbench score"
        ) from None


def _is_begun(path: Path) -> bool:
    """Whether there is a run. Of one that was killed as it began there is no machine yet."""
    return all((path / name).is_file() for name in (MANIFEST, MACHINE))


def _digests(path: Path) -> dict[str, str]:
    with reading(path):
        there = [name for name in _PARTS if (path / name).exists()]
        return {
            name: sha256(named.opened(path / name, follow=False).read()).hexdigest()
            for name in there
        }


def found_in(path: Path) -> Iterator[Path]:
    """Scores that a path names: a run, an archive, or what a folder that is no run holds of
    these.
    """
    if path.name.endswith(ENDING) or holds(path):
        yield path
    elif path.is_dir() and not (path / _OWN[0]).exists():
        yield from (
            each for each in sorted(path.iterdir()) if each.name.endswith(ENDING) or holds(each)
        )


def of(path: Path) -> Score:
    """What found_in() has found."""
    return scored(path) if path.is_dir() else checked(path)


def with_run(path: Path) -> tuple[Score, Run]:
    """What found_in() has found: the score, and the run that it is made of."""
    return _with_run(path) if path.is_dir() else _unpacked(path, partial(_with_run, archived=True))


def _with_run(path: Path, archived: bool = False) -> tuple[Score, Run]:
    return scored(path, archived), load(path)


def pack(path: Path, out: Path, name: str) -> Score:
    """Without host names and paths. `name`: what the machine is called, in place of its CPU's
    name.
    """
    found = scored(path)
    if spoilt := [each for each in found.breaches if each.rule in ("unsealed", "version", "files")]:
        raise BadRun(
            f"{path} is no whole score: {spoilt[0].rule}",
            "kvbench score RUN says what is wrong with it",
        )
    with TemporaryDirectory(prefix="kvbench-") as folder:
        place = Path(folder)
        _copy(load(path), place / "run", name)
        for beside in _BESIDE:
            if (path / beside).is_dir():
                _copy(load(path / beside), place / "run" / beside, name)
        seal(place / "run")
        found = scored(place / "run", archived=True)
        with (
            writing(out, "then submit it again"),
            within(out.parent),
            replacing(out, asked=True) as file,
        ):
            archive.pack(place / "run", (*_PARTS, SEAL), file)
    return found


def _copy(run: Run, place: Path, name: str) -> None:
    manifest, machine, checks, records = redact(run.manifest, run.machine, run.checks, run.records)
    name = name or f"machine {machine.fingerprint[:6]}"
    machine = replace(
        machine, facts=machine.facts | {"brand": Fact(name, "named by its owner", "low")}
    )
    with RunDirectory.create(place, manifest) as directory:
        for record in records:
            directory.append(record)
        found = replace(profile(machine, checks), ceilings=ceiling_rows(records, machine))
        directory.write_machine(plain(found))


def checked(file: Path) -> Score:
    """Of an archive, as scored()."""
    return _unpacked(file, partial(scored, archived=True))


def _unpacked(file: Path, use: Callable[[Path], _Found]) -> _Found:
    """What `use` makes of the folder that an archive is unpacked to. Anybody may have made the
    archive, so whatever is wrong with it is a BadRun that names it.
    """
    with TemporaryDirectory(prefix="kvbench-") as folder:
        place = Path(folder)
        _unpack(file, place)
        try:
            return use(place)
        except (MemoryError, OutOfMemory):
            raise
        except KvbenchError as error:
            said = error.args[0].replace(folder, str(file))  # that folder is gone when this is read
        except Exception as error:  # what nobody has foreseen
            said = f"{file}: no score can be made of it: {type(error).__name__}: {error}"
        raise BadRun(" ".join(said.split())[:300], _HINT)


def _unpack(file: Path, place: Path) -> None:
    try:
        found = archive.unpack(file, place, _LIMITS)
        if missing := {*_OWN, SEAL} - found:
            raise ValueError(f"it lacks {min(missing)}")
    except OSError as error:
        raise BadRun(f"{file} is no submission: {error.strerror or error}", _HINT) from None
    except (ValueError, OverflowError) as error:
        raise BadRun(f"{file} is no submission: {error}", _HINT) from None


def _refuse_more(run: Run) -> None:
    """Points and launches that no score has: they would take minutes."""
    plan, visits = run.manifest.plan, len(run.records)
    if len(plan.points) > _POINTS:
        raise BadRun(
            f"{run.path / MANIFEST} has {len(plan.points)} points, and a score {_POINTS} at most",
            _HINT,
        )
    if visits > len(plan.points) * _LAUNCHES:
        raise BadRun(
            f"{run.path / JOURNAL} has {visits} visits, and a score {_LAUNCHES} launches at most",
            _HINT,
        )

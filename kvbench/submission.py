"""The files of a score: a run directory that is sealed when complete, and an archive of it for
others.

score.json lies beside the run's own files. It has the version of the score, and digests of all
files that the score is computed from.
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
# Most bytes of each file: at least ten times what a score has.
_SIZES = {MANIFEST: _MIB, JOURNAL: 16 * _MIB, MACHINE: 4 * _MIB}
_LIMITS = {name: _SIZES[name.rpartition("/")[2]] for name in _PARTS} | {SEAL: _MIB}
_POINTS, _LAUNCHES = 256, 200  # limits of an archive; a score has 11 points in 10 launches
_Found = TypeVar("_Found")
_HINT = "give an archive that kvbench score --pack wrote"


@dataclass(frozen=True, slots=True)
class Seal:
    """The content of score.json."""

    score: str
    digest: str
    files: dict[str, str]  # digests by name


def seal(path: Path) -> Score:
    """Seal a run, once all that a score needs is measured."""
    found = _scored(path)
    with writing(path / SEAL):
        write_json(path / SEAL, plain(Seal(VERSION, digest(), _digests(path))))
    return found


def holds(path: Path) -> bool:
    return (path / SEAL).is_file()


def scored(path: Path, archived: bool = False) -> Score:
    """Compute the score of a run directory anew. If a file changed after sealing, the score is
    invalid. `archived`: others get the archive, so it must also be consistent.
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
    """Refuse to resume a sealed run whose files have changed, because that would seal it anew."""
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
            f"{path}: no score can be computed from it: {error!r}", "give a run of kvbench score"
        ) from None


def _is_begun(path: Path) -> bool:
    """Whether the run exists. A run that was killed at its start has no machine.json yet."""
    return all((path / name).is_file() for name in (MANIFEST, MACHINE))


def _digests(path: Path) -> dict[str, str]:
    with reading(path):
        there = [name for name in _PARTS if (path / name).exists()]
        return {
            name: sha256(named.opened(path / name, follow=False).read()).hexdigest()
            for name in there
        }


def found_in(path: Path) -> Iterator[Path]:
    """Scores that a path names: a run, an archive, or all of these in a folder."""
    if path.name.endswith(ENDING) or holds(path):
        yield path
    elif path.is_dir() and not (path / _OWN[0]).exists():
        yield from (
            each for each in sorted(path.iterdir()) if each.name.endswith(ENDING) or holds(each)
        )


def of(path: Path) -> Score:
    """The score of a path from found_in()."""
    return scored(path) if path.is_dir() else checked(path)


def with_run(path: Path) -> tuple[Score, Run]:
    """The score of a path from found_in(), and the run that it is made of."""
    return _with_run(path) if path.is_dir() else _unpacked(path, partial(_with_run, archived=True))


def _with_run(path: Path, archived: bool = False) -> tuple[Score, Run]:
    return scored(path, archived), load(path)


def pack(path: Path, out: Path, name: str) -> Score:
    """Pack a score without host names and paths. `name`: the machine's name, in place of its CPU's
    name.
    """
    found = scored(path)
    if spoilt := [each for each in found.breaches if each.rule in ("unsealed", "version", "files")]:
        raise BadRun(
            f"{path} is not a complete score: {spoilt[0].rule}",
            "kvbench score RUN says what is wrong",
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
    """Compute the score of an archive, as scored() does."""
    return _unpacked(file, partial(scored, archived=True))


def _unpacked(file: Path, use: Callable[[Path], _Found]) -> _Found:
    """Unpack an archive, and return what `use` makes of the folder. Anybody may have made the
    archive, so whatever is wrong becomes a BadRun that says what.
    """
    with TemporaryDirectory(prefix="kvbench-") as folder:
        place = Path(folder)
        _unpack(file, place)
        try:
            return use(place)
        except (MemoryError, OutOfMemory):
            raise
        except KvbenchError as error:
            said = error.args[0].replace(folder, str(file))  # that folder is gone by then
        except Exception as error:  # any unforeseen error
            said = f"{file}: no score can be computed from it: {type(error).__name__}: {error}"
        raise BadRun(" ".join(said.split())[:300], _HINT)


def _unpack(file: Path, place: Path) -> None:
    try:
        found = archive.unpack(file, place, _LIMITS)
        if missing := {*_OWN, SEAL} - found:
            raise ValueError(f"it lacks {min(missing)}")
    except OSError as error:
        raise BadRun(f"{file} is not a submission: {error.strerror or error}", _HINT) from None
    except (ValueError, OverflowError) as error:
        raise BadRun(f"{file} is not a submission: {error}", _HINT) from None


def _refuse_more(run: Run) -> None:
    """Refuse more points and launches than a score has: they would take minutes."""
    plan, visits = run.manifest.plan, len(run.records)
    if len(plan.points) > _POINTS:
        raise BadRun(
            f"{run.path / MANIFEST} has {len(plan.points)} points; a score has at most {_POINTS}",
            _HINT,
        )
    if visits > len(plan.points) * _LAUNCHES:
        raise BadRun(
            f"{run.path / JOURNAL} has {visits} visits; a score has at most {_LAUNCHES} launches",
            _HINT,
        )

"""The files of a score: a run directory that is sealed when it is complete, and an archive of it that others may read.

score.json lies beside a run's own files: the version of the score, and digests of all files that it is made of.
"""

import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from kvbench import named
from kvbench.analysis.measured.machines import ceiling_rows, profile
from kvbench.errors import BadRun
from kvbench.model import Fact
from kvbench.report.redact import redact
from kvbench.results import Run, load
from kvbench.score import VERSION, Breach, Score, digest, score
from kvbench.store import RunDirectory, plain, read, write_json
from kvbench.store.files import read_json, reading, replacing, writing

SEAL, LONGER, ENDING = "score.json", "longer", ".tar.gz"
_OWN = ("manifest.json", "journal.jsonl", "machine.json")
_PARTS = (*_OWN, *(f"{LONGER}/{name}" for name in _OWN))
_MOST = 64 << 20  # bytes of a file in an archive
_HINT = "an archive that kvbench submit has written"


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


def scored(path: Path) -> Score:
    """Of a run directory, computed anew. What was changed since it was sealed makes it invalid."""
    if not holds(path):
        return _scored(path, Breach("unsealed", {}))
    then, own = _kept(path), f"{VERSION} #{digest()}"
    kept = f"{then.score} #{then.digest}"[:40]
    found = [Breach("files", {"name": name}) for name in _changed(path, then)]
    return _scored(path, *found, *([Breach("version", {"found": kept, "wanted": own})] if kept != own else []))


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


def _scored(path: Path, *more: Breach) -> Score:
    run, beside = load(path), path / LONGER
    longer = load(beside).records if (beside / _OWN[0]).is_file() else ()
    try:
        return score(run.manifest, run.machine, run.records, longer, more)
    except (KeyError, ArithmeticError) as error:
        raise BadRun(f"{path}: no score can be made of it: {error!r}", "name a run of kvbench score") from None


def _digests(path: Path) -> dict[str, str]:
    with reading(path):
        there = [name for name in _PARTS if (path / name).exists()]
        return {name: sha256(named.opened(path / name, follow=False).read()).hexdigest() for name in there}


def found_in(path: Path) -> Iterator[Path]:
    """Scores that a path names: a run, an archive, or what a folder that is no run holds of these."""
    if path.name.endswith(ENDING) or holds(path):
        yield path
    elif path.is_dir() and not (path / _OWN[0]).exists():
        yield from (each for each in sorted(path.iterdir()) if each.name.endswith(ENDING) or holds(each))


def of(path: Path) -> Score:
    """What found_in() has found."""
    return scored(path) if path.is_dir() else checked(path)


def pack(path: Path, out: Path, name: str) -> Score:
    """Without host names and paths. `name`: what the machine is called, in place of its CPU's name."""
    found = scored(path)
    if spoilt := [each for each in found.breaches if each.rule in ("unsealed", "version", "files")]:
        raise BadRun(f"{path} is no whole score: {spoilt[0].rule}", "kvbench score RUN says what is wrong with it")
    with TemporaryDirectory(prefix="kvbench-") as folder:
        place = Path(folder)
        _copy(load(path), place / "run", name)
        if (path / LONGER).is_dir():
            _copy(load(path / LONGER), place / "run" / LONGER, name)
        found = seal(place / "run")
        with writing(out, "then submit it again"), replacing(out, asked=True) as file:
            _pack(place / "run", file)
    return found


def _copy(run: Run, place: Path, name: str) -> None:
    manifest, machine, checks, records = redact(run.manifest, run.machine, run.checks, run.records)
    name = name or f"machine {machine.fingerprint[:6]}"
    machine = replace(machine, facts=machine.facts | {"brand": Fact(name, "named by its owner", "low")})
    with RunDirectory.create(place, manifest) as directory:
        for record in records:
            directory.append(record)
        found = replace(profile(machine, checks), ceilings=ceiling_rows(records, machine))
        directory.write_machine(plain(found))


def _pack(path: Path, file: IO[bytes]) -> None:
    """Of each file its name and content alone."""
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name in (*_PARTS, SEAL):
            if (path / name).is_file():
                member = tarfile.TarInfo(name)
                member.size = (path / name).stat().st_size
                with (path / name).open("rb") as content:
                    tar.addfile(member, content)


def checked(file: Path) -> Score:
    """Of an archive, as scored(). Anybody may have made it."""
    with TemporaryDirectory(prefix="kvbench-") as folder:
        try:
            _unpack(file, Path(folder))
        except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, OverflowError) as error:
            said = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise BadRun(f"{file} is no submission: {said}", _HINT) from None
        return scored(Path(folder))


def _unpack(file: Path, place: Path) -> None:
    left = {*_PARTS, SEAL}
    with named.opened(file) as packed, tarfile.open(fileobj=packed, mode="r:gz") as tar:
        for member in tar:
            if member.name not in left:
                raise ValueError(f"it holds {member.name[:60]!r}, which is no file of a score, or there twice")
            if member.type != tarfile.REGTYPE or member.issparse() or member.size > _MOST:
                raise ValueError(f"its {member.name} is no ordinary file of {_MOST >> 20} MiB at most")
            left.remove(member.name)
            (place / member.name).parent.mkdir(exist_ok=True)
            (place / member.name).write_bytes(tar.extractfile(member).read())
    if missing := left & {*_OWN, SEAL}:
        raise ValueError(f"it lacks {min(missing)}")

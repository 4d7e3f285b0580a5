"""Reads folders of machines, such as those in results/, and writes the Markdown pages that are made
of them. Each run is read and judged once.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import quote

from kvbench import named
from kvbench.analysis.means.engines import engines
from kvbench.analysis.means.standings import Allowed, Entry, described, swept
from kvbench.analysis.measured.columns import machine_name
from kvbench.errors import BadArgument, Unwritable
from kvbench.model import Machine
from kvbench.report.kept import KeptMachine, KeptRun, KeptScore
from kvbench.report.machine_page import MADE, page
from kvbench.report.marks import filled
from kvbench.report.parts import known, part
from kvbench.results import Run, load
from kvbench.score import NOISY, VALID, Score, widths, workload
from kvbench.store import write_text
from kvbench.store.files import writing
from kvbench.store.names import MANIFEST, SEAL
from kvbench.submission import found_in, with_run

README = "README.md"
_TABLES = ("gate/runs.csv", "engine-gate.csv")  # that `make` keeps beside runs
_REPORT = Path("report", "index.html")
_NAME = "name.txt"  # what its owner calls the CPU: a virtual machine may hide its name
_LONGEST = 60  # characters of that name
_HINT = "name folders of machines, as kvbench report results/* --tables does"
_AGAIN = "see whether it can be written and has room, then call kvbench report --tables again"
_COUNTS = (VALID, NOISY)  # states of scores that machines are ranked by


def machines_of(paths: Iterable[Path]) -> list[Path]:
    """The folders of machines among these paths, each once, by name. They lie in one folder, and
    all that lie there are among them: tables of some machines alone would be wrong.
    """
    given = list(dict.fromkeys(map(_named, paths)))
    for path in given:
        if not path.exists():
            raise BadArgument(f"there is no {path}", _HINT)
        if is_run(path):
            raise BadArgument(f"{path} is a run, and --tables takes folders of runs", _HINT)
    found = sorted(path for path in given if is_machine(path))
    if not found:
        raise BadArgument("--tables: no folder of a machine is named", _HINT)
    homes = sorted({path.parent for path in found})
    if len(homes) > 1:
        raise BadArgument(f"--tables: machines lie in {homes[0]} and in {homes[1]}", _HINT)
    others = (path for path in sorted(homes[0].iterdir()) if path not in found)
    if left := next(filter(is_machine, others), None):
        raise BadArgument(f"--tables: {left} lies beside them and is not named", _HINT)
    return found


def _named(path: Path) -> Path:
    """The path with a name and a parent: "." and ".." have neither."""
    found = Path(os.path.normpath(path))
    return found if found.name not in ("", "..") else found.resolve()


def is_run(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def is_machine(path: Path) -> bool:
    """Whether it is a folder with a run or a score in it."""
    if not path.is_dir() or is_run(path):
        return False
    return any(map(is_run, path.iterdir())) or any(found_in(path))


def read(folder: Path) -> KeptMachine:
    """All runs and scores of a machine. A sealed score is no run of its own."""
    opened = [(each.name, *with_run(each)) for each in found_in(folder)]
    places = [each for each in sorted(folder.iterdir()) if is_run(each)]
    loaded = {each.name: load(each) for each in places if not (each / SEAL).exists()}
    kept = [_kept(folder / name, run) for name, run in loaded.items()]
    runs = sorted(kept, key=lambda each: (not each.quick, not each.engines, each.name))
    own = loaded[runs[0].name].machine if runs else opened[0][2].machine
    owned = _owned(folder)
    entry = _entry(folder.name, opened, [(each, loaded[each.name]) for each in runs])
    return KeptMachine(
        name=folder.name,
        cpu=owned or machine_name(own),
        **{name: value for name, value in described(own).items() if name != "kind"},
        runs=tuple(runs),
        scores=tuple(KeptScore(name, score, _version(run)) for name, score, run in opened),
        entry=replace(entry, cpu=owned or entry.cpu) if entry else None,
        tables=tuple(name for name in _TABLES if (folder / name).is_file()),
        bits=widths(),
    )


def _kept(path: Path, run: Run) -> KeptRun:
    found = run.findings()
    table = engines(found.peers, run.records) if len(found.peers) else None
    return KeptRun(path.name, found, run.manifest, table, (path / _REPORT).is_file())


def _owned(folder: Path) -> str:
    """The name that the owner has given to the CPU; empty without one."""
    path = folder / _NAME
    if (text := _text(path)) is None:
        return ""
    name = text.strip()
    if not name or len(name) > _LONGEST or not name.isprintable():
        raise BadArgument(
            f"{path} is not a name", f"write one line of at most {_LONGEST} characters into it"
        )
    return name


def _version(run: Run) -> str:
    return run.manifest.versions.get("kvbench", "unknown")


# ---- a machine's line in the list of all machines ------------------------------------------------


def _entry(
    name: str,
    opened: Sequence[tuple[str, Score, Run]],
    runs: Sequence[tuple[KeptRun, Run]],
) -> Entry | None:
    """The Entry from the newest score that counts, else the newest run of `quick`."""
    vendor = next((word for _, run in runs if (word := _vendor(run.machine))), "")
    counting = [each for each in opened if each[1].state in _COUNTS]
    if counting:
        place, score, run = max(counting, key=lambda each: each[1].created)
        own: dict[str, Any] = {"place": place, "grade": score.state, "score": score.score}
        return Entry(machine=name, widths=tuple(_allowed(score)), **own, **_facts(run, vendor))
    sweeps = [each for each in runs if each[0].quick]
    for kept, run in sorted(sweeps, key=lambda each: each[1].manifest.created, reverse=True):
        if figures := swept(kept.found, widths(), workload()):
            grade = kept.found.answers.trust.grade
            own = {"place": kept.name, "grade": grade, "score": ""}
            return Entry(machine=name, widths=figures, **own, **_facts(run, vendor))
    return None


def _vendor(machine: Machine) -> str:
    fact = machine.facts.get("vendor")
    return str(fact.value) if fact and fact.value else ""


def _facts(run: Run, vendor: str) -> dict[str, Any]:
    return {
        "cpu": machine_name(run.machine),
        "version": _version(run),
        "created": run.manifest.created,
        **described(run.machine, vendor),
    }


def _allowed(score: Score) -> Iterator[Allowed]:
    for own in score.figures:
        yield Allowed(
            bits=own.bits,
            tokens=own.tuned.tokens,
            low=own.tuned.low,
            high=own.tuned.high,
            share=own.share,
            dtype=own.dtype,
            variant=own.variant,
            layout=own.layout,
        )


# ---- pages ---------------------------------------------------------------------------------------


def pages(folders: Sequence[Path]) -> dict[Path, str]:
    """The text of each page that is made of these machines, wholly or in its marked parts. Nothing
    is written.
    """
    home = folders[0].parent
    own = {folder / README: folder for folder in folders}
    for path in own:
        _refuse_written(path)
    beside = (path for path in sorted(home.glob("[!.]*.md")) if not path.is_dir())
    every = (Path(os.path.normpath(home / "..")) / README, *beside)
    texts = {path: text for path in every if (text := _text(path)) is not None}
    for path, text in texts.items():
        filled(path, text, known)
    found = {folder: read(folder) for folder in folders}
    machines = tuple(found.values())
    made = {
        path: filled(path, text, lambda mark: part(mark, machines, _way(mark.page, home)))
        for path, text in texts.items()
    }
    return made | {path: page(found[folder]) for path, folder in own.items()}


def write(made: Mapping[Path, str]) -> list[Path]:
    """Replace the pages that differ from these texts. None is replaced if one of their folders
    cannot be written.
    """
    changed = [path for path, text in made.items() if _text(path) != text]
    for path in changed:
        with _writing(path):
            TemporaryFile(dir=path.parent).close()
    for path in changed:
        with _writing(path):
            write_text(path, made[path])
    return changed


def _text(path: Path) -> str | None:
    """The text of a page with the line ends that it has; None if there is no such file."""
    try:
        return named.text(path, named.WRITTEN, follow=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadArgument(
            f"cannot read {path}: {error.strerror}", "pages are ordinary files in UTF-8"
        ) from None


def _refuse_written(path: Path) -> None:
    """Refuse to replace a page that this command has not made."""
    if (text := _text(path)) is not None and not text.startswith(MADE):
        raise BadArgument(
            f"{path} was not made by this command, and would be replaced",
            "move its text to another file",
        )


def _way(page: Path, home: Path) -> str:
    """The beginning of a page's links into the machines' folder."""
    way = os.path.relpath(home, page.parent)
    return "" if way == os.curdir else f"{quote(way)}/"


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        with writing(path):
            yield
    except Unwritable as error:
        raise Unwritable(error.args[0], _AGAIN) from None

"""The runs below a folder, each from its summary; from its journal if the summary is missing or
outdated.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from kvbench.analysis.measured.results import results
from kvbench.errors import BadArgument, BadRun
from kvbench.store import RunDirectory
from kvbench.store.files import reading
from kvbench.store.names import JOURNAL, MANIFEST
from kvbench.store.summary import Summary, read_summary, stamp
from kvbench.texts import printable

Tell = Callable[[str], None]
_MANY = 32  # journals that take long enough to tell the user


def summaries(root: Path, tell: Tell) -> tuple[dict[str, Summary], list[str]]:
    """Summaries by folder below the root; and what was left out, and why. Nothing is written."""
    if not root.is_dir():
        raise BadArgument(
            f"--root: {root} is not a folder",
            "give the folder of your runs with --root; kvbench sweep writes into runs/",
        )
    kept = {name: read_summary(root / name) for name in sorted(below(root))}
    if (journals := list(kept.values()).count(None)) >= _MANY:
        tell(f"reading {journals} journals: kvbench history add RUN... puts a summary beside each")
    found: dict[str, Summary] = {}
    # a run that occurs twice counts where it was found first
    first: dict[tuple[str, str], str] = {}
    notes = []
    for name, summary in kept.items():
        if name != name.encode(errors="replace").decode():
            notes.append(f"left out: the name of {printable(name)} is not UTF-8: rename it")
            continue
        try:
            own = summary or summarized(root / name)
        except BadRun as error:
            notes.append(f"left out: {error.args[0]}")
            continue
        if (there := first.setdefault((own.machine, own.run), name)) == name:
            found[name] = own
        else:
            notes.append(f"left out: {name} is the same run as {there}")
    return found, notes


def summarized(run: Path) -> Summary:
    """Summarize a run directory, finished or not, from its journal. Raises BadRun if it is not
    one.
    """
    with reading(run / JOURNAL):
        mark = stamp(run)  # taken before reading: records added meanwhile are not in the summary
        with RunDirectory.open(run) as found:
            return Summary.of(found.manifest, mark, results(found.records))


def below(root: Path) -> Iterator[str]:
    """Names of all folders below the root that hold a run. Names that begin with a dot are
    unfinished copies or foreign files.
    """
    for folder, inner, files in os.walk(root):
        if MANIFEST in files:
            inner.clear()
            yield str(Path(folder).relative_to(root))
        inner[:] = [name for name in inner if not name.startswith(".")]

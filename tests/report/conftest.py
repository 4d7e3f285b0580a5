"""Reports of made-up runs, written once for all tests; and a browser."""

import contextlib
import fcntl
import io
import os
import shutil
from functools import cache

import pytest

from kvbench.results import load
from tests.cli.test_cli import call
from tests.raw import ROOT
from tests.report import made

RUNS = {path.parent.name: path for path in sorted((ROOT / "results").glob("*/quick"))}


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """A function from a name and a filler to a filled folder. The first of the processes that
    test has filled.
    """
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def filled(name, fill):
        folder, done = root / name, root / f"{name}.done"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                fill(folder)
                done.touch()
        return folder

    return filled


@pytest.fixture(scope="session")
def rich(once):
    """A run directory with something for every part of a report."""
    return once("rich", lambda folder: made.directory(folder, made.whole(made.RICH), made.RICH))


@pytest.fixture(scope="session")
def report(once, rich):
    """The folder of its report."""
    return once("report", lambda folder: reported(folder, rich))


@pytest.fixture(scope="session")
def shown(once):
    """From the name of a shipped run to a folder with its page, and what commands print of it: the
    terminal's text, the JSON, `size` and `explain`.
    """
    return lambda name: once(f"shown-{name}", lambda folder: told_of(folder, RUNS[name]))


@pytest.fixture(scope="session")
def shipped(shown):
    """The folder of the report of a real run, whose first screen has all its parts."""
    return shown("zen4-kvm-2")


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A small run directory with secrets wherever they may stand."""
    points = [*made.decodes()[:2], *made.stores()[:1], *made.READS[:6]]
    records = [*made.whole(points, 6), *(made.failed(6, point, made.LEAK) for point in points[:2])]
    return made.directory(tmp_path_factory.mktemp("small") / "run", records, points, **made.SECRETS)


@pytest.fixture(scope="session")
def both(once, small):
    """The folder of a report of two runs."""
    return once("both", lambda folder: reported(folder, small, small, "--redact"))


@pytest.fixture(scope="session")
def past(once, tmp_path_factory):
    """The folder of a history's page, of a machine whose name nowhere breaks."""
    points = made.decodes()[:2]
    root = tmp_path_factory.mktemp("past")
    made.directory(root / "run", made.whole(points), points, versions={"cpu_model_name": 200 * "W"})
    return once("past", lambda folder: told(folder, root))


@pytest.fixture(scope="session")
def beside(once, tmp_path_factory):
    """The folder of a report with other engines beside ours, in two formats."""
    times = {made.FAST: 2.0, made.SLOW: 4.0}
    records = [*made.beside(times), *made.beside(times, dtype="i8"), *made.lost(made.DEAD)]
    points = list(dict.fromkeys(record.point for record in records))
    run = tmp_path_factory.mktemp("beside") / "run"
    made.directory(run, records, points, launches=6)
    return once("beside", lambda folder: reported(folder, run))


def told_of(folder, run):
    """Read and judge each run only once, because judging takes longer than drawing."""
    once_read = cache(load)
    with pytest.MonkeyPatch.context() as patch:
        for place in ("results", "sizing.known"):
            patch.setattr(f"kvbench.{place}.load", once_read)
        found = printed("report", run, "-o", folder)
        (folder / "terminal.txt").write_text(found)
        assert call("report", run, "--format", "json", "-o", folder / "run.json") == 0
        for command in ("size", "explain"):
            more = ("--context", 4096) if command == "size" else ()
            found = printed(command, "llama-3-8b", *more, "--machine", run)
            (folder / f"{command}.txt").write_text(found)


def printed(*arguments):
    """What a call prints on standard output, outside a test."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert call(*arguments) == 0
    return out.getvalue()


def told(folder, root):
    assert call("history", "show", "--root", str(root), "--report", str(folder)) == 0


def reported(folder, *arguments):
    assert call("report", *map(str, arguments), "-o", str(folder)) == 0


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[test]'"
    )
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if path is None:
        pytest.skip("no browser here: apt install chromium")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()

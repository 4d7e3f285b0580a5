"""Reports of made-up runs, written once for all tests; and a browser."""

import shutil

import pytest

from tests.report import made
from tests.test_cli import call


@pytest.fixture(scope="session")
def rich(tmp_path_factory):
    """A run directory with something for every part of a report."""
    return made.directory(tmp_path_factory.mktemp("rich") / "run", made.whole(made.RICH), made.RICH)


@pytest.fixture(scope="session")
def report(rich):
    """The folder of its report."""
    assert call("report", str(rich)) == 0
    return rich / "report"


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A run directory that is told of quickly, with secrets wherever they may stand."""
    points = [*made.decodes()[:2], *made.stores()[:1], *made.READS[:6]]
    records = [*made.whole(points, 6), *(made.failed(6, point, made.LEAK) for point in points[:2])]
    return made.directory(tmp_path_factory.mktemp("small") / "run", records, points, **made.SECRETS)


@pytest.fixture(scope="session")
def both(small, tmp_path_factory):
    """The folder of a report of two runs."""
    folder = tmp_path_factory.mktemp("both") / "report"
    assert call("report", str(small), str(small), "--redact", "-o", str(folder)) == 0
    return folder


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[test]'")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no browser here: apt install chromium")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()

"""A folder of runs whose steps are known."""

import shutil

import pytest

from tests.history import made


@pytest.fixture(scope="session")
def steady(tmp_path_factory):
    """A folder of runs with a step down and one up; the build changed with them, and the
    environment later.
    """
    root = tmp_path_factory.mktemp("history") / "runs"
    made.stepped(root)
    return root


@pytest.fixture
def root(steady, tmp_path):
    """One that may be changed."""
    shutil.copytree(steady, tmp_path / "runs")
    return tmp_path / "runs"

"""A folder of runs with known steps."""

import shutil

import pytest

from tests.history import made


@pytest.fixture(scope="session")
def steady(tmp_path_factory):
    """A folder of runs with a step down and a step up. The build changes with them, the environment
    later.
    """
    root = tmp_path_factory.mktemp("history") / "runs"
    made.stepped(root)
    return root


@pytest.fixture
def root(steady, tmp_path):
    """A copy of the folder that a test may change."""
    shutil.copytree(steady, tmp_path / "runs")
    return tmp_path / "runs"

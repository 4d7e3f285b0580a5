"""A place for a run, and one that is filled."""

import pytest

from kvbench.store import RunDirectory
from tests.store.made import manifest, visits


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def filled(folder):
    """A run of nine visits, closed."""
    with RunDirectory.create(folder, manifest()) as run:
        for record in visits():
            run.append(record)
    return folder

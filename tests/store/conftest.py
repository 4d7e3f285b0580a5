"""A folder for a run, and a folder with a run."""

import pytest

from kvbench.store import RunDirectory
from tests.store.made import manifest, visits


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def filled(folder):
    """A closed run of nine visits."""
    with RunDirectory.create(folder, manifest()) as run:
        for record in visits():
            run.append(record)
    return folder

"""Adding a run on a full disk."""

import os
from unittest.mock import Mock

import pytest

from kvbench.errors import Unwritable
from kvbench.history.whole import place
from tests.report import made

POINTS = made.READS[:1]


def test_a_full_disk_leaves_nothing_and_says_what_to_do(tmp_path, monkeypatch):
    run = made.directory(tmp_path / "run", made.whole(POINTS, 2), POINTS)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(Unwritable) as raised:
            place(tmp_path / "runs", run, print)
    assert raised.value.hint == "make room; then add it again" and not (tmp_path / "runs").exists()
    assert place(tmp_path / "runs", run, print)[0] == tmp_path / "runs" / "run"

"""What holds for every test."""

import os
import signal
from functools import cache
from pathlib import Path

import pytest

from kvbench.results import load
from tests.limits import advice

RESULTS = Path(__file__).resolve().parents[1] / "results"

signal.signal(
    signal.SIGINT, signal.default_int_handler
)  # jobs begun with & ignore it, and so would what is interrupted here


@pytest.fixture(scope="session", autouse=True)
def nobody_switches_the_machine_off():
    """Runs that are made up here need not be on the disk before a test goes on: that takes longer
    than to make them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_is_kept_for_the_user(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def kept_runs_are_read_once():
    """Where `size` and `explain` take one for a machine: to read and judge it takes a second."""
    kept = cache(lambda path, whole: load(path))

    def read(path):
        whole = Path(path).resolve()
        return kept(path, whole) if whole.is_relative_to(RESULTS) else load(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvbench.sizing.known.load", read)
        yield


@pytest.fixture(autouse=True)
def other_tests_are_no_news(monkeypatch):
    """Tests run side by side, so that commands would find the CPUs busy and say so."""
    monkeypatch.setattr("kvbench.machine.preflight.busy", lambda machine: 0.0)


@pytest.fixture(autouse=True)
def small_numbers_stay_what_they_are():
    """Whoever loads a library that was linked for fast math, or runs a kernel that sets the CPU's
    mode, would change what later tests of the same process compare.
    """
    yield
    assert float("5e-324") > 0, "the CPU takes small numbers for zero since this test"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that ran out of time says so, and how busy the machine is."""
    report = yield
    words = advice(call.excinfo.value) if call.excinfo else ""
    if words:
        report.sections.append(("time limit", words))
    return report

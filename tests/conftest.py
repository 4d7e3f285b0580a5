"""Fixtures for every test."""

import gc
import os
import signal
from functools import cache
from pathlib import Path

import pytest

from kvbench.cli import COLLECTED
from kvbench.results import load
from tests.limits import advice

RESULTS = Path(__file__).resolve().parents[1] / "results"

gc.set_threshold(*COLLECTED)  # as the program does

signal.signal(
    signal.SIGINT, signal.default_int_handler
)  # jobs started with & ignore SIGINT, and so would the processes that tests interrupt


@pytest.fixture(scope="session", autouse=True)
def nobody_switches_the_machine_off():
    """Do not wait for the disk: made-up runs need not survive a power cut, and syncing takes longer
    than making them.
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
    """Cache the run that `size` and `explain` take for a machine: reading and judging it takes a
    second.
    """
    kept = cache(lambda path, whole: load(path))

    def read(path):
        whole = Path(path).resolve()
        return kept(path, whole) if whole.is_relative_to(RESULTS) else load(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvbench.sizing.known.load", read)
        yield


@pytest.fixture(autouse=True)
def other_tests_are_no_news(monkeypatch):
    """Hide that CPUs are busy: tests run side by side, and commands would report it."""
    monkeypatch.setattr("kvbench.machine.preflight.busy", lambda machine: 0.0)


@pytest.fixture(autouse=True)
def small_numbers_stay_what_they_are():
    """Restore the CPU's floating-point mode. A library linked for fast math, or a kernel that sets
    the mode, would change the results of later tests.
    """
    yield
    assert float("5e-324") > 0, "the CPU takes small numbers for zero since this test"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Report a test that ran out of time, and how busy the machine is."""
    report = yield
    words = advice(call.excinfo.value) if call.excinfo else ""
    if words:
        report.sections.append(("time limit", words))
    return report

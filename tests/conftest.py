"""What holds for every test."""

import os
import signal

import pytest

from tests.limits import advice

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


@pytest.fixture(autouse=True)
def other_tests_are_no_news(monkeypatch):
    """Tests run side by side, so that commands would find the CPUs busy and say so."""
    monkeypatch.setattr("kvbench.machine.preflight.busy", lambda machine: 0.0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that ran out of time says so, and how busy the machine is."""
    report = yield
    words = advice(call.excinfo.value) if call.excinfo else ""
    if words:
        report.sections.append(("time limit", words))
    return report

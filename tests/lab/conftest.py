"""Experiments on memory so small that it takes no time."""

from dataclasses import replace

import pytest

from kvbench.lab.experiment import Setup
from kvbench.machine import describe
from kvbench.native import default_library


@pytest.fixture
def setup(monkeypatch):
    monkeypatch.setattr("kvbench.regime.FAR_BYTES", 1 << 18)
    machine, library = replace(describe(), caches=()), default_library()
    return Setup(machine, library, machine.allowed[:2], library.isa(None), 1)

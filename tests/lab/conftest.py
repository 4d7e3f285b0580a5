"""Experiments on memory so small that it takes no time, and with times that are made up where a test plants some."""

from dataclasses import replace

import pytest

from kvbench.lab import Asked
from kvbench.machine import describe
from kvbench.model import Sample
from kvbench.native import Cache, default_library

WOBBLE = (1.0, 1.001, 0.999, 1.002, 0.998)  # of rounds


@pytest.fixture
def asked(monkeypatch, tmp_path):
    monkeypatch.setattr("kvbench.regime.FAR_BYTES", 1 << 18)
    machine, library = replace(describe(), caches=()), default_library()
    return Asked(machine, library, machine.allowed[:2], library.isa(None), 1, tmp_path)


@pytest.fixture
def plant(monkeypatch):
    """Called with what tells the seconds of a pass, from the name of a program, its first cache, its bytes and the round."""

    def planted(seconds):
        def rounds(team, programs, samples, wanted, seed):
            for number in range(samples):
                for program in programs:
                    took = seconds(program.name, cache_of(program), program.traffic().compulsory, number)
                    took *= WOBBLE[number % len(WOBBLE)]
                    yield Sample(program.name, number, 4, 4 * took, (), 0.02, 0, 0)

        monkeypatch.setattr("kvbench.lab.measuring.rounds", rounds)

    return planted


def cache_of(program):
    return next(kept for kept in program.tasks[0]._keep if isinstance(kept, Cache))


def noisy(number, by=0.5):
    """What a round is longer or shorter by, as it comes."""
    return 1 + by * (-1) ** number

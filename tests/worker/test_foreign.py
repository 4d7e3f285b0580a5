"""A plug-in's kernel that beats every read of its rows gets no time. Times are made up, round by
round.
"""

import time
from threading import Thread
from types import SimpleNamespace

import pytest

from kvbench.errors import WrongAnswer
from kvbench.model import Sample
from kvbench.native import default_library, forms
from kvbench.worker.bench import watched
from kvbench.worker.foreign import ForeignDecoding, on_given_threads, unwritten
from kvbench.worker.ground import Ground
from tests.made_job import bench
from tests.worker.test_bench import DECODE


def measured(monkeypatch, faster):
    """`faster`: by program, how many times as fast as the others it is, round by round."""

    def rounds(programs, samples, seconds, seed):
        for number in range(samples):
            for program in programs:
                passes = len(program.tasks)
                program.team.run(*program.tasks, passes=passes)
                took = (
                    (program.traffic().bytes_compulsory or 1e6)
                    / 10e9
                    / faster.get(program.name, [1.0] * samples)[number]
                )
                yield Sample(program.name, number, passes, passes * took, (), 0.0, 0, 0)

    monkeypatch.setattr("kvbench.worker.bench.rounds", rounds)
    with (
        Ground(default_library()) as ground,
        bench(DECODE, ground, ForeignDecoding) as own,
    ):
        return own.measured(own.programs, 4, 0.001)


@pytest.mark.parametrize("rounds", [[3.0] * 4, [3.0, 3.0, 1.0, 3.0]])
def test_a_plug_in_that_beats_all_reads_is_suspect(monkeypatch, rounds):
    with pytest.raises(
        WrongAnswer, match=r"suspect: decode.*30 GB/s are .* times what reads of the same rows get"
    ):
        measured(monkeypatch, {"point": rounds})


@pytest.mark.parametrize(
    "faster",
    [
        {"point": [1.0] * 4},
        {"point": [1.2] * 4},  # as launches may differ
        {"point": [1.0, 3.0, 1.0, 3.0]},  # now and then
        {"point": [3.0] * 4, "ceiling_ahead": [3.0] * 4},  # one of the reads is as fast
    ],
)
def test_a_plug_in_that_does_not_beat_all_reads_is_measured(monkeypatch, faster):
    taken, error = measured(monkeypatch, faster)
    assert len(taken) == 4 * (5 + len(forms("read", default_library()))) and 0 < error < 1e-5


def test_time_for_digests_is_not_the_plug_in_s():
    """Two are timed in turn. A digest of many rows takes most of a visit's CPU time."""

    def busy():
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    def read():
        thread = Thread(target=busy)
        thread.start()
        thread.join()
        return b""

    one = SimpleNamespace(unwritten=lambda: unwritten(read), on_given_threads=on_given_threads)
    with watched([one, one]):
        pass
    with pytest.raises(WrongAnswer, match="in threads of its own"), watched([one, one]):
        read()

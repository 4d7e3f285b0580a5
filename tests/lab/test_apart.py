"""A process of an experiment: it never outlives who waits for it, and where it ends early that is one clear line."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from kvbench.errors import Refused
from kvbench.lab.apart import _answer, _end, apart

CPU = (min(os.sched_getaffinity(0)),)


def test_one_that_ends_without_an_answer():
    with pytest.raises(Refused, match="process of the experiment was killed by SIGKILL before") as caught:
        apart(CPU, signal.raise_signal, signal.SIGKILL)
    assert "memory" in caught.value.hint and caught.value.exit_code == 5
    assert not multiprocessing.active_children()


def test_how_one_ended():
    assert _end(3) == "ended with exit code 3" and _end(-15) == "was killed by SIGTERM"


def test_what_goes_wrong_keeps_its_traceback():
    found, answer = multiprocessing.Pipe(duplex=False)
    _answer(answer, divmod, (1, 0))
    good, error = found.recv()
    assert not good and isinstance(error, ZeroDivisionError) and "Traceback" in error.__notes__[0]


def test_an_interruption_does_not_wait_for_it(tmp_path):
    """It would take an hour; of a Ctrl-C, which a terminal sends to all, it takes no notice, and prints no traceback."""
    begun = tmp_path / "begun"

    def interrupt():
        deadline = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            apart(CPU, asleep, begun)
    finally:
        thread.join()
        signal.signal(signal.SIGTERM, before)
    assert not multiprocessing.active_children()
    assert begun.read_text() == "True"
    assert not {signal.SIGINT, signal.SIGTERM} & signal.pthread_sigmask(signal.SIG_BLOCK, ())


def asleep(begun):
    part = begun.with_suffix(".part")
    part.write_text(str(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    part.rename(begun)
    time.sleep(3600)

"""A call in a child process: the child never outlives the waiting process, and an early end gives
one clear line.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

from kvbench.apart import Ended, apart, kill_group
from kvbench.errors import BadArgument


def test_what_it_finds():
    assert apart(divmod, 7, 2) == (3, 1)


def test_one_that_leaves_a_child_behind():
    """The grandchild holds the output open: nobody waits for that."""
    with pytest.raises(Ended, match="ended with exit code 3"):
        apart(deserting, patience=30.0)


def deserting():
    if os.fork():
        os._exit(3)
    time.sleep(3600)


def test_what_has_left_the_group_of_a_process_ends_with_it():
    begin = ["/bin/sh", "-c", "setsid sleep 1000 & echo $!; wait"]
    with subprocess.Popen(begin, stdout=subprocess.PIPE, start_new_session=True) as child:
        left = os.pidfd_open(int(child.stdout.readline()))
        kill_group(child)
    assert select.select([left], [], [], 20.0)[0]
    os.close(left)


def test_what_goes_wrong_keeps_its_words():
    with pytest.raises(ZeroDivisionError) as caught:
        apart(divmod, 1, 0)
    assert "Traceback" in caught.value.__notes__[0]
    with pytest.raises(BadArgument) as caught:
        apart(refused)
    assert caught.value.args == ("a value is wrong",) and caught.value.hint == "another one"


def refused():
    raise BadArgument("a value is wrong", "another one")


@pytest.mark.parametrize("process", ["kvbench.apart", "kvbench.watched", "kvbench.worker"])
def test_one_that_is_asked_nothing_says_nothing(process):
    """Its parent was interrupted while starting it."""
    done = subprocess.run(
        [sys.executable, "-m", process], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_its_prints_are_no_answer(capfd):
    assert apart(os.write, 1, b"hello\n") == 6
    assert capfd.readouterr() == ("", "hello\n")


def test_an_interruption_does_not_wait_for_it(tmp_path):
    """The call would take an hour. Its children do not survive either."""
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
            apart(asleep, begun)
    finally:
        thread.join()
        signal.signal(signal.SIGTERM, before)
    deadline = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in begun.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asleep(begun):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    part = begun.with_suffix(".part")
    part.write_text(f"{os.getpid()} {child.pid}")
    part.rename(begun)
    time.sleep(3600)

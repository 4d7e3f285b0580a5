"""Code moved to fresh memory still works, and no file is mapped in its old place."""

import ctypes
import platform
import subprocess

import pytest

from kvbench.apart import apart
from kvbench.peers.code import mapped, place_anew

_SOURCE = """
static const int primes[4] = {2, 3, 5, 7};
static int calls;
int prime(int which) { calls++; return primes[which & 3]; }
int called(void) { return calls; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a folder")
    (folder / "primes.c").write_text(_SOURCE)
    command = ["cc", "-shared", "-fPIC", "-O1", folder / "primes.c", "-o", folder / "primes.so"]
    subprocess.run(command, check=True)
    return str(folder / "primes.so")


def moved(path):
    """The bytes moved; whether the file is mapped before and after; and the code's answer
    afterwards.
    """
    known = {each.file for each in mapped()}
    library = ctypes.CDLL(path)
    first = library.prime(1)
    before = path in {each.file for each in mapped()}
    size = place_anew(known)
    after = path in {each.file for each in mapped()}
    primes = [first, *(library.prime(which) for which in range(4))]
    return size, before, after, primes, library.called(), known & {each.file for each in mapped()}


def test_code_has_memory_of_its_own_and_does_the_same(library):
    """Mappings from before stay where they were."""
    size, before, after, primes, calls, known = apart(moved, library)
    assert before and primes == [3, 2, 3, 5, 7] and calls == 5 and known
    if platform.machine() == "x86_64":
        assert size > 0 and not after
    else:
        assert size == 0 and after

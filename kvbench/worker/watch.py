"""What foreign code may have done to its process: looked for behind every run of it."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from kvbench.errors import WrongAnswer
from kvbench.native import Cache
from kvbench.units import counted

_OTHERS = 0.1  # share of the process's CPU time that threads which have ended may have used,
_LEAST = 0.02  # or seconds of it, whichever is more
_MOMENT = 0.2  # seconds until a thread that was joined is gone


@contextmanager
def watched(read: Callable[[], bytes]) -> Iterator[None]:
    """Around runs of a plug-in's kernel. read: a digest of what it must not write."""
    before, threads, process = read(), _threads(), time.process_time()
    seconds = _seconds(threads)
    yield
    process = time.process_time() - process
    own = sum(end - seconds[thread] for thread, end in _seconds(seconds).items())
    if left := _new(threads):
        raise _wrong(f"leaves {counted(len(left), 'thread')} behind")
    if process - own > max(_LEAST, _OTHERS * process):
        raise _wrong(f"spends {process - own:.2g} of {process:.2g} CPU seconds in threads of its own")
    if read() != before:
        raise _wrong("writes to what it reads: the cache, its description or the queries")


def described(cache: Cache) -> Iterator[Any]:
    """What a kernel is told of a cache, beside its bytes."""
    yield cache.library.ffi.buffer(cache.struct)
    yield cache.lengths
    if cache.table is not None:
        yield np.ascontiguousarray(cache.table)


def _wrong(what: str) -> WrongAnswer:
    return WrongAnswer(f"the plug-in {what}", "abi.h says at kvb_work what a kernel may do")


def _new(threads: set[int]) -> set[int]:
    """Threads that were not there before."""
    end = time.monotonic() + _MOMENT
    while (found := _threads() - threads) and time.monotonic() < end:
        time.sleep(_MOMENT / 20)
    return found


def _seconds(threads: Iterable[int]) -> dict[int, float]:
    """CPU time of each thread that is there."""
    found = {}
    for thread in threads:
        with suppress(OSError):
            found[thread] = time.clock_gettime(~thread << 3 | 6)  # Linux: the clock of a thread's CPU time
    return found


def _threads() -> set[int]:
    return set(map(int, os.listdir("/proc/self/task")))

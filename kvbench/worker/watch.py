"""What foreign code may have done to its process: looked for behind every run of it."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import psutil

from kvbench.errors import WrongAnswer
from kvbench.native import Cache
from kvbench.units import counted

_OTHERS = 0.1  # of the process's CPU time may be that of threads which are not there any more, and
_LEAST = 0.02  # seconds of it


@contextmanager
def watched(read: Callable[[], bytes]) -> Iterator[None]:
    """Around runs of a plug-in's kernel. read: a digest of what it must not write."""
    before, threads, process = read(), _threads(), time.process_time()
    seconds = _seconds(threads)
    yield
    process, now = time.process_time() - process, _threads()
    own = sum(end - seconds[thread] for thread, end in _seconds(seconds).items())
    if left := len(now.keys() - threads.keys()):
        raise _wrong(f"leaves {counted(left, 'thread')} behind")
    if now.items() - threads.items():
        raise _wrong("moves threads to other CPUs")
    if children := psutil.Process().children(recursive=True):
        raise _wrong(f"leaves {len(children)} of its own processes behind")
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


def _seconds(threads: Iterable[int]) -> dict[int, float]:
    """CPU time of each thread that is there."""
    found = {}
    for thread in threads:
        with suppress(OSError):
            found[thread] = time.clock_gettime(~thread << 3 | 6)  # Linux: the clock of a thread's CPU time
    return found


def _threads() -> dict[int, frozenset[int]]:
    """The CPUs of every thread of this process. Some may be about to end."""
    found = {}
    for thread in map(int, os.listdir("/proc/self/task")):
        with suppress(ProcessLookupError):
            found[thread] = frozenset(os.sched_getaffinity(thread))
    return found

"""Work with NumPy's products on some CPUs: a process of its own does it, for NumPy counts them when it is loaded."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any


def apart(cpus: Sequence[int], call: Callable[..., Any], *args: Any) -> Any:
    """What `call` returns or raises. It and its arguments travel, so that it has to be a module's function."""
    with _on(cpus), ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(call, *args).result()


@contextmanager
def _on(cpus: Sequence[int]) -> Iterator[None]:
    """This thread, and the processes that it starts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

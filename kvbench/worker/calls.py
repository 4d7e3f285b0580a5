"""Times whole calls of Python, as experiments make them: in a round each is made once, in an order drawn anew."""

import random
from collections.abc import Callable, Mapping
from time import perf_counter


def timed(calls: Mapping[str, Callable[[], object]], rounds: int, seed: int = 0) -> dict[str, list[float]]:
    """Seconds of each call in every round, after an untimed one."""
    shuffled, taken = random.Random(seed), {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name in shuffled.sample(list(calls), len(calls)):
            start = perf_counter()
            calls[name]()
            taken[name].append(perf_counter() - start)
    return taken

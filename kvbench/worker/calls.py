"""Times whole calls of Python, as experiments make them: in a round each is made once, in an order drawn anew."""

import random
from collections.abc import Callable, Mapping
from time import perf_counter


def timed(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    seed: int = 0,
    ready: Callable[[str], object] = lambda name: None,
) -> dict[str, list[float]]:
    """Seconds of each call in every round, after an untimed one. `ready` is told the name before each call, untimed."""
    shuffled, taken = random.Random(seed), {name: [] for name in calls}
    for name, call in calls.items():
        ready(name)
        call()
    for _ in range(rounds):
        for name in shuffled.sample(list(calls), len(calls)):
            ready(name)
            start = perf_counter()
            calls[name]()
            taken[name].append(perf_counter() - start)
    return taken

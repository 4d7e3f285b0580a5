"""Which samples something else took part in."""

from dataclasses import dataclass

from kvbench.model import Sample


@dataclass(frozen=True, slots=True)
class Limits:
    """Every threshold: what a sample may meet and still count as undisturbed. They are judgement."""

    steal: float = 0.01  # of the threads' time, taken by a hypervisor
    switches: float = 1.0  # involuntary, for each thread: a kernel thread's turn is short, a second is somebody's work
    faults: float = 0.0  # all memory was touched before: pages move, or are read back from disk
    throttled: int = 0


LIMITS = Limits()


def disturbed(sample: Sample, threads: int) -> bool:
    return (
        sample.steal > LIMITS.steal * sample.seconds * threads
        or sample.throttled > LIMITS.throttled
        or sample.switches > LIMITS.switches * threads
        or sample.faults > LIMITS.faults * threads
    )

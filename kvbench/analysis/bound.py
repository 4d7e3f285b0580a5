"""What limits a point, from how close it comes to what its reads and its core alone would allow."""

CLOSE = 0.90  # of a witness: at it
SKEW = 0.10  # the slowest thread's lead over the mean: waiting, not working


def bound(efficiency: float | None, core_fraction: float | None, thread_skew: float) -> str:
    """memory: at the twin. core: at the core roof. scheduling: far from both while threads wait for each other."""
    if efficiency is None or core_fraction is None:
        return "unknown"
    if max(efficiency, core_fraction) >= CLOSE:
        return "memory" if efficiency >= core_fraction else "core"
    return "scheduling" if thread_skew > SKEW else "unknown"

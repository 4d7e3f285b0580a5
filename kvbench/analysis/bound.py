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


def evidence(witness: str | None, efficiency: float | None, core_fraction: float | None, thread_skew: float) -> str:
    """The numbers behind it, for a point beside its `witness`: a form of the twin of a decode, or of a store's copy."""
    named = (witness or "").partition("_")[0]
    said = ["nothing was measured beside it" if efficiency is None else f"{efficiency:.0%} of its {named}"]
    said.append("no core roof" if core_fraction is None else f"{core_fraction:.0%} of its core roof")
    if thread_skew:  # none of a single thread
        said.append(f"slowest thread {thread_skew:.0%} over the mean")
    return ", ".join(said)

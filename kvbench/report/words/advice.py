"""The last sentence of a profile: what limits the kernel here, and what to try."""

from kvbench.analysis.limits.profile import Profile


def advice(facts: Profile) -> str:
    if facts.point.op != "decode":
        return _of_stores(facts)
    reads, core, point = facts.efficiency, facts.core_fraction, facts.point
    if facts.bound == "memory":
        return (
            f"Reads limit this kernel: it runs at {_share(reads)} of plain reads of the same rows. "
            "Try a format with fewer bytes, such as --dtype i8, or see whether more --threads read faster."
        )
    if facts.bound == "core":
        return (
            f"The core limits this kernel: it runs at {_share(core)} of its speed in a private cache. "
            "Try another --variant or --dtype, or more --threads."
        )
    if facts.bound == "scheduling":
        return (
            f"Waiting limits this kernel: the slowest thread works {facts.thread_skew:.0%} longer than the mean. "
            "Try fewer --threads, other --cpus, or a larger --batch."
        )
    if reads is None or core is None:
        return (
            "What limits this kernel is unknown: other work changed the length of the samples. "
            "Stop it, or try --sample-time 0.1."
        )
    if max(reads, core) > 1:
        return (
            f"What limits this kernel is unknown: it is faster than {'the core roof' if core > reads else 'its reads'}, "
            "which should limit it. Try --samples 48 on an idle machine."
        )
    other = "--variant dot" if point.variant == "flash" else "--variant flash"
    return (
        f"Neither the reads ({_share(reads)}) nor the core ({_share(core)}) limit this kernel alone: they overlap only "
        f"in part. Try kvbench tune, {other}, or another number of --threads."
    )


def _of_stores(facts: Profile) -> str:
    said = f"It stores as fast as {_share(facts.copy_fraction)} of a copy of as many bytes."
    if isinstance(facts.other_gbps, float) and facts.other_gbps > facts.gbps:
        return f"{said} Try --variant {'plain' if facts.point.variant == 'nt' else 'nt'}: {facts.other_gbps:.3g} GB/s."
    return f"{said} Try --layout position or a format with fewer bytes."


def _share(value: float | None) -> str:
    return "an unknown share" if value is None else f"{value:.0%}"

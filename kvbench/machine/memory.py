"""Memory that this process may still take."""

from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def available_memory(cgroup: Path = _CGROUP) -> int:
    """Bytes: what the system has available, or what the control group leaves, whichever is less."""
    free = psutil.virtual_memory().available
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            free = min(free, int((cgroup / limit).read_text()) - int((cgroup / used).read_text()))
        except (OSError, ValueError):
            continue  # no such group, or "max"
    return max(0, free)

"""What a kernel did wrong, in a few words."""

from typing import Any


class Wrong(Exception):
    """Raised by a check and turned into the kernel's result."""


def require(right: Any, complaint: str) -> None:
    if not right:
        raise Wrong(complaint)

"""Types of the C values that leave this folder; cffi has none. The fields of a struct are listed
only in abi.h. Python reads numbers from them.
"""

from typing import Protocol, Self


class Address(Protocol):
    """A pointer."""

    def __add__(self, count: int, /) -> Self:
        """The address `count` bytes further on."""


class Plane(Protocol):
    """A kvb_plane."""

    tensor: float
    channel: Address

    def __getattr__(self, name: str) -> int:
        """Read a field."""


class Struct(Protocol):
    """A kvb_cache."""

    k: Plane
    v: Plane

    def __getattr__(self, name: str) -> int:
        """Read a field."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field."""

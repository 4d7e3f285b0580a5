"""Types of the C values that leave this folder, for cffi has no types. abi.h alone lists the fields
of a struct; Python reads only numbers from them.
"""

from typing import Protocol, Self


class Address(Protocol):
    """A pointer."""

    def __add__(self, count: int, /) -> Self:
        """So many bytes on."""


class Plane(Protocol):
    """A kvb_plane."""

    tensor: float
    channel: Address

    def __getattr__(self, name: str) -> int:
        """A field."""


class Struct(Protocol):
    """A kvb_cache."""

    k: Plane
    v: Plane

    def __getattr__(self, name: str) -> int:
        """A field."""

    def __setattr__(self, name: str, value: object) -> None:
        """Sets a field."""

"""What a `with` closes at its end."""

from typing import Self


class Closing:
    """Subclasses have close()."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

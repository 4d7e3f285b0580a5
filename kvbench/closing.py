"""What a `with` closes at its end."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Self


class Closing(ABC):
    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """At the end of the `with`, however that ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Owner(Closing):
    """What holds memory, threads or tasks, and gives all of it back at its end, or at once where it
    cannot be made. Subclasses put what they own into `_owned`, in `_prepare()`.
    """

    def __init__(self) -> None:
        self._owned = ExitStack()
        try:
            self._prepare()
        except BaseException:
            self._owned.close()
            raise

    @abstractmethod
    def _prepare(self) -> None:
        """Take it."""

    def close(self) -> None:
        self._owned.close()

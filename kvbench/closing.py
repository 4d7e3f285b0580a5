"""Objects that a `with` closes at its end."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import Self


class Closing(ABC):
    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give everything back; called when the `with` ends for any reason."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Owner(Closing):
    """An owner of memory, threads or tasks. It gives all of them back at its end, or at once if it
    cannot be made. Subclasses put what they own into `_owned` in `_prepare()`.
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
        """Acquire what the object owns."""

    def close(self) -> None:
        self._owned.close()

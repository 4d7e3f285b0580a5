"""What holds memory, threads or tasks, and gives all of it back at its end, or at once where it cannot be made."""

from contextlib import ExitStack

from kvbench.closing import Closing


class Owner(Closing):
    """Subclasses put what they own into `_owned`, in `_prepare()`."""

    def __init__(self) -> None:
        self._owned = ExitStack()
        try:
            self._prepare()
        except BaseException:
            self._owned.close()
            raise

    def _prepare(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._owned.close()

"""One op on given arguments, checked and planned once, run as often as wanted."""

from typing import Any

from kvbench.closing import Closing
from kvbench.errors import BadArgument
from kvbench.model import Traffic
from kvbench.native.library import Library


class Task(Closing):
    """`make` is one of the library's kvb_task_… functions, called with `args` and a place for the new task.

    `keep` names whatever C memory the task reaches (structs, arrays, arenas): it lives as long as the task.
    """

    def __init__(self, library: Library, make: Any, *args: Any, keep: tuple[Any, ...] = ()) -> None:
        ffi, lib = library.ffi, library.lib
        made = ffi.new("kvb_task **")
        library.check(make(*args, made))
        self.library = library
        self._keep = (*args, *keep)
        self._task = ffi.gc(made[0], lambda task: lib.kvb_task_free(task))

    def close(self) -> None:
        if self._task is not None:
            self.library.ffi.release(self._task)
            self._task = None
            self._keep = ()

    @property
    def pointer(self) -> Any:
        """The `kvb_task *`."""
        if self._task is None:
            raise BadArgument("the task is closed", "make another one")
        return self._task

    def traffic(self) -> Traffic:
        """What one pass moves and computes."""
        traffic = self.library.ffi.new("kvb_traffic *")
        self.library.check(self.library.lib.kvb_task_traffic(self.pointer, traffic))
        return Traffic(**{name: getattr(traffic, name) for name in Traffic.__dataclass_fields__})

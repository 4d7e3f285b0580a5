"""A process that leads a process group: the group is stopped, woken and ended together. The end of
what it prints is kept.
"""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Thread

from kvbench.apart import Ear, ending, kill_group
from kvbench.closing import Owner

_KEPT = 1 << 16  # bytes of output that are kept, the last ones
_SHOWN = 200  # characters of a printed line that are shown
_FRAME = re.compile(r"^#\d+ |^\d+: 0x|\[0x[0-9a-f]+\]$|^File \"")  # a line of a stack trace
_TELLS = re.compile(r"assert|error|fatal|fail|not .*support|what\(\)", re.IGNORECASE)
_SOON = 1.0  # seconds within which a dead process's output is read
# The guard reads until the process that started it ends, for any reason; then it kills the group.
_GUARD = "read -r line; kill -s KILL -- -{group}"


class Group(Owner):
    """A group leader that ends when the process that started it ends, for any reason. Raises
    OSError if the command cannot be started.
    """

    def __init__(
        self, command: Sequence[str], files: Sequence[int], environment: Mapping[str, str]
    ) -> None:
        """files: descriptors that the group gets too. environment: added to this process's own."""
        self._how, self._printed = (command, files, environment), b""
        super().__init__()

    def _prepare(self) -> None:
        command, files, environment = self._how
        prints, to = os.pipe()
        self._reader = Thread(target=self._read, args=(prints,), daemon=True)
        self._reader.start()
        try:
            self._leader = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=to,
                stderr=to,
                env={**os.environ, **environment},
                pass_fds=files,
                process_group=0,
            )
        finally:
            os.close(to)
        self._owned.callback(kill_group, self._leader)
        self._ear = Ear(self._leader)
        self._owned.callback(self._ear.close)
        self.ready = self._ear.ready
        self._guard()
        # Before the guard does it: the guard misses processes that have left the group.
        self._owned.callback(kill_group, self._leader)

    def _guard(self) -> None:
        """Start the guard. The system ends the leader with this process, but not processes that it
        has forked.
        """
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD.format(group=self._leader.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it survives the end of this process's group
        )
        self._owned.enter_context(guard)

    def say(self, line: bytes) -> None:
        """Write to the leader's standard input, and close it."""
        with suppress(OSError):  # it is dead; ending() says why
            assert self._leader.stdin  # stdin=PIPE was given
            with self._leader.stdin as to:
                to.write(line)

    def signal(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._leader.pid, which)

    def ending(self, patience: float) -> str:
        """How the leader ended, with what it printed about that; empty if it still runs."""
        try:
            how = ending(self._leader.wait(patience))
        except subprocess.TimeoutExpired:
            return ""
        self.signal(signal.SIGKILL)
        self._reader.join(_SOON)
        return how + _telling(self._printed.decode(errors="replace"))

    def _read(self, prints: int) -> None:
        """Read what is printed, and keep only the end: a flood fills neither disk nor memory."""
        with open(prints, "rb", buffering=0) as end:
            while got := end.read(1 << 16):
                self._printed = (self._printed + got)[-_KEPT:]


def _telling(printed: str) -> str:
    said = [line.strip() for line in printed.splitlines()]
    lines = [line for line in said if line and not _FRAME.search(line)]
    telling = [line for line in lines if _TELLS.search(line)] or lines[-1:]
    shown = dict.fromkeys([*telling[:1], *telling[-1:]])  # an abort's reason comes before it
    return "".join(f": {line[:_SHOWN]}" for line in shown)

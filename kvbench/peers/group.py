"""A process that leads a group of its own: what it begins is stopped, woken and ended with it. Of
what they print the end is kept.
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
from kvbench.leftovers import end_descendants

_KEPT = 1 << 16  # bytes of what was printed last
_SHOWN = 200  # characters of a line that was printed
_FRAME = re.compile(r"^#\d+ |^\d+: 0x|\[0x[0-9a-f]+\]$|^File \"")  # of a trace of calls
_TELLS = re.compile(r"assert|error|fatal|fail|not .*support|what\(\)", re.IGNORECASE)
_SOON = 1.0  # seconds until what a dead process has printed is read
# It reads until the process that began it ends, in whatever way; then it kills the group.
_GUARD = "read -r line; kill -s KILL -- -{group}"


class Group(Owner):
    """It ends with the process that began it, in whatever way that ends. OSError where the command
    cannot be begun.
    """

    def __init__(
        self, command: Sequence[str], files: Sequence[int], environment: Mapping[str, str]
    ) -> None:
        """files: descriptors that it has, too. environment: beside this process's own."""
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
        self._owned.callback(self._end)

    def _end(self) -> None:
        """With whom it has forked, though that has left the group. Where the leader is dead by
        itself, nobody finds them.
        """
        if self._leader.poll() is None:
            end_descendants(self._leader.pid)

    def _guard(self) -> None:
        """The system ends the leader with this process, but nobody whom it has forked."""
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD.format(group=self._leader.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what ends this process's own group spares it
        )
        self._owned.enter_context(guard)

    def say(self, line: bytes) -> None:
        """On its standard input, which ends with that."""
        with suppress(OSError):  # it is dead: its end says why
            assert self._leader.stdin  # it was asked for
            with self._leader.stdin as to:
                to.write(line)

    def signal(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._leader.pid, which)

    def ending(self, patience: float) -> str:
        """How the leader ended, with what was printed of that; empty where it goes on."""
        try:
            how = ending(self._leader.wait(patience))
        except subprocess.TimeoutExpired:
            return ""
        self.signal(signal.SIGKILL)
        self._reader.join(_SOON)
        return how + _telling(self._printed.decode(errors="replace"))

    def _read(self, prints: int) -> None:
        """A flood fills no disk and no memory."""
        with open(prints, "rb", buffering=0) as end:
            while got := end.read(1 << 16):
                self._printed = (self._printed + got)[-_KEPT:]


def _telling(printed: str) -> str:
    said = [line.strip() for line in printed.splitlines()]
    lines = [line for line in said if line and not _FRAME.search(line)]
    telling = [line for line in lines if _TELLS.search(line)] or lines[-1:]
    shown = dict.fromkeys([*telling[:1], *telling[-1:]])  # an abort is the last, its reason not
    return "".join(f": {line[:_SHOWN]}" for line in shown)

"""The process of a peer, asked through a pipe. From the first question on, the process and its
children run only while a question is open, and are stopped otherwise. So spinning threads take no
core from others.
"""

import json
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import kvbench
from kvbench.closing import Closing
from kvbench.errors import BadArgument, KvbenchError
from kvbench.peers import begin
from kvbench.peers.builds import engine_of
from kvbench.peers.group import Group
from kvbench.peers.interface import Peer

_MOST = 1 << 28  # bytes of an answer
_PATIENCE = 60.0  # seconds that an interpreter may take to report what it has


class Failed(KvbenchError):
    """A peer's process died, hangs or reports an error. `process`: that process."""

    def __init__(self, message: str, process: "Process") -> None:
        super().__init__(message, "only this peer's rows are lost")
        self.process = process

    def __reduce__(self) -> Any:  # a process cannot be pickled
        return KvbenchError, (self.args[0], self.hint)


class Process(Closing):
    """A peer's process. `name`: its name in messages. `python`: its interpreter, "" for this one.
    It ends with the thread that started it.
    """

    def __init__(
        self,
        name: str,
        kind: type[Peer],
        python: str,
        cpus: tuple[int, ...],
        patience: float,
        environment: dict[str, str] | None = None,
        files: tuple[int, ...] = (),
    ) -> None:
        self.name, self._patience = name, patience
        self.where = f"{kind.__module__}:{kind.__qualname__}"
        self._pipe, other = Pipe()
        asked = {
            "pipe": other.fileno(),
            "parent": os.getpid(),
            "cpus": cpus,
            "packages": [_lies("kvbench"), *_beside(kind)],
        }
        command = [python or sys.executable, "-P", begin.__file__]
        try:
            with other:
                self._group = Group(command, (other.fileno(), *files), environment or {})
        except OSError as error:
            self._pipe.close()
            raise self.failed(f"{error.filename}: {error.strerror}") from None
        _give_up(self._pipe.fileno(), patience)
        self._group.say(f"{json.dumps(asked)}\n".encode())

    def ask(self, *what: Any) -> Any:
        """Call a method of Child with these arguments, and return its answer."""
        self._group.signal(signal.SIGCONT)
        with suppress(OSError):  # it is dead or hangs; _received() says which
            self._pipe.send(what)
        try:
            return self._received()
        finally:
            self._group.signal(signal.SIGSTOP)

    def close(self) -> None:
        self._group.close()
        self._pipe.close()

    def _received(self) -> Any:
        """Read an answer. Treat it with care: the engine may have written anything."""
        end = time.monotonic() + self._patience
        try:
            if not self._group.ready(self._pipe.fileno(), select.POLLIN, end):
                raise EOFError
            good, found = pickle.loads(self._pipe.recv_bytes(_MOST))
        except (TimeoutError, BlockingIOError):
            said = f"no sign of life for {self._patience:g} s: it hangs"
            raise self.failed(said) from None
        except (EOFError, ConnectionError):
            how = self._group.ending(self._patience)
            said = f"its process {how}" if how else "it closed its pipe, but still runs"
            raise self.failed(said) from None
        except Exception as error:  # noqa: BLE001  # not a valid answer
            raise self.failed(f"its answer is not valid: {error}") from None
        if not good:
            raise self.failed(found)
        return found

    def failed(self, what: str) -> Failed:
        return Failed(f"the peer {self.name}: {what}", self)


def _give_up(pipe: int, seconds: float) -> None:
    """Make reads and writes fail with BlockingIOError after `seconds`."""
    whole = int(seconds)
    limit = struct.pack("ll", whole, int((seconds - whole) * 1e6))
    with socket.socket(fileno=os.dup(pipe)) as own:
        for which in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            own.setsockopt(socket.SOL_SOCKET, which, limit)


def elsewhere(word: str, kind: type[Peer], path: str, python: str) -> tuple[str, str, str]:
    """Call told() for an engine in another interpreter."""
    cpus = tuple(os.sched_getaffinity(0))
    try:
        with Process(word, kind, python, cpus, _PATIENCE) as process:
            found: tuple[str, str, str] = process.ask("about", process.where, path)
            return found
    except Failed as failure:
        hint = f"give a Python that has {engine_of(word)} and NumPy"
        raise BadArgument(failure.args[0], hint) from None


def _beside(kind: type[Peer]) -> list[tuple[str, str, list[str] | None]]:
    """The folders with the package of a third-party peer."""
    top = kind.__module__.partition(".")[0]
    return [] if top == kvbench.__name__ else [_lies(top)]


def _lies(package: str) -> tuple[str, str, list[str] | None]:
    module = sys.modules[package]
    folders = getattr(module, "__path__", None)
    return package, str(Path(module.__file__ or "")), None if folders is None else list(folders)

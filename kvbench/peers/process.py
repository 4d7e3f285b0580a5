"""The process of a peer, and what it is asked through a pipe. It leads a group of its own, with
what its engine begins; the group runs while it is asked something, and is stopped for all other
time: what spins in it takes no core from anybody.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any

import kvbench
from kvbench.apart import ending, kill_group
from kvbench.closing import Closing
from kvbench.errors import KvbenchError
from kvbench.peers import begin
from kvbench.peers.interface import Peer

_SHOWN = 200  # characters of a line that it printed
_FRAME = re.compile(r"^#\d+ |^\d+: 0x|\[0x[0-9a-f]+\]$|^File \"")  # of a trace of calls
_TELLS = re.compile(r"assert|error|fatal|fail|not .*support|what\(\)", re.IGNORECASE)
_PATIENCE = 60.0  # seconds that an interpreter may take to say what it has


class Failed(KvbenchError):
    """A peer's process died, hangs or says what is wrong. `process`: the one that did."""

    def __init__(self, message: str, process: "Process") -> None:
        super().__init__(message, "its rows alone are lost")
        self.process = process

    def __reduce__(self) -> Any:  # a process does not travel
        return KvbenchError, (self.args[0], self.hint)


class Process(Closing):
    """`name`: what messages call it. `python`: its interpreter, "" of this one. It ends with the
    thread that began it.
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
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  # close() does
        self._pipe, other = Pipe()
        asked = {
            "pipe": other.fileno(),
            "parent": os.getpid(),
            "cpus": cpus,
            "packages": [_lies("kvbench"), *_beside(kind)],
        }
        try:
            self._process = subprocess.Popen(
                [python or sys.executable, "-P", begin.__file__],
                stdin=subprocess.PIPE,
                stdout=self._said,
                stderr=self._said,
                env={**os.environ, **(environment or {})},
                pass_fds=[other.fileno(), *files],
                process_group=0,
            )
        except OSError as error:
            self._pipe.close()
            self._said.close()
            raise self._failed(f"its interpreter {python}: {error.strerror}") from None
        finally:
            other.close()
        with suppress(OSError):  # it is dead: its end says why
            assert self._process.stdin  # it was asked for
            with self._process.stdin as line:
                line.write(f"{json.dumps(asked)}\n".encode())

    def ask(self, *what: Any) -> Any:
        """A method of Child, and what it takes."""
        self._signal(signal.SIGCONT)
        with suppress(OSError):  # it is dead: its end says why
            self._pipe.send(what)
        try:
            return self._receive()
        finally:
            self._signal(signal.SIGSTOP)

    def close(self) -> None:
        kill_group(self._process)
        self._pipe.close()
        self._said.close()

    def _signal(self, which: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, which)

    def _receive(self) -> Any:
        try:
            if not wait([self._pipe], self._patience):
                raise self._failed(f"no sign of life for {self._patience:g} s: it hangs")
            good, found = self._pipe.recv()
        except (EOFError, OSError):
            raise self._failed(
                f"its process {ending(self._process.wait())}{self._last()}"
            ) from None
        except Failed:
            raise
        except Exception as error:  # noqa: BLE001  # an answer that is none
            raise self._failed(f"it said something else: {error}") from None
        if not good:
            raise self._failed(found)
        return found

    def _failed(self, what: str) -> Failed:
        return Failed(f"the peer {self.name}: {what}", self)

    def _last(self) -> str:
        self._said.seek(0)
        said = [line.strip() for line in self._said.read().splitlines()]
        lines = [line for line in said if line and not _FRAME.search(line)]
        telling = [line for line in lines if _TELLS.search(line)] or lines[-1:]
        shown = dict.fromkeys([*telling[:1], *telling[-1:]])  # an abort is the last, its reason not
        return "".join(f": {line[:_SHOWN]}" for line in shown)


def elsewhere(kind: type[Peer], path: str, python: str) -> tuple[str, str, str]:
    """As told(), of an engine in another interpreter."""
    cpus = tuple(os.sched_getaffinity(0))
    with Process(kind.__name__, kind, python, cpus, _PATIENCE) as process:
        found: tuple[str, str, str] = process.ask("about", process.where, path)
        return found


def _beside(kind: type[Peer]) -> list[tuple[str, str, list[str] | None]]:
    """Where the package of a peer from outside lies."""
    top = kind.__module__.partition(".")[0]
    return [] if top == kvbench.__name__ else [_lies(top)]


def _lies(package: str) -> tuple[str, str, list[str] | None]:
    module = sys.modules[package]
    folders = getattr(module, "__path__", None)
    return package, str(Path(module.__file__ or "")), None if folders is None else list(folders)

"""A peer's process, as the one that measures sees it. It runs while it is asked something, and is
stopped for all other
time: what spins in it takes no core from anybody.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from multiprocessing.connection import Pipe, wait
from typing import Any

from kvbench.apart import ending
from kvbench.closing import Closing
from kvbench.errors import KvbenchError
from kvbench.model import Point, Times

_THREADS = ("OMP", "OPENBLAS", "MKL")
_FOLDERS = ("TMPDIR", "TMP", "TEMP", "TEMPDIR")
_HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # what malloc maps asks for huge pages


class Failed(KvbenchError):
    """A peer's process died, hangs or says what is wrong. `host`: whose it is."""

    host: "Host"


class Host(Closing):
    """As a team: `run` takes layers, all of them side by side in the walk. It ends with the thread
    that began it.
    """

    def __init__(self, point: Point, path: str, patience: float, folder: str, data: int) -> None:
        """folder: in which it gets one of its own for what engines leave behind, such as traces of
        their use.
        """
        self.point, self._patience, self._data = point, patience, data
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  # close() does
        self._left = tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True)
        self._pipe, other = Pipe()
        environment = {
            **{f"{name}_NUM_THREADS": str(point.threads) for name in _THREADS},
            **dict.fromkeys(_FOLDERS, self._left.name),
        }
        asked = {"pipe": other.fileno(), "parent": os.getpid(), "cpus": point.cpus}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kvbench.peers.child"],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            env={**os.environ, **environment, **({} if point.pages == "base" else _HUGE)},
            pass_fds=[other.fileno(), data],
        )
        other.close()
        try:
            assert self._process.stdin  # it was asked for
            with self._process.stdin as line:
                line.write(f"{json.dumps(asked)}\n".encode())
            self._send("begin", point.engine, point.dtype, point.layout, point.threads, path)
            self._receive()
        except BaseException:
            self.close()
            raise

    def setup(self, *facts: Any) -> tuple[int, float, dict[str, int]]:
        """Bytes of a layer, seconds of an empty step, and the memory that it holds."""
        return self.ask("setup", self.point.shape, self._data, *facts)

    def run(self, *layers: "PeerStep", passes: int = 1, between: None = None) -> Times:
        taken, switches, faults = self.ask("run", [each.layer for each in layers], passes)
        return Times(sum(taken), tuple(taken), (sum(taken),), (), switches, faults)

    def ask(self, *what: Any) -> Any:
        self._signal(signal.SIGCONT)
        self._send(*what)
        try:
            return self._receive()
        finally:
            self._signal(signal.SIGSTOP)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()
        self._said.close()
        self._left.cleanup()

    def _signal(self, which: int) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(which)

    def _send(self, *what: Any) -> None:
        with suppress(OSError):  # it is dead: its end says why
            self._pipe.send(what)

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
        found = Failed(f"the peer {self.point.engine}: {what}", "its rows alone are lost")
        found.host = self
        return found

    def _last(self) -> str:
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()[-1:]
        return f": {lines[0][:200]}" if lines else ""


class PeerStep:
    """A layer of a peer, as a task."""

    def __init__(self, layer: int, moved: Any) -> None:
        self.layer, self._moved = layer, moved

    def traffic(self) -> Any:
        return self._moved


def steps(layers: int, moved: Any) -> tuple[PeerStep, ...]:
    return tuple(PeerStep(layer, moved) for layer in range(layers))

"""Peers that are NumPy's, and what else may become of one. They come as an outsider's do: by an
entry point.
"""

import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from kvbench.peers import child
from kvbench.peers.numpy import NumPy

RIGHT = ("Right", "Loud", "Copied", "Inward")
FAULTS = {  # what is said of each
    "Liar": "is off by",
    "Keeper": "is off by",
    "Tired": "is off by",
    "Hanging": "it hangs",
    "Dying": "its process ended with exit code 3",
    "Forking": "its process ended with exit code 3",
    "Crashing": "its process was killed by SIGABRT: b.c:7: GGML_ASSERT(n % 32 == 0) failed",
    "Broken": "ValueError: no such thing",
    "Closing": "its process ended with exit code 1: OSError: [Errno 9] Bad file descriptor",
    "Scribbling": "it said something else",
}
LATER = {"Vanishing": "/vanishing: No such file or directory"}  # in the second launch
_SAID = (
    "loading",
    "b.c:7: GGML_ASSERT(n % 32 == 0) failed",
    "[New LWP 7]",
    "#1  0x00007f1c in ggml_abort () from /b/libggml.so",
    "/b/libggml.so(ggml_abort+0x15a)[0x7f1c]",
)
_SOON = 40  # steps: after what verifies it, in the rounds
_DESCRIPTORS = range(3, 64)


class Right(NumPy):
    """But it leaves a file behind, as engines do."""

    sealed = False

    def setup(self, shape, k, v):
        os.close(tempfile.mkstemp(suffix=".ses")[0])
        super().setup(shape, k, v)


class Loud(NumPy):
    """It prints far more than a pipe holds."""

    def setup(self, shape, k, v):
        for stream in (sys.stdout, sys.stderr):
            print("x" * (1 << 22), file=stream, flush=True)
        super().setup(shape, k, v)

    def step(self, layer):
        print("a step", flush=True)
        super().step(layer)


class Copied(NumPy):
    """It forks, and the copy comes back as the original does."""

    def setup(self, shape, k, v):
        super().setup(shape, k, v)
        os.fork()


class Inward(NumPy):
    """Its flags are the modules that its process has."""

    def flags(self):
        return " ".join(sorted(sys.modules))


class Vanishing(NumPy):
    """Its interpreter is gone once it has begun."""

    def setup(self, shape, k, v):
        with suppress(FileNotFoundError):
            os.unlink(sys.executable)
        super().setup(shape, k, v)


class _Later(NumPy):
    steps = 0

    def step(self, layer):
        super().step(layer)
        self.steps += 1
        if self.steps > _SOON:
            self.fail()


class Liar(NumPy):
    def output(self, layer):
        return super().output(layer) * 0.9


class Keeper(NumPy):
    """It keeps its answers."""

    def step(self, layer):
        kept = self.__dict__.setdefault("kept", {})
        if layer not in kept:
            super().step(layer)
            kept[layer] = self._out
        self._out = kept[layer]


class Tired(_Later):
    def fail(self):
        self._out = self._out * 0


class Hanging(_Later):
    def fail(self):
        time.sleep(1000)


class Dying(_Later):
    def fail(self):
        os._exit(3)


class Forking(Dying):
    """Its child spins, holds all that it held, and does not hear that the terminal is gone."""

    def __init__(self, *how):
        super().__init__(*how)
        if not os.fork():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            while True:
                pass


class Leaving(NumPy):
    """Its child leaves the group, and that one's child has no parent."""

    def __init__(self, *how):
        super().__init__(*how)
        if not os.fork():
            os.setsid()
            if not os.fork():
                time.sleep(1000)
            os._exit(0)
        os.wait()


class Crashing(NumPy):
    """As ggml does: what it says is followed by a trace of its calls."""

    def setup(self, shape, k, v):
        os.write(2, "\n".join(_SAID).encode())
        os.abort()


class Broken(NumPy):
    def setup(self, shape, k, v):
        raise ValueError("no such thing")


class Closing(NumPy):
    def setup(self, shape, k, v):
        super().setup(shape, k, v)
        os.closerange(_DESCRIPTORS[0], _DESCRIPTORS[-1])


class Resting(NumPy):
    """It does one step after a rest, and no other."""

    def rest(self):
        self.rested = True

    def step(self, layer):
        if self.rested:
            super().step(layer)
        self.rested = False


class Timeless(NumPy):
    """Its clock stands."""

    def setup(self, shape, k, v):
        super().setup(shape, k, v)
        child.perf_counter = float


class Weightless(NumPy):
    def bytes(self):
        return 0


class Picky(NumPy):
    def setup(self, shape, k, v):
        if shape.context % 2:
            raise ValueError(f"{shape.context} tokens")
        super().setup(shape, k, v)


class Scribbling(NumPy):
    """It writes to all that it has."""

    def setup(self, shape, k, v):
        super().setup(shape, k, v)
        for each in _DESCRIPTORS:
            with suppress(OSError):
                os.write(each, b"nonsense")


class Named(NumPy):
    """One of the others: its library's name says which."""

    sealed = False

    def __new__(cls, dtype, layout, threads, path=""):
        return globals()[Path(path).stem.capitalize()](dtype, layout, threads, path)

"""Peers that are NumPy's, and what else may become of one. They come as an outsider's do: by an
entry point.
"""

import os
import tempfile
import time

from kvbench.peers.numpy import NumPy

FAULTS = {  # what is said of each
    "Liar": "is off by",
    "Keeper": "is off by",
    "Tired": "is off by",
    "Hanging": "it hangs",
    "Dying": "its process ended with exit code 3",
    "Crashing": "its process was killed by SIGABRT: b.c:7: GGML_ASSERT(n % 32 == 0) failed",
    "Broken": "ValueError: no such thing",
}
_SAID = (
    "loading",
    "b.c:7: GGML_ASSERT(n % 32 == 0) failed",
    "[New LWP 7]",
    "#1  0x00007f1c in ggml_abort () from /b/libggml.so",
    "/b/libggml.so(ggml_abort+0x15a)[0x7f1c]",
)
_SOON = 40  # steps: after what verifies it, in the rounds


class Right(NumPy):
    """But it leaves a file behind, as engines do."""

    def setup(self, shape, k, v):
        os.close(tempfile.mkstemp(suffix=".ses")[0])
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


class Crashing(NumPy):
    """As ggml does: what it says is followed by a trace of its calls."""

    def setup(self, shape, k, v):
        os.write(2, "\n".join(_SAID).encode())
        os.abort()


class Broken(NumPy):
    def setup(self, shape, k, v):
        raise ValueError("no such thing")

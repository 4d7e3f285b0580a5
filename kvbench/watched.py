"""Run a command so that all processes it starts end with it, and with the process that waits for
it.

The command is a child of `python -m kvbench.watched`, which adopts the processes that the command
leaves behind. This watcher reads the command from standard input. It ends when standard input ends:
so it ends with the waiting process, however that ends.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO

from kvbench.apart import adopt
from kvbench.leftovers import end_descendants


def watched(
    command: Sequence[str | Path],
    prints: IO[bytes],
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> int:
    """Run the command in `folder` and return its exit code. `prints` gets its output. It has no
    input.
    """
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "kvbench.watched"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=prints,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is ours to handle
    ) as watch:
        try:
            assert watch.stdin  # stdin=PIPE was given
            with suppress(BrokenPipeError):  # the watcher could not begin, and has printed why
                os.write(watch.stdin.fileno(), f"{json.dumps([*map(str, command)])}\n".encode())
            return watch.wait()
        except BaseException:
            end_descendants(watch.pid)
            raise


def _watch() -> None:
    if not (asked := sys.stdin.buffer.readline()):
        return  # the waiting process was interrupted before it could send a command
    adopt()
    child = subprocess.Popen(json.loads(asked), stdin=subprocess.DEVNULL)
    Thread(target=_end_with_input, daemon=True).start()
    code = child.wait()
    end_descendants()
    raise SystemExit(code if code >= 0 else 128 - code)  # as a shell reports a signal


def _end_with_input() -> None:
    os.read(0, 1)
    end_descendants()
    signal.raise_signal(signal.SIGKILL)


if __name__ == "__main__":
    _watch()

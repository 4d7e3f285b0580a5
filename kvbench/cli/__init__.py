"""The command line: one file per command, imported when it is called or listed. Nothing else prints
or exits.

main() imports whatever takes long to import: an interrupt during that leaves no traceback.
"""

import gc
import sys

from kvbench.cli._signals import ignore_signals, leave, take_signals, was_interrupted
from kvbench.errors import Exit

# Garbage is collected less often than by default: a report takes a tenth less time.
COLLECTED = 100_000, 50, 50


def main(arguments: list[str] | None = None) -> None:
    """Run the `kvbench` program. SIGTERM counts as Ctrl-C. `arguments`: given by a caller that
    goes on after this call; it gets its signal handlers back.
    """
    put_back = take_signals()
    if arguments is None:
        gc.set_threshold(*COLLECTED)
    try:
        from kvbench.cli._program import run

        code = run(arguments)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    if arguments is not None:
        put_back()
    elif was_interrupted():
        leave()
    else:
        ignore_signals()
    sys.exit(code)

"""The command line: one file per command, imported when it is called or listed. Nothing else prints
or exits.

All that takes time to import is imported by main(), where an interrupt is no traceback.
"""

import sys

from kvbench.cli._signals import ignore_signals, leave, take_signals, was_interrupted
from kvbench.errors import Exit


def main(arguments: list[str] | None = None) -> None:
    """The `kvbench` program. SIGTERM is Ctrl-C to it. With `arguments` it is called by a program
    that goes on.
    """
    put_back = take_signals()
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

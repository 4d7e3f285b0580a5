"""The command line: one file per command, imported when it is called or listed. Nothing else prints or exits.

All that takes time to import is imported by main(), where an interrupt is no traceback.
"""

import signal
import sys

from kvbench.errors import Exit


def main(arguments: list[str] | None = None) -> None:
    """The `kvbench` program. SIGTERM is Ctrl-C to it."""
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from kvbench.cli._program import run

        code = run(arguments)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    sys.exit(code)

"""What commands that measure a run have in common. However it ends, what there is can be read."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kvbench.cli._streams import say
from kvbench.errors import Exit


def command_line() -> str:
    return shlex.join(["kvbench", *sys.argv[1:]])


def given(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value not in (None, ())}


def concluded(session: Any, command: str, tell: Callable[[Any], None]) -> Exit:
    """Measures it; `tell` prints what there is of the run."""
    whole = False
    try:
        ended = measured(session)
        tell(session.run())
        whole = ended
    except KeyboardInterrupt:
        pass
    if not whole:
        path = shlex.quote(str(session.directory.path))
        say(f"kvbench: interrupted; to go on: kvbench {command} --out {path} --resume", err=True)
        return Exit.INTERRUPTED
    return Exit.ERRORS if any(record.error for record in session.directory.records) else Exit.FINE


def measured(session: Any) -> bool:
    """Whether it came to its end."""
    from kvbench.report.course import heading

    try:
        with finished(session):
            manifest, limit = session.directory.manifest, session.limit
            lines = heading(manifest, str(session.directory.path), session.checks, session.done, limit)
            say("\n".join([*lines, *filter(None, [session.remark])]), err=True)
            follow_all(session)
    except KeyboardInterrupt:
        return False
    return True


def follow_all(session: Any) -> None:
    from kvbench.cli._progress import follow
    from kvbench.report.course import Newest

    left, weights = session.left(), session.weights()
    whole = (lambda: left + session.added, lambda record: weights[record.point.name])
    for _ in follow(session.records(), *whole, Newest()):
        pass


@contextmanager
def finished(session: Any) -> Iterator[None]:
    try:
        yield
    finally:
        session.finish()
        if session.remark:
            say(session.remark, err=True)

"""What commands that measure a run have in common. However it ends, what there is can be read."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from kvbench.cli._signals import interrupted_line, resumable
from kvbench.cli._streams import say
from kvbench.errors import Exit
from kvbench.texts import resume_command
from kvbench.units import counted, cpu_text, span


def command_line() -> str:
    return shlex.join(["kvbench", *sys.argv[1:]])


def given(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value not in (None, ())}


def say_busy(others: str = "--cpus") -> None:
    """In a line, where other work would disturb what is measured next. `others`: what chooses other
    CPUs.
    """
    from kvbench.machine import describe
    from kvbench.machine.preflight import busy

    machine = describe()
    if share := busy(machine):
        cpus = f"CPUs {cpu_text(machine.allowed)} are {share:.0%} busy with other work"
        say(f"{cpus}: expect CONTAMINATED; wait, or use other CPUs with {others}", err=True)


def concluded(session: Any, command: str, tell: Callable[[Any], None]) -> Exit:
    """Measures it; `tell` prints what there is of the run."""
    resumable(command, session.directory.path)
    try:
        whole = measured(session)
        tell(session.run())
    except KeyboardInterrupt:
        whole = False
    if not whole:
        say(interrupted_line(), err=True)
        return Exit.INTERRUPTED
    if session.budget.spent:
        say(
            f"{_spent(session)}; to go on: {resume_command(command, session.directory.path)}",
            err=True,
        )
        if not session.directory.records:
            return Exit.UNCLEAR
    return Exit.ERRORS if any(record.error for record in session.directory.records) else Exit.FINE


def _spent(session: Any) -> str:
    """That the budget has ended it, and where."""
    records, plan = session.directory.records, session.directory.manifest.plan
    launch = max((record.launch for record in records), default=0)
    made = sum(record.launch == launch for record in records)
    whole = f"{made} of {counted(len(plan.points), 'visit')}"
    visits = whole if launch < plan.launches else counted(made, "visit")
    return (
        f"kvbench: the budget of {span(session.budget.seconds)} ended it after {visits} of launch"
        f" {launch + 1}"
    )


def measured(session: Any) -> bool:
    """Whether it came to its end, which may be that of its budget."""
    from kvbench.report.course import heading

    try:
        with finished(session):
            lines = heading(
                session.directory.manifest,
                str(session.directory.path),
                session.checks,
                session.done,
                session.forecast,
                session.options.budget,
            )
            say("\n".join([*lines, *filter(None, [session.remark])]), err=True)
            say_busy()
            follow_all(session)
    except KeyboardInterrupt:
        return False
    return True


def follow_all(session: Any) -> None:
    from kvbench.cli._progress import follow
    from kvbench.report.course import newest

    left = session.left()
    whole = (lambda: left + session.added, lambda record: session.weight(record.point))
    with closing(session.records()) as records:  # the worker ends before anything is written
        for _ in follow(records, *whole, newest, lambda: session.budget.left):
            pass


@contextmanager
def finished(session: Any) -> Iterator[None]:
    try:
        yield
    finally:
        session.finish()
        if session.remark:
            say(session.remark, err=True)

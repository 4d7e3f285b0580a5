"""What commands that measure a run have in common. A run that ends early can still be read."""

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
    """This call, as a shell would take it; a run's manifest keeps it."""
    return shlex.join(["kvbench", *sys.argv[1:]])


def given(asked: dict[str, Any]) -> dict[str, Any]:
    """The options that the user has set."""
    return {name: value for name, value in asked.items() if value not in (None, ())}


def say_busy(others: str = "--cpus") -> None:
    """Print a warning if other work keeps these CPUs busy. `others`: what the user can write to
    choose other CPUs.
    """
    from kvbench.machine import describe
    from kvbench.machine.preflight import busy

    machine = describe()
    if share := busy(machine):
        cpus = f"CPUs {cpu_text(machine.allowed)} are {share:.0%} busy with other work"
        say(f"{cpus}: the result may be disturbed; wait, or use other CPUs: {others}", err=True)


def concluded(session: Any, command: str, tell: Callable[[Any], None]) -> Exit:
    """Measure the session and return an exit code. `tell` prints the run, complete or not."""
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
    """Say after how many visits the budget has ended the session."""
    records, plan = session.directory.records, session.directory.manifest.plan
    launch = max((record.launch for record in records), default=0)
    made = sum(record.launch == launch for record in records)
    whole = f"{made} of {counted(len(plan.points), 'visit')}"
    visits = whole if launch < plan.launches else counted(made, "visit")
    return (
        f"kvbench: stopped by the budget of {span(session.budget.seconds)}, after {visits} of"
        f" launch {launch + 1}"
    )


def measured(session: Any) -> bool:
    """Measure the session. False if it was interrupted; True also if its budget ended it."""
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
    """Make all visits of the session, and show the progress."""
    from kvbench.cli._progress import follow
    from kvbench.report.course import newest

    left = session.left()
    whole = (lambda: left + session.added, lambda record: session.weight(record.point))
    with closing(session.records()) as records:  # the worker ends before anything is written
        for _ in follow(records, *whole, newest, lambda: session.budget.left):
            pass


@contextmanager
def finished(session: Any) -> Iterator[None]:
    """Finish the session at the end of the block, however the block ends."""
    try:
        yield
    finally:
        session.finish()
        if session.remark:
            say(session.remark, err=True)

"""kvbench doctor"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from kvbench.cli._options import cpus_option, json_option, override_option, threads_option
from kvbench.cli._streams import say, say_json
from kvbench.errors import Exit
from kvbench.model import Check
from kvbench.model.annotated import Printed, about


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor(Printed):
    """The checks of this machine: is it ready to be measured now?"""

    checks: Annotated[tuple[Check, ...], about("things that change the bandwidth, checked now")]
    fingerprint: Annotated[str, about("digest of the hardware")]
    environment: Annotated[str, about("digest of settings that an administrator can change")]


@click.command("doctor")
@threads_option
@cpus_option
@override_option
@click.option("--strict", is_flag=True, help=f"Exit with {Exit.REFUSED} after any warning.")
@json_option
def command(
    threads: str, cpus: str | None, override: Path | None, strict: bool, as_json: bool
) -> int:
    """Check whether this machine is ready to be measured, and say what to do if it is not.

    The check takes a second or two and changes nothing.
    """
    from kvbench.machine import describe
    from kvbench.machine.placement import place
    from kvbench.machine.preflight import preflight
    from kvbench.machine.tree import Files

    files = Files()
    machine = describe(files, override)
    checks = preflight(files, machine, place(machine, cpus, threads))
    if as_json:
        say_json(
            Doctor(checks=checks, fingerprint=machine.fingerprint, environment=machine.environment)
        )
    else:
        say("\n".join(_lines(checks)))
        say(_summary(checks), err=True)
    return Exit.REFUSED if strict and any(check.status == "warn" for check in checks) else Exit.FINE


def _lines(checks: tuple[Any, ...]) -> list[str]:
    """A line for each check. Below a check that is not ok: why it matters, and what to do."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{check.status:<7}  {check.name:<{width}}  {check.value}".rstrip())
        if check.status != "ok":
            lines += [
                f"{'':<9}{text}"
                for text in (f"why: {check.why}", f"do:  {check.advice}")
                if text[5:]
            ]
    return lines


def _summary(checks: tuple[Any, ...]) -> str:
    counts = Counter(check.status for check in checks)
    warnings = f"{counts['warn']} warning{'s' * (counts['warn'] != 1)}"
    return f"{len(checks)} checks: {counts['ok']} ok, {warnings}, {counts['unknown']} unknown"

"""kvbench list"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import click

from kvbench.cli._options import json_option, plugin_option
from kvbench.cli._streams import say, say_json
from kvbench.errors import unknown_word
from kvbench.model import Kernel
from kvbench.model.annotated import Printed, about

_TYPES = {  # by command: the type of its JSON, or several types of which it prints one
    "compare": "exports.printed:Compared",
    "doctor": "cli.understand.doctor:Doctor",
    "explain": "model.explained:Explained",
    "gate": "exports.printed:Compared",
    "history": "report.history:Shown",
    "list kernels": "cli.understand.list:Kernels",
    "list suites": "cli.understand.list:Suites",
    "machine": "analysis.measured.machines:MachineProfile",
    "peers": "report.peers:Compared",
    "profile": "analysis.limits.profile:DecodeOrStore",
    "profile --engine": "analysis.limits.rest:Split",
    "profile --grow": "analysis.limits.growth:Growth",
    "report": "report.data:Report report.data:Reports",
    "score": "score:Score",
    "size": "model.size:Size",
    "sweep": "report.ending:Swept",
    "sweep --dry-run": "report.planned:PlannedSweep",
    "sweep --tune-only": "report.planned:TunedClasses",
    "verify": "verify.kernels:Verified",
}
_CALL = {"history": "history show --json", "report": "report --format json"}
_NOTE = """
Times are forecasts for kvbench sweep SUITE, with tuning. "Up to": launches are added while
questions are not decided. kvbench score takes less time than the suite score: it measures only the
fastest kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels(Printed):
    """The kernels of a library."""

    kernels: Annotated[tuple[Kernel, ...], about("all kernels of the library")]


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One suite on this machine."""

    name: Annotated[str, about("name, as sweep takes it")]
    count: Annotated[int, about("number of points on this machine")]
    seconds: Annotated[
        float, about("seconds: forecast of a sweep on this machine, as --dry-run prints it")
    ]
    question: Annotated[str, about("the question that the suite answers")]
    left_out: Annotated[str, about("if the suite has no points here: the main reason; else empty")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites(Printed):
    """The suites that come with kvbench."""

    suites: Annotated[tuple[SuiteRow, ...], about("suites that come with kvbench, shortest first")]


@click.group("list", no_args_is_help=False)
def command() -> None:
    """List kernels, suites, or the schemas of what commands print with --json."""


@command.command("kernels")
@plugin_option
@json_option
def kernels(plugin: tuple[str, ...], as_json: bool) -> None:
    """List the kernels, and say which of them this CPU can run."""
    from kvbench.native import library_of

    library = library_of(None, plugin)
    found = library.kernels()
    if as_json:
        say_json(Kernels(kernels=tuple(found)))
        return
    width = max(len(kernel.id) for kernel in found)
    for kernel in found:
        say(f"{kernel.id:<{width}}  {'yes' if kernel.runnable else 'no':<3}  {kernel.about}")
    runs = sum(kernel.runnable for kernel in found)
    best = library.isa()
    say(f"{len(found)} kernels; this CPU runs {runs} of them, best with {best}", err=True)


@command.command("suites")
@json_option
def suites(as_json: bool) -> None:
    """List the suites: their points and time on this machine, and the question that each answers.

    For more about one suite: kvbench sweep --dry-run SUITE.
    """
    rows, times = _rows()
    rows.sort(key=lambda row: row.seconds)
    if as_json:
        say_json(Suites(suites=tuple(rows)))
        return
    say("\n".join(_lines(rows, times)))
    say(_NOTE, err=True)


def _rows() -> tuple[list[SuiteRow], dict[str, str]]:
    """A row for each suite, and the times in words by suite."""
    from kvbench.machine import available_memory, describe
    from kvbench.plan import Site, expand
    from kvbench.report.planned import by_reason
    from kvbench.session import Options, foreseen
    from kvbench.suite import find, shipped

    here = Site(describe(), available_memory())
    rows, times = [], {}
    for name in shipped():
        sweep, seen = foreseen(expand(find(name), here), Options(name), here.machine)
        why = "" if sweep.points else next(iter(by_reason(sweep.skips)), "")
        rows.append(
            SuiteRow(sweep.suite.name, len(sweep.points), seen.whole, sweep.suite.question, why)
        )
        times[sweep.suite.name] = seen.text
    return rows, times


def _lines(rows: list[SuiteRow], times: dict[str, str]) -> Iterator[str]:
    width = max(len(row.name) for row in rows)
    longest = max(map(len, times.values()))
    for row in rows:
        why = f" ({row.left_out})" if row.left_out else ""
        yield (
            f"{row.name:<{width}}  {row.count:>5} points  {times[row.name]:<{longest}} "
            f" {row.question}{why}"
        )


@command.command("schemas", context_settings={"ignore_unknown_options": True})
@click.argument("call", metavar="[COMMAND]", nargs=-1, type=click.UNPROCESSED)
def schemas(call: tuple[str, ...]) -> None:
    """Print the JSON Schema (2020-12) of what COMMAND prints with --json.

    The schema tells the meaning and unit of each key. Within a version, keys may be added but are
    never renamed or dropped. Without COMMAND, list the commands that have a schema.
    """
    name = " ".join(call)
    if not call:
        say("\n".join(names()))
    elif name in names():
        say(json.dumps(schema(name), indent=2, ensure_ascii=False))
    else:
        raise unknown_word("COMMAND", name, names())


def names() -> list[str]:
    return sorted(_TYPES)


def schema(name: str) -> dict[str, Any]:
    """The schema of a command's JSON, complete in itself: a validator needs no other file."""
    import msgspec

    refs, parts = msgspec.json.schema_components(_types(name), ref_template="#/$defs/{name}")
    for part in parts.values():
        if "properties" in part:  # an enum of words has none
            _require_all(part)
    own: dict[str, Any] = {"type": "object", "oneOf": list(refs)}
    if len(refs) == 1:
        own = refs[0] | parts.pop(refs[0].pop("$ref").rpartition("/")[2])
    return (
        {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        | own
        | {"title": f"kvbench {_CALL.get(name, f'{name} --json')}", "$defs": parts}
    )


def _types(name: str) -> list[Any]:
    found = (each.partition(":") for each in _TYPES[name].split())
    return [getattr(import_module(f"kvbench.{module}"), kind) for module, _, kind in found]


def _require_all(part: dict[str, Any]) -> None:
    """Mark keys with a default as required: kvbench always prints them."""
    properties = part["properties"]
    always = {*part["required"], *(key for key, value in properties.items() if "default" in value)}
    part["required"] = [key for key in properties if key in always]
    for value in properties.values():
        value.pop("default", None)

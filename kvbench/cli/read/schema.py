"""kvbench schema"""

import json
from importlib import import_module
from typing import Any

import click

from kvbench.cli._streams import say
from kvbench.errors import unknown_word

_TYPES = {  # of what is printed: one, or one of several
    "compare": "exports.printed:Compared",
    "doctor": "cli.understand.doctor:Doctor",
    "explain": "model.explained:Explained",
    "gate": "exports.printed:Compared",
    "history": "report.history:Shown",
    "kernels": "cli.understand.kernels:Kernels",
    "lab": "cli.measure.lab:Found cli.measure.lab:Experiments",
    "machine": "analysis.measured.machines:MachineProfile",
    "peers": "report.peers:Compared",
    "plan": "cli.understand.plan:PlannedSweep",
    "profile": "analysis.limits.profile:DecodeOrStore",
    "report": "report.data:Report report.data:Reports",
    "score": "score:Score",
    "size": "model.size:Size",
    "suites": "cli.understand.suites:Suites",
    "sweep": "report.ending:Swept",
    "tune": "cli.measure.tune:TunedClasses",
    "verify": "verify.kernels:Verified",
}
_CALL = {"history": "history show --json", "report": "report --format json"}


@click.command("schema")
@click.argument("command", metavar="[COMMAND]", required=False)
def command(command: str | None) -> None:
    """Print the JSON Schema (2020-12) of what COMMAND prints with --json.

    It gives the meaning and the unit of every key. New keys may be added; none is renamed or
    dropped within a version. Without COMMAND, list the commands that have a schema.
    """
    if command is None:
        say("\n".join(names()))
    elif command in names():
        say(json.dumps(schema(command), indent=2, ensure_ascii=False))
    else:
        raise unknown_word("COMMAND", command, names())


def names() -> list[str]:
    return sorted(_TYPES)


def schema(name: str) -> dict[str, Any]:
    """A validator needs no other file."""
    import msgspec

    refs, parts = msgspec.json.schema_components(_types(name), ref_template="#/$defs/{name}")
    for part in parts.values():
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
    """A key with a default may be left out where a value is made, but is always printed."""
    properties = part["properties"]
    always = {*part["required"], *(key for key, value in properties.items() if "default" in value)}
    part["required"] = [key for key in properties if key in always]
    for value in properties.values():
        value.pop("default", None)

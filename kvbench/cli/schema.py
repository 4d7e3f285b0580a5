"""kvbench schema"""

import json
import re
from pathlib import Path
from typing import Any

import click

from kvbench.cli._streams import say
from kvbench.errors import unknown_word

_FOLDER = Path(__file__).resolve().parents[1] / "schemas"
_PARTS = "parts.json"  # what several of them have in common


@click.command("schema")
@click.argument("command", metavar="[COMMAND]", required=False)
def command(command: str | None) -> None:
    """Print the JSON Schema (2020-12) of what COMMAND prints with --json; without COMMAND, list those that have one.

    It says the meaning and the unit of every key. Keys are added in time; none is renamed or dropped in a version.
    """
    if command is None:
        say("\n".join(names()))
    elif command in names():
        say(json.dumps(schema(command), indent=2, ensure_ascii=False))
    else:
        raise unknown_word("COMMAND", command, names())


def names() -> list[str]:
    return sorted(path.stem for path in _FOLDER.glob("*.json") if path.name != _PARTS)


def schema(name: str) -> dict[str, Any]:
    """With the parts that it refers to: a validator needs no other file."""
    found, parts = _read(f"{name}.json"), _read(_PARTS)["$defs"]
    while missing := _needed(found) - found.get("$defs", {}).keys():
        found["$defs"] = found.get("$defs", {}) | {part: parts[part] for part in sorted(missing)}
    return json.loads(json.dumps(found).replace(f'"{_PARTS}#/', '"#/'))


def _needed(value: Any) -> set[str]:
    return set(re.findall(rf'"{re.escape(_PARTS)}#/\$defs/(\w+)"', json.dumps(value)))


def _read(name: str) -> Any:
    return json.loads((_FOLDER / name).read_text(encoding="utf-8"))

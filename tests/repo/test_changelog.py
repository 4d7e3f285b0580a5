"""The changelog names the version, formats and commands that the code has."""

import re
import tomllib

import click
import pytest

from kvbench.cli._program import _MOVED, _homes
from kvbench.cli._program import kvbench as program
from kvbench.cli.understand.list import _CALL, names, schema
from kvbench.native import default_library
from kvbench.score import VERSION, digest
from kvbench.store.manifest import FORMAT
from tests.raw import ROOT

TEXT = (ROOT / ".github" / "CHANGELOG.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.splitlines()
    if line.startswith("| `")
]


def test_the_first_version_is_the_package_s():
    (version,) = re.findall(
        r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert re.findall(r"^## (\S+)", TEXT, re.MULTILINE)[0] == version
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == version


def test_every_command_has_a_row_and_every_option_there_exists():
    rows = {row[0].strip("`").removeprefix("kvbench "): row[1] for row in ROWS if len(row) == 2}
    for name in _homes():
        found = program.get_command(click.Context(program), name)
        options = {word for each in found.params for word in each.opts}
        assert set(re.findall(r"`(--[\w-]+)`", rows[name])) <= options | {"--json"}, name


@pytest.mark.parametrize("old", _MOVED)
def test_a_command_that_moved_is_said(old):
    new = next(row[1] for row in ROWS if re.search(rf"`kvbench {old}\b", row[0]))
    assert all(word in new for word in _MOVED[old].split())


def test_formats_are_those_that_are_written():
    assert f"Run directories have format {FORMAT}." in TEXT
    assert f"version {VERSION}, digest `#{digest()}`" in TEXT
    assert f"Plug-ins have interface version {default_library().plugin_version}." in TEXT


def test_versions_of_json_are_those_of_the_schemas():
    told = {row[0].strip("`"): int(row[1]) for row in ROWS if len(row) == 3}
    for name in names():
        found = schema(name)
        parts = [found, *found["$defs"].values()] if "oneOf" in found else [found]
        versions = {
            value
            for part in parts
            for value in part.get("properties", {}).get("version", {}).get("enum", [])
        }
        call = _CALL.get(name, f"{name} --json")
        assert versions == {told.pop(call, 1)}, name
    assert not told

"""The folders of kernels/: includes go one way, and files and folders are small."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "kernels"
# lowest first
ROOMS = ("", "base", "cache", "tier", "scalar", "isa", "store", "walk", "decode", "probes", "run")
APART = {
    ("isa", "scalar"),
    ("walk", "store"),
    ("probes", "decode"),
    ("run", "decode"),
    ("run", "probes"),
}
FILES = sorted(path for path in KERNELS.rglob("*.[ch]") if path.parent.name != "example")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
INTERFACE = KERNELS / "abi.h"  # Python reads it as it stands, so it is one file


def name(path: Path) -> str:
    return path.relative_to(KERNELS).as_posix()


def included(path: Path) -> list[str]:
    return _INCLUDE.findall(path.read_text())


def room(file: str) -> str:
    return file.split("/")[0] if "/" in file else ""


def test_every_file_is_in_a_room():
    assert {room(name(path)) for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_includes_go_down(path):
    """Paths begin at kernels/. A folder includes only lower ones, and never a folder of APART."""
    own = room(name(path))
    for other in included(path):
        assert (KERNELS / other).is_file(), f"{other} is not a path from kernels/ on"
        assert ROOMS.index(room(other)) <= ROOMS.index(own), f"{other} is in a higher room"
        assert (own, room(other)) not in APART, f"{other} is in a room beside"


def test_no_circle():
    order = TopologicalSorter({name(path): included(path) for path in FILES}).static_order()
    assert set(order) >= {name(path) for path in FILES}


@pytest.mark.parametrize("path", [path for path in FILES if path != INTERFACE], ids=name)
def test_a_file_is_read_at_a_sitting(path):
    assert len(path.read_text().splitlines()) <= 300


def test_a_folder_is_seen_at_a_glance():
    folders = {path.parent for path in FILES}
    crowded = {
        name(folder): count for folder in folders if (count := len([*folder.glob("*.*")])) > 16
    }
    assert not crowded


def test_schedules_are_named_in_their_table_alone():
    """Other files use a preset only as a row of numbers, so a new preset is one new row."""
    named = re.compile(r"\bSCHEDULE_(?!DEFAULT\b)[A-Z]+\b")
    assert {name(path) for path in FILES if named.search(path.read_text())} == {"base/presets.h"}

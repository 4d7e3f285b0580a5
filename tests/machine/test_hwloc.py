"""This machine, compared with hwloc's view of it."""

import os
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from kvbench.machine import describe

LSTOPO = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
pytestmark = pytest.mark.skipif(LSTOPO is None, reason="hwloc is not installed")


@pytest.fixture(scope="module")
def objects():
    """hwloc's objects of this machine, whatever machine its variables name."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HWLOC_")}
    command = [LSTOPO, "--of", "xml"]
    text = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=plain
    ).stdout
    return list(ElementTree.fromstring(text).iter("object"))


@pytest.fixture(scope="module")
def ours():
    return describe()


@pytest.fixture(scope="module")
def shown(objects):
    """CPUs of the control group: hwloc shows only these, and ignores the affinity mask."""
    return set(cpuset(objects[0]))


def cpuset(found):
    """Parse "0x00000001,,0x00000003": words of 32 bits, the highest first; an empty word is
    zero.
    """
    words = found.get("cpuset").split(",")
    bits = sum(int(word or "0", 16) << 32 * place for place, word in enumerate(reversed(words)))
    return tuple(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def sets(objects, kind):
    return sorted(cpuset(found) for found in objects if found.get("type") == kind)


def groups(ours, name, shown):
    """Our CPUs by socket, core or node."""
    found = {}
    for cpu in ours.cpus:
        if cpu.cpu in shown:
            found.setdefault(getattr(cpu, name), []).append(cpu.cpu)
    return sorted(map(tuple, found.values()))


@pytest.mark.parametrize(
    ("kind", "name"), [("PU", "cpu"), ("Core", "core"), ("Package", "socket"), ("NUMANode", "node")]
)
def test_groups_of_cpus(kind, name, objects, ours, shown):
    assert shown >= set(ours.allowed)
    assert [cpus for cpus in sets(objects, kind) if cpus] == groups(ours, name, shown)


def test_memory_of_every_node(objects, ours):
    nodes = [found for found in objects if found.get("type") == "NUMANode"]
    theirs = {int(node.get("os_index")): int(node.get("local_memory") or 0) for node in nodes}
    assert theirs == {node.node: node.bytes for node in ours.nodes if node.node in theirs}


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_caches(level, objects, ours, shown):
    """Their sizes, lines and CPUs."""
    theirs = [
        (int(found.get("cache_size")), int(found.get("cache_linesize")), cpuset(found))
        for found in objects
        if found.get("type") == f"L{level}Cache"
    ]
    mine = {
        (cache.size, cache.line, tuple(cpu for cpu in cache.cpus if cpu in shown))
        for cache in ours.caches
        if cache.level == level and shown & set(cache.cpus)
    }
    assert sorted(theirs) == sorted(mine)

"""Caches read from a made-up sysfs."""

import pytest

from kvbench.machine.cpus import data_caches, last_levels
from kvbench.model import DataCache
from tests.machine.trees import CPU, SERVER, grow, put


def test_caches_are_counted_once(tmp_path):
    files = grow(tmp_path, cores=2, caches=[*SERVER[:2], (3, "Unified", "16M", 2)])
    found = [(cache.level, cache.size, cache.cpus) for cache in data_caches((0, 1), files)]
    assert found == [(1, 32 << 10, (0,)), (1, 32 << 10, (1,)), (3, 16 << 20, (0, 1))]


def test_those_of_the_cpus_asked_for(tmp_path):
    files = grow(tmp_path, cores=16)
    assert [cache.cpus for cache in data_caches((9,), files)] == [(9,), (9,), tuple(range(8, 16))]


def test_caches_not_declared_for_data_are_left_out(tmp_path):
    files = grow(tmp_path, cores=1)
    for index in (0, 1):
        (tmp_path / CPU / f"cpu0/cache/index{index}/type").unlink()
    assert [cache.level for cache in data_caches((0,), files)] == [2, 3]


@pytest.mark.parametrize("shared", ["", "garbage"])
def test_a_shared_level_is_known_only_with_its_cpus(shared, tmp_path):
    files = grow(tmp_path, cores=2)
    for path in tmp_path.rglob("shared_cpu_list"):
        path.write_text(shared)
    assert [(cache.level, cache.cpus) for cache in data_caches((0, 1), files)] == [
        (1, (0,)),
        (1, (1,)),
        (2, (0,)),
        (2, (1,)),
    ]


def test_lines_are_read(tmp_path):
    files = put(grow(tmp_path, cores=1).root, {f"{CPU}/cpu0/cache/index0/coherency_line_size": 128})
    assert [cache.line for cache in data_caches((0,), files)] == [128, 64, 64]


def test_a_last_level_is_the_highest_that_a_cpu_has():
    own = DataCache(2, 1 << 20, (0,)), DataCache(2, 1 << 20, (1,)), DataCache(2, 2 << 20, (2, 3))
    shared = DataCache(3, 8 << 20, (0, 1))
    assert last_levels((*own, shared)) == (shared, own[2])
    assert last_levels(()) == ()

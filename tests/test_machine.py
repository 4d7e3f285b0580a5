"""CPUs and caches, read from a made-up sysfs."""

import os

import pytest

from kvbench.machine import allowed_cpus, available_memory, cpu_list, data_caches


def declare(root, cpu, index, level, kind, size, shared):
    folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in {"level": level, "type": kind, "size": size, "shared_cpu_list": shared}.items():
        (folder / name).write_text(f"{text}\n")


def test_caches_are_counted_once(tmp_path):
    for cpu in (0, 1):
        declare(tmp_path, cpu, 0, 1, "Data", "32K", str(cpu))
        declare(tmp_path, cpu, 1, 1, "Instruction", "32K", str(cpu))
        declare(tmp_path, cpu, 2, 3, "Unified", "16M", "0-1")
    found = [(cache.level, cache.size, sorted(cache.cpus)) for cache in data_caches((0, 1), tmp_path)]
    assert found == [(1, 32 << 10, [0]), (1, 32 << 10, [1]), (3, 16 << 20, [0, 1])]


def test_a_machine_that_declares_nothing(tmp_path):
    assert data_caches((0, 1), tmp_path) == []


def test_a_cache_without_a_size_is_left_out(tmp_path):
    declare(tmp_path, 0, 0, 1, "Data", "", "0")
    assert data_caches((0,), tmp_path) == []


@pytest.mark.parametrize(("text", "cpus"), [("0", {0}), ("0-2,5", {0, 1, 2, 5}), ("", set())])
def test_cpu_lists(text, cpus):
    assert cpu_list(text) == cpus


def test_allowed_cpus_are_the_mask():
    assert set(allowed_cpus()) == os.sched_getaffinity(0)


def test_a_control_group_limits_memory(tmp_path):
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert available_memory(tmp_path) == 2000


def test_no_limit_is_no_limit(tmp_path):
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert available_memory(tmp_path) > 1 << 20

"""CPU lists, and which CPUs exist."""

import os

import pytest

from kvbench.machine.cpus import allowed_cpus
from kvbench.units import cpu_list
from tests.machine.trees import CPU, grow, put


@pytest.mark.parametrize(
    "text", ["0-", "-3", "3-1", "a", "0-99999999999", "1.5", "0,,1", "0,", ",", "0,0", "0-2,2-3"]
)
def test_no_lists(text):
    with pytest.raises(ValueError):
        cpu_list(text)


def test_allowed_cpus_are_the_mask():
    assert set(allowed_cpus()) == os.sched_getaffinity(0)


def test_a_tree_states_its_own_mask(tmp_path):
    assert allowed_cpus(grow(tmp_path, allowed="2-3,99")) == (2, 3)


@pytest.mark.parametrize("more", [{}, {"proc/self/status": "Cpus_allowed_list: garbage"}])
def test_a_tree_without_a_mask_allows_all_its_cpus(more, tmp_path):
    files = put(tmp_path, {f"{CPU}/online": "0-8191"} | more)
    assert allowed_cpus(files) == tuple(range(8192))

"""What a run is said to say of L3: planted numbers, and the sentence that follows."""

from dataclasses import replace

import pytest

from tests.analysis.diagnosis.test_diagnosis import CALM, HOT, INSIDE, QUESTION, at, rated, reads, said
from tests.made_run import MACHINE, MIB


@pytest.mark.parametrize(
    ("rate", "noise", "core", "answer"),
    [
        (50.0, CALM, 80.0, "Yes, at 1 of 1 point. L3 gives"),
        (10.0, CALM, 80.0, "No, at 1 of 1 point. L3 gives"),
        (19.5, CALM, 80.0, "Undecided, for the measurements overlap, at 1 of 1 point. L3 gives"),
        (10.0, CALM, 10.2, "Not shown, for the cores are the limit before L3 is, at 1 of 1 point. L3 gives"),
        (50.0, CALM[:3], 80.0, "Cannot be told, at 1 of 1 point; such as head f16: the point has 3 launches"),
    ],
)
def test_l3_in_plain_words(rate, noise, core, answer):
    found = said(rated(rate, HOT, noise, core=core, **INSIDE) + reads())["l3"]
    assert found.startswith(f"{QUESTION} {answer}")


def test_the_machine_and_the_kernel_have_a_ratio_each():
    """Slices are read at 60 GB/s, memory at 20; a decode runs at 50 or 10 from L3 and at 12 from memory."""
    found = said(rated(50.0, HOT, **INSIDE) + reads())["l3"]
    machine = "L3 gives plain reads 3.0 times (3.0..3.0) to 2 threads what memory gives."
    kernel = "A decode from L3 beside the same from memory: f16 with 4 query heads a KV head"
    assert found.endswith(f"{machine} {kernel} 4.2 times (4.2..4.2).")
    found = said(rated(10.0, HOT, core=10.2, **INSIDE) + reads())["l3"]
    assert found.endswith(f"{machine} {kernel} 0.8 times (0.8..0.8), the core is the limit.")


def test_each_kernel_is_told_those_that_gain_most_first():
    kernels = (("f16", 20.0), ("f32", 50.0), ("i8", 30.0), ("bf16", 40.0), ("q8_0", 10.0))
    records = reads() + sum((rated(rate, replace(HOT, dtype=dtype), **INSIDE) for dtype, rate in kernels), [])
    found = said(records)["l3"].partition("from memory: ")[2]
    assert [each.split()[0] for each in found.split("; ")] == ["f32", "bf16", "i8", "f16"]


def test_points_that_disagree_are_counted():
    records = rated(60.0, at(512, residency="hot"), **INSIDE) + reads()
    for context, rate in ((1024, 10.0), (2048, 5.0)):
        records += rated(rate, at(context, residency="hot"), **INSIDE)
    assert said(records)["l3"].startswith(f"{QUESTION} No, at 2 of 3 points, yes at 1. L3 gives")


def test_points_that_the_core_limits_do_not_hide_what_others_settle():
    """One point alone may look otherwise by chance."""
    limited = [rated(10.0, at(64 << n, residency="hot"), core=10.2, **INSIDE) for n in range(4)]
    records = reads() + sum(limited, []) + rated(50.0, HOT, **INSIDE)
    assert said(records)["l3"].startswith(f"{QUESTION} Not shown, for the cores are the limit before L3 is, at 4 of 5 ")
    records += rated(60.0, at(1024, residency="hot", dtype="f32"), **INSIDE)
    found = said(records)["l3"]
    assert found.startswith(f"{QUESTION} Yes, where the cores allow it, at 2 of 6 points, limited by the cores at 4. ")
    assert "f32 with 4 query heads a KV head 5.0 times" in found


def test_a_few_settle_nothing_where_most_are_undecided():
    records = reads() + sum((rated(50.0, at(512 << n, residency="hot"), **INSIDE) for n in range(2)), [])
    for n in range(3):
        records += rated(19.5, at(64 << n, residency="hot"), **INSIDE)
    found = said(records)["l3"]
    assert found.startswith(f"{QUESTION} Undecided, for the measurements overlap, at 3 of 5 points, yes at 2. ")


def test_where_l3_is_closed_another_number_of_threads_is_named():
    """2 x 12 MiB of L2 before 32 MiB of L3: 1.5 x 12 MiB of one thread are within 0.7 x 32 MiB, of two not."""
    large = tuple(replace(cache, size=12 * MIB) if cache.level == 2 else cache for cache in MACHINE.caches)
    found = said(rated(15.0), replace(MACHINE, caches=large, allowed=(0, 1)))
    assert found["l3"].endswith("Not tested: it is not testable at 2 threads; try --threads 1.")

"""What a run says of L3: planted numbers, and the facts that follow."""

from dataclasses import replace

import pytest

from kvbench.analysis.means.diagnosis.l3 import L3Decodes, L3Reads, L3Untested, L3Verdict
from kvbench.analysis.means.diagnosis.values import Untested
from tests.analysis.means.diagnosis.test_diagnosis import CALM, HOT, INSIDE, at, fact, rated, reads, sure
from tests.made_run import MACHINE, MIB


@pytest.mark.parametrize(
    ("rate", "noise", "core", "word"),
    [
        (50.0, CALM, 80.0, "confirmed"),
        (10.0, CALM, 80.0, "refuted"),
        (19.5, CALM, 80.0, "unstable"),
        (10.0, CALM, 10.2, "core-bound"),
        (50.0, CALM[:3], 80.0, "not testable"),
    ],
)
def test_the_word_is_counted(rate, noise, core, word):
    found = fact(L3Verdict, rated(rate, HOT, noise, core=core, **INSIDE) + reads())
    assert found.counts == ((word, 1),) and not found.doubtful
    assert bool(found.reads) == bool(found.kernels) == (word != "not testable") == (found.example == ("", ""))
    assert word != "not testable" or found.example == ("head f16", "the point has 3 launches, too few to tell")


def test_the_machine_and_the_kernel_have_a_ratio_each():
    """Slices are read at 60 GB/s, memory at 20; a decode runs at 50 or 10 from L3 and at 12 from memory."""
    for rate, core, word in ((50.0, 80.0, "confirmed"), (10.0, 10.2, "core-bound")):
        found = fact(L3Verdict, rated(rate, HOT, core=core, **INSIDE) + reads())
        assert found.reads == (L3Reads(2, sure(3)),) and not found.plain
        assert found.kernels == (L3Decodes("f16", "flash", 4, sure(rate / 12), word),)


def test_each_kernel_is_told_those_that_gain_most_first():
    kernels = (("f16", 20.0), ("f32", 50.0), ("i8", 30.0), ("bf16", 40.0), ("q8_0", 10.0))
    records = reads() + sum((rated(rate, replace(HOT, dtype=dtype), **INSIDE) for dtype, rate in kernels), [])
    assert [each.dtype for each in fact(L3Verdict, records).kernels] == ["f32", "bf16", "i8", "f16"]


def test_points_that_disagree_are_counted():
    records = rated(60.0, at(512, residency="hot"), **INSIDE) + reads()
    for context, rate in ((1024, 10.0), (2048, 5.0)):
        records += rated(rate, at(context, residency="hot"), **INSIDE)
    assert fact(L3Verdict, records).counts == (("refuted", 2), ("confirmed", 1))


def test_points_that_the_core_limits_do_not_hide_what_others_settle():
    """One point alone may look otherwise by chance."""
    limited = [rated(10.0, at(64 << n, residency="hot"), core=10.2, **INSIDE) for n in range(4)]
    records = reads() + sum(limited, []) + rated(50.0, HOT, **INSIDE)
    assert fact(L3Verdict, records).counts == (("core-bound", 4), ("confirmed", 1))
    records += rated(60.0, at(1024, residency="hot", dtype="f32"), **INSIDE)
    found = fact(L3Verdict, records)
    assert found.counts == (("confirmed", 2), ("core-bound", 4))
    assert (found.kernels[0].dtype, found.kernels[0].ratio) == ("f32", sure(5))


def test_a_few_settle_nothing_where_most_are_undecided():
    records = reads() + sum((rated(50.0, at(512 << n, residency="hot"), **INSIDE) for n in range(2)), [])
    for n in range(3):
        records += rated(19.5, at(64 << n, residency="hot"), **INSIDE)
    assert fact(L3Verdict, records).counts == (("unstable", 3), ("confirmed", 2))


def test_where_l3_is_closed_another_number_of_threads_is_named():
    """2 x 12 MiB of L2 before 32 MiB of L3: 1.5 x 12 MiB of one thread are within 0.7 x 32 MiB, of two not."""
    large = tuple(replace(cache, size=12 * MIB) if cache.level == 2 else cache for cache in MACHINE.caches)
    found = fact(L3Untested, rated(15.0), replace(MACHINE, caches=large, allowed=(0, 1)))
    assert found == L3Untested(Untested.CLOSED, 0, "not testable at 2 threads; try --axis threads=1")

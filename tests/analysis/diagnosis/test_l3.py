"""What a run is said to say of L3: planted numbers, and the sentence that follows."""

from dataclasses import replace

import pytest

from tests.analysis.diagnosis.test_diagnosis import CALM, HOT, INSIDE, QUESTION, at, rated, reads, said
from tests.made_run import MACHINE, MIB


@pytest.mark.parametrize(
    ("rate", "noise", "core", "answer"),
    [
        (50.0, CALM, 80.0, "Yes, at 1 of 1 point; clearest"),
        (10.0, CALM, 80.0, "No, at 1 of 1 point; clearest"),
        (19.5, CALM, 80.0, "Undecided, for the measurements overlap, at 1 of 1 point; clearest"),
        (10.0, CALM, 10.2, "Not shown, for the cores are the limit before L3 is, at 1 of 1 point; clearest"),
        (50.0, CALM[:3], 80.0, "Cannot be told, at 1 of 1 point; such as head f16: the point has 3 launches"),
    ],
)
def test_l3_in_plain_words(rate, noise, core, answer):
    found = said(rated(rate, HOT, noise, core=core, **INSIDE) + reads())["l3"]
    assert found.startswith(f"{QUESTION} {answer}")


def test_l3_has_its_ratio_and_interval():
    """49.5 to 50.5 GB/s against 20 of memory, and 12 of its own from there."""
    found = said(rated(50.0, HOT, **INSIDE) + reads())["l3"]
    plain = "plain reads run 3.00 times (3.00..3.00) as fast from L3 as from memory"
    own = "the decode 4.17 times (4.17..4.17) as fast, at 2.50 times (2.50..2.50) plain reads of memory"
    assert found.endswith(f"clearest head f16: {plain}; {own}.")
    found = said(rated(10.0, HOT, core=10.2, **INSIDE) + reads())["l3"]
    assert found.endswith("plain reads of memory; the core alone allows 0.51 times plain reads of memory.")


def test_points_that_disagree_are_counted():
    records = rated(60.0, at(512, residency="hot"), **INSIDE) + reads()
    for context, rate in ((1024, 10.0), (2048, 5.0)):
        records += rated(rate, at(context, residency="hot"), **INSIDE)
    found = said(records)["l3"]
    assert found.startswith(f"{QUESTION} No, at 2 of 3 points, yes at 1; clearest head f16 t=2048: plain")
    assert "; of those that say yes, clearest head f16 t=512: plain reads run" in found and "at 3.00 times" in found


def test_of_points_that_the_core_limits_the_best_is_told():
    records = rated(16.0, at(512, residency="hot"), core=16.1, **INSIDE) + reads()
    records += rated(5.0, at(1024, residency="hot"), core=5.1, **INSIDE)
    assert "clearest head f16 t=512: plain" in said(records)["l3"]


def test_points_that_the_core_limits_do_not_hide_what_others_settle():
    """One point alone may look otherwise by chance."""
    limited = [rated(10.0, at(64 << n, residency="hot"), core=10.2, **INSIDE) for n in range(4)]
    records = reads() + sum(limited, []) + rated(50.0, HOT, **INSIDE)
    assert said(records)["l3"].startswith(f"{QUESTION} Not shown, for the cores are the limit before L3 is, at 4 of 5 ")
    records += rated(60.0, at(1024, residency="hot", dtype="f32"), **INSIDE)
    found = said(records)["l3"]
    assert found.startswith(f"{QUESTION} Yes, where the cores allow it, at 2 of 6 points, limited by the cores at 4; ")
    assert "at 3.00 times" in found and "say yes" not in found


def test_a_few_settle_nothing_where_most_are_undecided():
    records = reads() + sum((rated(50.0, at(512 << n, residency="hot"), **INSIDE) for n in range(2)), [])
    for n in range(3):
        records += rated(19.5, at(64 << n, residency="hot"), **INSIDE)
    found = said(records)["l3"]
    assert found.startswith(f"{QUESTION} Undecided, for the measurements overlap, at 3 of 5 points, yes at 2; ")


def test_where_l3_is_closed_another_number_of_threads_is_named():
    """2 x 12 MiB of L2 before 32 MiB of L3: 1.5 x 12 MiB of one thread are within 0.7 x 32 MiB, of two not."""
    large = tuple(replace(cache, size=12 * MIB) if cache.level == 2 else cache for cache in MACHINE.caches)
    found = said(rated(15.0), replace(MACHINE, caches=large, allowed=(0, 1)))
    assert found["l3"].endswith("Not tested: it is not testable at 2 threads; try --threads 1.")

"""What a run is said to say of L3: planted numbers, and the sentence that follows."""

from dataclasses import replace

import pytest

from kvbench.analysis.diagnosis.bandwidth import l3
from kvbench.analysis.frames import points
from kvbench.analysis.names import short_names
from tests.analysis.diagnosis import planted
from tests.analysis.diagnosis.planted import PLANTS
from tests.analysis.diagnosis.test_diagnosis import CALM, HOT, INSIDE, QUESTION, at, rated, reads, said
from tests.made_run import MACHINE, MIB

ANSWERS = {
    "confirmed": "Yes, at ",
    "refuted": "No, at ",
    "core-bound": "Not shown, for the cores are the limit before L3 is, at ",
    "private-cache": "Not tested: none lies in L3, 3 in caches that a core has to itself",
    "not testable": "Cannot be told, at ",
    "unstable": "Undecided, for the measurements overlap, at ",
    "": "Not tested: ",
}


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
    """49.5 to 50.5 against 19 to 21 GB/s."""
    found = said(rated(50.0, HOT, **INSIDE) + reads())["l3"]
    assert found.endswith("head f16: 50 GB/s against 20 of plain reads from memory, 2.50 times (2.36..2.66).")
    found = said(rated(10.0, HOT, core=10.2, **INSIDE) + reads())["l3"]
    assert found.endswith("0.50 times (0.47..0.53); the core alone allows 10.2.")


def test_points_that_disagree_are_counted():
    records = rated(60.0, at(512, residency="hot"), **INSIDE) + reads()
    for context, rate in ((1024, 10.0), (2048, 5.0)):
        records += rated(rate, at(context, residency="hot"), **INSIDE)
    found = said(records)["l3"]
    assert found.startswith(f"{QUESTION} No, at 2 of 3 points, yes at 1; clearest head f16 t=2048: 5 GB/s")
    assert "; of those that say yes, clearest head f16 t=512: 60 GB/s against 20 of plain reads from memory, 3" in found


def test_of_points_that_the_core_limits_the_best_is_told():
    records = rated(16.0, at(512, residency="hot"), core=16.1, **INSIDE) + reads()
    records += rated(5.0, at(1024, residency="hot"), core=5.1, **INSIDE)
    assert "clearest head f16 t=512: 16 GB/s" in said(records)["l3"]


def test_points_that_the_core_limits_do_not_hide_what_others_settle():
    """One point alone may look otherwise by chance."""
    limited = [rated(10.0, at(64 << n, residency="hot"), core=10.2, **INSIDE) for n in range(4)]
    records = reads() + sum(limited, []) + rated(50.0, HOT, **INSIDE)
    assert said(records)["l3"].startswith(f"{QUESTION} Not shown, for the cores are the limit before L3 is, at 4 of 5 ")
    records += rated(60.0, at(1024, residency="hot", dtype="f32"), **INSIDE)
    found = said(records)["l3"]
    assert found.startswith(f"{QUESTION} Yes, where the cores allow it, at 2 of 6 points, limited by the cores at 4; ")
    assert "60 GB/s against 20 of plain reads from memory" in found and "say yes" not in found


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


@pytest.mark.parametrize("name", PLANTS)
def test_the_sentence_on_l3_is_that_of_the_planted_truth(name):
    """Of a host without known caches no point lies in L3, whatever the word of its points is."""
    plant = PLANTS[name]
    words = ("",) if not plant.host.declared else (plant.word, *plant.allowed)
    right = 0
    for seed in range(5):
        told = points(plant.records(seed), planted.machine(plant.host))
        answer = l3(told.assign(short=short_names(told)), planted.machine(plant.host)).removeprefix(f"{QUESTION} ")
        right += any(answer.startswith(ANSWERS[word]) for word in words)
        assert not any(answer.startswith(ANSWERS[word]) for word in plant.never)
    assert right >= 4

"""The list of machines: who is ranked, who ties, and in which order."""

from dataclasses import replace

import pytest

from kvbench.analysis.means.standings import Allowed, Entry, described, standings
from kvbench.model import Fact
from tests.made_run import KIB, machine


def entry(name, tokens, version="1.0.0", score="1.0", virtual=True, kind="zen", spread=1.0):
    widths = tuple(
        Allowed(
            bits=bits,
            tokens=times * tokens,
            low=times * (tokens - spread),
            high=times * (tokens + spread),
            share=0.9,
            dtype="f16",
            variant="flash",
            layout="head",
        )
        for bits, times in ((16, 1), (8, 2))
    )
    return Entry(
        machine=name,
        place="x",
        cpu="a CPU",
        cores=2,
        virtual=virtual,
        kind=(kind,),
        widths=widths,
        grade="valid",
        score=score,
        version=version,
        created="2026-01-02T03:04:05+00:00",
    )


def listed(*entries):
    return [(each.entry.machine, each.rank) for each in standings(entries).of("virtual")]


def test_the_fastest_leads_and_intervals_that_overlap_tie():
    """c meets b, and b meets a; but a is surely faster than c."""
    assert listed(entry("c", 48.2), entry("a", 51), entry("b", 49.9)) == [
        ("a", 1),
        ("b", 1),
        ("c", 2),
    ]
    apart = [entry("c", 40), entry("a", 60), entry("b", 50)]
    assert listed(*apart) == [("a", 1), ("b", 2), ("c", 3)]


def test_ends_that_meet_tie():
    assert listed(entry("a", 52), entry("b", 50)) == [("a", 1), ("b", 1)]


def test_a_figure_without_an_interval_is_a_point():
    one, other = entry("a", 50, spread=0), entry("b", 49, spread=0)
    assert listed(one, other) == [("a", 1), ("b", 2)]


def test_ranks_start_again_with_each_version_and_the_newest_comes_first():
    """0.10 is newer than 0.9."""
    own = [entry("a", 60, "0.9.0"), entry("b", 50, "0.9.0"), entry("c", 10, "0.10.0")]
    assert listed(*own) == [("c", 1), ("a", 1), ("b", 2)]
    assert standings(own).versions == 2


def test_sweeps_come_last_by_name_and_have_no_rank():
    own = [entry("z", 90, score=""), entry("y", 95, score=""), entry("a", 10)]
    assert listed(*own) == [("a", 1), ("y", None), ("z", None)]
    assert standings(own).swept and not standings(own[2:]).swept


def test_bare_metal_is_ranked_apart():
    found = standings([entry("a", 50), entry("b", 90, virtual=False), entry("c", 80, virtual=None)])
    ranks = {
        each.kind: [(own.entry.machine, own.rank) for own in each.rows] for each in found.lists
    }
    assert ranks == {"virtual": [("a", 1)], "metal": [("b", 1)], "unknown": [("c", 1)]}
    assert not found.ranked


@pytest.mark.parametrize("kinds", [0, 1, 2, 3, 4])
def test_kinds_of_scores_are_counted(kinds):
    """Twice each, and one of a sweep, which does not count."""
    own = [entry(f"{n}", 50, kind=str(n % max(kinds, 1))) for n in range(2 * kinds)]
    found = standings([*own, entry("s", 50, kind="other", score="")])
    assert (found.kinds, found.few) == (kinds, kinds < 3)


def test_a_machine_is_described_by_its_facts():
    facts = {
        "vendor": Fact("GenuineX", "", "high"),
        "architecture": Fact("x86_64", "", "high"),
        "isa": Fact(["scalar", "avx2"], "", "high"),
        "l1d": Fact(32 * KIB, "", "high"),
        "l2": Fact(512 * KIB, "", "high"),
        "hypervisor": Fact("KVM", "", "high"),
    }
    found = described(replace(machine(4), facts=facts))
    assert found["kind"] == ("GenuineX", "x86_64", "avx2", "32768", "524288")
    assert (found["cores"], found["virtual"]) == (4, True)
    hidden = facts | {"vendor": Fact(None, "", "none"), "hypervisor": Fact("none", "", "high")}
    found = described(replace(machine(4), facts=hidden), "GenuineY")
    assert found["kind"][0] == "GenuineY" and found["virtual"] is False
    assert described(machine(4))["virtual"] is None

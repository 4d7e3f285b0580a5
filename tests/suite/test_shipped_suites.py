"""The suites that come with the package, expanded on made-up machines: all are valid, and fit the
promised time.
"""

import hashlib
from itertools import product

import pytest

from kvbench.model.planes import apart
from kvbench.plan import expand, forecast
from kvbench.plan.expansion import CPUS, MEMORY, NO_FORMAT, NO_KERNEL, NO_PEER, NO_TIER
from kvbench.plan.needs import slice_of
from kvbench.plan.shapes import CLOSED, INVALID, NO_NODE, UNKNOWN
from kvbench.regime import classify, far_bytes
from kvbench.suite import find, shipped
from kvbench.worker.family import families
from tests.plan.test_expansion import SMALL_L3, reasons, site
from tests.plan.test_plan import BARE, DIES, TWO

MACHINES = {"two": TWO, "dies": DIES, "small": SMALL_L3, "bare": BARE}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_suites_expand(name, machine):
    found = expand(find(name), site(MACHINES[machine]))
    points = found.points
    assert len(set(points)) == len(points)
    assert points or (name, machine) == ("l3fit", "bare"), "no L3, nothing to ask"
    assert found.needs.keys() == found.asked.keys() == set(points)
    for point in points:
        shape = point.shape
        assert shape.q_heads % shape.kv_heads == 0 and shape.context <= shape.capacity
        assert set(point.cpus) <= set(MACHINES[machine].allowed) and len(set(point.cpus)) == len(
            point.cpus
        )
        assert found.needs[point].memory <= found.memory
    expected = {NO_TIER, NO_KERNEL, CPUS, CLOSED, UNKNOWN, MEMORY, INVALID, NO_PEER, NO_FORMAT}
    assert reasons(found) <= expected | ({NO_NODE} if name == "latency" else set())
    if machine == "bare":
        unknown = [skip.facts for skip in found.skips if skip.reason == UNKNOWN]
        assert {facts["context"].level for facts in unknown if facts["threads"] != "domain"} <= {
            2,
            3,
        }


@pytest.mark.parametrize(
    ("name", "most"),
    [("smoke", 30), ("quick", 360), ("standard", 1440), ("speculate", 310), ("mixed", 300)],
)
@pytest.mark.parametrize("machine", MACHINES)
def test_times_that_are_promised(name, most, machine):
    assert forecast(expand(find(name), site(MACHINES[machine]))).seconds <= most


def test_queries_stand_beside_one():
    found = families(expand(find("speculate"), site(TWO)).points)
    asked = [tuple(point.shape.q_len for point in each) for each in found]
    assert sorted(asked) == [(1, 2, 4, 5, 8, 8, 8, 16)] + [(1, 2, 4, 5, 8, 16)] * 23


# digests of the names of points, ceilings and sets, by which runs of other builds are joined
NAMES = {"quick": "0a8c4c8a5b791395", "score": "bcc263005cf04af5", "standard": "8d979aee9e12426d"}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_older_suites_stay(name):
    found = "\n".join(each.name for each in expand(find(name), site(isa="scalar")).plan.points)
    assert hashlib.sha256(found.encode()).hexdigest()[:16] == NAMES[name]


def test_pairs_and_scores_of_mixed():
    """Each pair beside its two formats, in both variants; operations on scores beside plain
    scores.
    """
    found = expand(find("mixed"), site(TWO))
    sets = [each.points for each in found.contrasts if each.factor == "dtype"]
    assert [points[0].variant for points in sets] == ["flash", "dot"]
    for points in sets:
        single = {point.dtype for point in points if not point.v_dtype}
        assert {half for point in points for half in apart(point.kv_dtype)} == single
        assert {point.k_scale for point in points} == {"token", "channel"}
    own = [each for each in families(found.points) if len(each) > 1]
    asked = [(each[1].shape.sinks, each[1].shape.softcap, each[1].shape.window) for each in own]
    assert sorted(asked) == [
        ("heads", 0, 0),
        ("heads", 0, 128),
        ("none", 50, 0),
        ("none", 50, 4096),
    ]


@pytest.mark.parametrize("machine", ["two", "small"])
def test_real_requests_are_served_on_a_machine_of_16_gib(machine):
    """Each batch of several requests is timed side by side in all three ways, within five
    minutes.
    """
    found = expand(find("serve"), site(MACHINES[machine], memory=15 << 30))
    assert not found.skips and forecast(found).seconds <= 300
    sets = [each.points for each in found.contrasts if each.factor == "lengths"]
    assert sorted((p[1].shape.batch, p[1].layout, p[1].dtype) for p in sets) == sorted(
        product((4, 16), ("head", "paged"), ("f16", "i8"))
    )
    for even, ragged, padded in sets:
        assert max(ragged.shape.held) == padded.shape.context > even.shape.context


@pytest.mark.parametrize("machine", ["two", "dies", "small"])
def test_full_is_large(machine):
    assert len(expand(find("full"), site(MACHINES[machine])).points) >= 3000


def test_l3fit_asks_how_many_slices_fit():
    found = expand(find("l3fit"), site(DIES))
    assert {p.shape.layers for p in found.points} >= {1, 2, 4, 8, 16, 32}
    words = {classify(DIES, p.cpus, slice_of(p)).word for p in found.points if p.residency == "hot"}
    assert {"L3", "DRAM"} <= words


@pytest.mark.parametrize("machine", MACHINES)
def test_the_score_rotates_whole_sets_of_layers_beyond_all_caches(machine):
    found = expand(find("score"), site(MACHINES[machine]))
    for point, needed in found.needs.items():
        far = far_bytes(MACHINES[machine], point.cpus)
        assert point.shape.layers % 32 == 0 and needed.walked >= far
        assert point.shape.layers == 32 or needed.walked - 32 * needed.slice_walked < far, (
            "no more sets than it takes"
        )
    assert not found.contrasts

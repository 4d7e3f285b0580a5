"""Which points of the shipped suites are timed in the same rounds."""

from dataclasses import asdict, replace
from itertools import combinations

import pytest

from kvbench.model.contrast import value
from kvbench.native import default_library
from kvbench.plan import needs_here
from kvbench.plan.witnesses import contrasts, witnesses
from tests.made_run import DECODE, MACHINE
from tests.sizing.made import GIB

GOES_WITH = {
    "dtype": {"scale"},
    "layout": {"inner", "block_tokens", "order"},
    "order": {"order"},
}
GOES_WITH |= {"threads": {"cpus"}, "group": {"q_heads"}}
DTYPES = default_library().words("dtype")
ALL = [
    replace(DECODE, layout=layout, dtype=dtype, pages=pages, cpus=cpus)
    for layout in ("head", "position", "paged")
    for dtype in DTYPES
    for pages in ("thp", "base")
    for cpus in ((0,), (0, 1))
]


def sets_of(points, memory=64 * GIB):
    return {each.factor: each for each in contrasts(needs_here(points, MACHINE), MACHINE, memory)}


@pytest.mark.parametrize(
    ("variant", "dtype", "own"),
    [
        ("flash", "e4m3", set()),
        ("dot", "q4_0", {"dot8"}),
        ("dot", "e4m3", {"dot16"}),
    ],
)
def test_a_point_has_the_peak_of_its_own_products_beside_it(variant, dtype, own):
    needs = needs_here([replace(DECODE, variant=variant, dtype=dtype)], MACHINE)
    found = {probe.op for probe in witnesses(needs, MACHINE) if not probe.bytes}
    assert found == {"flops", "clock"} | own


def facts(point):
    found = asdict(point)
    return found | found.pop("shape")


def test_points_of_a_set_differ_in_its_factor_alone():
    found = sets_of(ALL)
    assert {name: len(each.points) for name, each in found.items()} == {
        "layout": 3,
        "dtype": len(DTYPES),
        "pages": 2,
        "threads": 2,
    }
    for factor, each in found.items():
        assert len({value(point, factor) for point in each.points}) == len(each.points)
        for one, other in combinations(map(facts, each.points), 2):
            differ = {name for name in one if one[name] != other[name]}
            assert differ and differ <= {factor} | GOES_WITH.get(factor, set()), differ


def test_the_set_nearest_to_the_defaults_is_taken():
    assert {point.layout for point in sets_of(ALL)["dtype"].points} == {"head"}
    assert {(point.dtype, point.pages) for point in sets_of(ALL)["layout"].points} == {
        ("f16", "thp")
    }


def test_every_layout_stands_beside_another():
    """The set of the usual dtype lacks some layouts; of the sets with the rest, the largest is
    chosen.
    """
    narrow = {"variant": "dot", "dtype": "q4_0"}
    apart = [replace(DECODE, layout=layout, **narrow) for layout in ("head", "block16")]
    more = [replace(each, dtype="q8_0") for each in apart]
    more += [replace(DECODE, layout="position", variant="dot", dtype="q8_0")]
    found = contrasts(needs_here(ALL + apart + more, MACHINE), MACHINE, 64 * GIB)
    sets = [each.points for each in found if each.factor == "layout"]
    assert [{(point.layout, point.dtype) for point in points} for points in sets] == [
        {(layout, "f16") for layout in ("head", "position", "paged")},
        {(layout, "q8_0") for layout in ("head", "position", "block16")},
    ]


def test_each_level_is_a_question_of_its_own():
    hot = [replace(point, residency="hot") for point in ALL]
    found = contrasts(needs_here(ALL + hot, MACHINE), MACHINE, 64 * GIB)
    assert len([each for each in found if each.factor == "dtype"]) == 2
    assert all(len({point.residency for point in each.points}) == 1 for each in found)


def test_arenas_of_a_set_take_a_quarter_of_memory_at_most():
    of_one = needs_here(ALL, MACHINE)[ALL[0]].arena
    assert set(sets_of(ALL, 4 * of_one)) == set()
    found = sets_of(ALL, 20 * of_one)
    assert "layout" in found and "dtype" not in found


@pytest.mark.parametrize(
    "other", [replace(DECODE, layout="paged", dtype="i8"), replace(DECODE, residency="hot")]
)
def test_who_differs_in_more_is_in_no_set(other):
    assert not sets_of([DECODE, other])


PAIRED = (
    'dtype = ["f16", "q8_0", "q8_0+q4_0", "q4_0", "e4m3", "f16+q8_0"]\n'
    'variant = ["flash", "dot"]\n[[skip]]\nvariant = "dot"\ndtype = ["f16", "f16+q8_0"]'
)


def of_dtypes(found):
    return [
        (each.points[0].variant, [point.kv_dtype for point in each.points])
        for each in found.contrasts
        if each.factor == "dtype"
    ]


def test_pairs_stand_between_their_halves_in_each_variant(sweep):
    assert of_dtypes(sweep(PAIRED)) == [
        ("flash", ["f16", "q8_0", "q8_0+q4_0", "q4_0", "e4m3", "f16+q8_0"]),
        ("dot", ["q8_0", "q8_0+q4_0", "q4_0", "e4m3"]),
    ]


def test_where_not_all_fit_each_pair_has_its_halves(sweep):
    whole = sweep(PAIRED)
    arenas = [whole.needs[point].arena for point in whole.contrasts[0].points]
    found = of_dtypes(sweep(PAIRED, memory=4 * (sum(arenas) - 1)))
    assert found[:2] == [
        ("flash", ["q8_0", "q8_0+q4_0", "q4_0"]),
        ("flash", ["f16", "q8_0", "f16+q8_0"]),
    ]

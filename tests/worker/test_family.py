"""Points that differ in what is read between their passes, or in their queries: they are visited
together, and what lies between is really read.
"""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from kvbench.errors import Unsupported
from kvbench.machine import describe
from kvbench.model import Contrast, DataCache, Plan, Record, Sample, quotients
from kvbench.model.contrast import FACTORS, lines
from kvbench.native import Library, default_library
from kvbench.plan.needs import needs_here
from kvbench.worker import loop, queries
from kvbench.worker.decoding import Decoding
from kvbench.worker.family import families
from kvbench.worker.foreign import bench_of
from kvbench.worker.ground import Ground
from kvbench.worker.launch import launch
from tests import made_run
from tests.made_job import CPU, bench, job

LINE = 64
SHAPE = replace(made_run.DECODE.shape, q_heads=4, kv_heads=2, head_dim=32, context=96, capacity=96)
DECODE = replace(
    made_run.DECODE,
    shape=SHAPE,
    cpus=(CPU,),
    pages="base",
    residency="hot",
    isa=default_library().isa(),
)
APPEND = replace(DECODE, op="append", variant="-", shape=replace(SHAPE, layers=3))
BETWEENS = (0, 3 * LINE, 64 << 10)
FAMILIES = {
    point.op: [replace(point, between=count) for count in BETWEENS] for point in (DECODE, APPEND)
}
ROUNDS = 4


def visits(points, **how):
    seen = list(launch(default_library(), job(plan(points), **how)))
    records = {found.point: found for found in seen if isinstance(found, Record)}
    assert len(records) == sum(isinstance(found, Record) for found in seen) == len(points)
    return records


def plan(points):
    return Plan(tuple(points), 1, ROUNDS, 0.0002, 1)


def programs(record):
    return {sample.program for sample in record.samples}


@pytest.mark.parametrize("op", FAMILIES)
def test_all_have_the_same_rounds_and_witnesses(op):
    points = FAMILIES[op]
    records = visits(points[::-1])
    assert not any(record.error for record in records.values())
    base, *others = (records[point] for point in points)
    witnesses = {"core", "fma"} if op == "decode" else {"copy", "copy_nt", "fma"}
    twins = {"twin", "twin_ahead"} if op == "decode" else set()
    assert programs(base) == base.traffic.keys() == {"point"} | witnesses | twins
    for record in others:
        assert programs(record) == record.traffic.keys() == {"point", "alone"} | witnesses
        assert record.traffic["point"] == record.traffic["alone"] == base.traffic["point"]
        for name in witnesses:
            assert of(record, name) == of(base, name)
        assert of(record, "alone") == [replace(s, program="alone") for s in of(base, "point")]
        assert [sample.round for sample in of(record, "point")] == list(range(ROUNDS))
        assert of(record, "point") != of(others[0], "point") or record is others[0]
        assert record.max_abs_err < 1e-2 and record.ran == base.ran


def of(record, name) -> list[Sample]:
    return [sample for sample in record.samples if sample.program == name]


@pytest.mark.parametrize("op", FAMILIES)
def test_the_rest_of_a_family_has_only_the_point_beside_it(op):
    """As after a kill: in its own rounds, or in those of the remaining point with least between its
    passes.
    """
    _, small, large = FAMILIES[op]
    (alone,) = visits([large]).values()
    both = visits([large, small])
    for record in (alone, both[small], both[large]):
        assert not record.error and {"point", "alone"} <= programs(record)
        assert not {"twin", "twin_ahead"} & programs(record)
    assert of(both[small], "alone") == of(both[large], "alone")
    assert len(quotients(of(alone, "point"), of(alone, "alone"))) <= ROUNDS


def asked(queries, mask="chain", **facts):
    return replace(DECODE, shape=replace(SHAPE, q_len=queries, mask=mask), **facts)


def beside_the_first(points):
    """Their records. Each but the first has its own core roof, and the witnesses of the first."""
    records = visits(points[::-1])
    base, *others = (records[point] for point in points)
    shared = {"twin", "twin_ahead", "fma"}
    assert programs(base) == {"point", "core"} | shared
    for record in others:
        assert not record.error and record.max_abs_err < 1e-2
        assert programs(record) == record.traffic.keys() == {"point", "alone", "core"} | shared
        for name in shared:
            assert of(record, name) == of(base, name)
        assert of(record, "alone") == [replace(s, program="alone") for s in of(base, "point")]
        assert of(record, "core") != of(base, "core") and of(record, "core")[0].passes
    return base, *others


SEVERAL = [DECODE, asked(3), asked(4), asked(4, "block"), asked(4, "tree")]


def test_queries_stand_beside_one_in_its_rounds():
    base, *others = beside_the_first(SEVERAL)
    for record in others:
        flops = [record.traffic[name].flops for name in ("point", "alone")]
        assert flops[1] == base.traffic["point"].flops and flops[0] > 2.9 * flops[1]
        assert record.traffic["core"].flops == flops[0]


def test_the_rest_of_several_queries_has_one_query_beside_it():
    """As after a kill, or if one query was not asked for."""
    records = visits([asked(4), asked(3)])
    for record in records.values():
        assert not record.error and {"point", "alone", "core"} <= programs(record)
    some, more = records[asked(3)], records[asked(4)]
    assert of(some, "alone") == of(more, "alone")
    assert 3.9 * some.traffic["alone"].flops < more.traffic["point"].flops


@pytest.mark.parametrize(
    "point",
    [asked(4), replace(DECODE, shape=replace(SHAPE, softcap=2.0))],
    ids=["queries", "scores"],
)
def test_an_answer_of_the_one_beside_them_is_looked_at(point, monkeypatch):
    right = queries.Queries.right

    def wrong(own):
        found = right(own)
        return replace(found, out=found.out + (own._point == DECODE))

    monkeypatch.setattr(queries.Queries, "right", wrong)
    (record,) = visits([point]).values()
    assert "is off by" in record.error


def test_families_of_queries():
    """A point that differs in something else too is in another family."""
    streamed = [replace(point, between=64) for point in (DECODE, SEVERAL[1])]
    found = families([*SEVERAL[::-1], *streamed, asked(3, dtype="i8")])
    of_one = [DECODE, SEVERAL[1], *SEVERAL[:1:-1], streamed[0]]
    assert found == [of_one, [streamed[1]], [asked(3, dtype="i8")]]


def scored(point=DECODE, **facts):
    return replace(point, shape=replace(point.shape, **facts))


SCORED = [
    DECODE,
    scored(softcap=2.0),
    scored(sinks="heads"),
    scored(sinks="heads", softcap=2.0, alibi=8.0),
]
KEPT = [scored(window=40), scored(window=40, kept=5)]


def test_changed_scores_are_timed_beside_unchanged_scores():
    base, *others = beside_the_first(SCORED)
    for record in others:
        assert record.traffic["point"].bytes_compulsory == base.traffic["point"].bytes_compulsory


def test_a_point_that_keeps_more_tokens_has_reads_of_its_own_rows():
    records = visits(KEPT[::-1])
    base, kept = (records[point] for point in KEPT)
    assert not base.error and not kept.error
    assert programs(kept) == programs(base) | {"alone"}
    ratio = kept.traffic["twin"].bytes_compulsory / base.traffic["twin"].bytes_compulsory
    assert ratio == pytest.approx(45 / 40, rel=0.01)
    assert of(kept, "alone") == [replace(s, program="alone") for s in of(base, "point")]


@pytest.mark.parametrize("points", [SCORED[1:3], KEPT[1:]], ids=["scores", "kept"])
def test_the_rest_of_scores_has_plain_scores_beside_it(points):
    records = visits(points)
    for record in records.values():
        assert not record.error and {"point", "alone", "core", "twin"} <= programs(record)
    assert len({tuple(of(record, "alone")) for record in records.values()}) == 1


def test_families_of_scores():
    """With several queries, the query beside them has the same changed scores."""
    several = [scored(asked(4), softcap=2.0), scored(asked(2), softcap=2.0)]
    found = families([*SCORED[::-1], *several, *KEPT])
    assert found == [[DECODE, *SCORED[:0:-1]], several[::-1], KEPT]


def test_no_thread_chases_beside_a_family():
    chased = [replace(each, chase="node") for each in (*SCORED, *SEVERAL[1:])]
    assert families([*SCORED, *chased]) == [SCORED, *([each] for each in chased)]


def test_families_stand_in_their_order():
    other = replace(DECODE, dtype="i8")
    probe = made_run.READ
    _, small, large = FAMILIES["decode"]
    found = families([large, probe, other, DECODE, small, replace(other, between=64)])
    assert found == [[DECODE, small, large], [probe], [other, replace(other, between=64)]]


@pytest.mark.parametrize("place", range(3))
def test_an_error_of_one_member_is_not_an_error_of_the_others(place, monkeypatch):
    points, right = FAMILIES["decode"], queries.Queries.right
    monkeypatch.setattr(
        queries.Queries,
        "right",
        lambda own: replace(
            right(own), out=right(own).out + (own._point.between == BETWEENS[place])
        ),
    )
    records = visits(points)
    for number, point in enumerate(points):
        record = records[point]
        assert ("is off by" in record.error) == (number == place) == (not record.samples)
        assert number == place or not point.between or "alone" in programs(record)


@pytest.mark.parametrize("place", range(3))
def test_samples_of_one_member_leave_the_others_alone(place, monkeypatch):
    """Each point's answers are checked separately."""
    left = Decoding.verify_left

    def worse(own, passes):
        own.queries.out[0] += own.point.between == BETWEENS[place]
        return left(own, passes)

    monkeypatch.setattr(Decoding, "verify_left", worse)
    points = [
        replace(point, residency="rotate", shape=replace(SHAPE, layers=2))
        for point in FAMILIES["decode"]
    ]
    records = visits(points)
    assert ["is off by" in records[point].error for point in points] == [
        number == place for number in range(3)
    ]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lines", [1, 3, 1000])
def test_memory_is_read_between_passes(threads, lines):
    """Its sum of 16-bit words grows by the lines after the last ones; the point's own traffic does
    not include them.
    """
    cpus = describe().allowed[:threads]
    point = replace(DECODE, cpus=cpus, between=lines * LINE)
    with bench(point) as found:
        (alone,) = found.alone
        task, far = found.own.between, found.far.arena.view()[: found.far.whole.size]
        words = far.view(np.uint16).reshape(-1, LINE // 2)
        assert (words.any(axis=1)).all()
        at = 0
        for passes in (1, 2, 5):
            before, end = task.sum(), at + passes * lines
            found.team.run(*found.own.tasks, passes=passes, between=task)
            grown = int(words[at:end].sum(dtype=np.uint64))
            assert (task.sum() - before) % (1 << 16) == grown % (1 << 16)
            at = end
        assert alone.between is None and alone.tasks == found.own.tasks
        assert all(each.between is None for each in (*found.witnesses, found.pace))
        assert found.own.traffic() == alone.traffic()


def test_in_l3_all_share_the_reads_of_memory_and_the_same_kernel_there():
    shape = replace(SHAPE, context=1024, capacity=1024)  # 256 KiB
    caches = tuple(
        DataCache(level, size << 10, (CPU,)) for level, size in ((1, 32), (2, 64), (3, 1024))
    )
    points = [replace(each, shape=shape) for each in FAMILIES["decode"]]
    machine = replace(describe(), caches=caches, allowed=(CPU,))
    asked = job(plan(points))
    needs = needs_here(points, machine)
    asked = replace(asked, machine=machine, needs={each.name: needs[each] for each in points})
    records = {
        found.point: found
        for found in launch(default_library(), asked)
        if isinstance(found, Record)
    }
    near = {"slice", "memory", "rotated"}
    for point, record in records.items():
        assert not record.error and near <= programs(record) == record.traffic.keys()
        assert all(of(record, name) == of(records[points[0]], name) for name in near), point


def test_an_older_library_is_refused(monkeypatch):
    monkeypatch.setattr(Library, "reads_on", False)
    records = visits(FAMILIES["decode"])
    assert not records[DECODE].error
    for point in FAMILIES["decode"][1:]:
        assert "is too old to read memory between passes" in records[point].error
    with Ground(default_library()) as ground, bench(FAMILIES["append"][1], ground, bench_of) as one:
        with pytest.raises(Unsupported, match="newer build"):
            _ = one.own


def test_a_contrast_reads_between_passes_too(monkeypatch):
    """Each point reads as much as it asks for; points that differ in that are not a contrast."""
    points = tuple(replace(FAMILIES["decode"][1], dtype=dtype) for dtype in ("f16", "i8"))
    seen, real = [], loop.rounds

    def noted(programs, *args, **how):
        seen.extend(each.between.traffic().bytes_compulsory for each in programs)
        return real(programs, *args, **how)

    monkeypatch.setattr("kvbench.worker.bench.rounds", noted)
    contrast = Contrast("dtype", points)
    _, record = launch(default_library(), job(Plan((contrast,), 1, ROUNDS, 0.0002, 1)))
    assert not record.error and programs(record) == {"f16", "i8"}
    assert seen == [3 * LINE] * 2
    assert not [line for factor in FACTORS for line in lines(FAMILIES["decode"], factor)]


@pytest.mark.skipif(len(describe().allowed) < 2, reason="no core is left for a neighbour")
def test_each_has_the_neighbour_beside_it():
    points = FAMILIES["decode"]
    seen = launch(default_library(), job(replace(plan(points), neighbour=True)))
    records = [found for found in seen if isinstance(found, Record)]
    for record in records:
        assert not record.error and "neighbour" in programs(record) == record.traffic.keys()
        assert record.neighbour == median(each.load for each in of(record, "neighbour")) > 0
    assert len({of(record, "neighbour")[0].seconds for record in records}) == len(points)

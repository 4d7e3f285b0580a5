"""Kernels of several dtypes in the same rounds, each beside its limits; and plain reads of memory
beside every decode from memory. What counts as memory is made small.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from kvbench import regime
from kvbench.analysis.measured.line import members
from kvbench.analysis.measured.rates import measured
from kvbench.machine import describe
from kvbench.model import Contrast, Plan, Record
from kvbench.model.contrast import KERNEL
from kvbench.native import default_library
from kvbench.plan import needs_here
from kvbench.plan.needs import members as members_of
from kvbench.worker.decoding import Decoding
from kvbench.worker.launch import launch
from tests.made_job import CPU, job
from tests.made_run import DECODE

FAR = 4 << 20  # bytes that no cache is to help with
SIDES = ("", "twin/", "twin_ahead/", "core/", "core_off/")


def of(dtype, layout="head", **facts):
    shape = replace(DECODE.shape, context=512, capacity=512)
    facts = {"cpus": (CPU,), "pages": "base", "schedule": "auto"} | facts
    return replace(DECODE, shape=shape, dtype=dtype, layout=layout, **facts)


POINTS = of("f32"), of("i8", "blockt"), of("q4_0")
LINE = Contrast(KERNEL, POINTS)


@pytest.fixture
def bare(monkeypatch):
    """A machine with unknown caches: more than FAR is memory."""
    monkeypatch.setattr(regime, "FAR_BYTES", FAR)
    return replace(describe(), caches=())


def visited(machine, *points):
    plan = Plan(points, 1, 3, 0.0005, 1)
    needs = needs_here(points, machine)
    own = {each.name: needs[each] for one in points for each in members_of(one)}
    asked = replace(job(plan, points), machine=machine, needs=own)
    return [found for found in launch(default_library(), asked) if isinstance(found, Record)]


def test_all_that_is_compared_is_in_every_round(bare):
    (record,) = visited(bare, LINE)
    assert not record.error
    wanted = {f"{side}{p.dtype}" for side in SIDES for p in POINTS} | {"memory", "fma"}
    assert record.traffic.keys() == wanted
    for number in range(3):
        assert {s.program for s in record.samples if s.round == number} == wanted
    assert record.members.keys() == {"f32", "i8", "q4_0"}
    assert all(0 < each.max_abs_err < 1 for each in record.members.values())
    assert record.max_abs_err == max(each.max_abs_err for each in record.members.values())


def test_each_member_is_as_if_it_were_alone(bare):
    """Bytes, footprints and caches; and its shares come from its own rounds."""
    (line,), alone = visited(bare, LINE), visited(bare, *POINTS)
    alone = {record.point: record for record in alone}
    found = members([line, *alone.values()])
    assert [record.point for record in found] == list(POINTS)
    for record in found:
        other = alone[record.point]
        # reads of memory are those of the first, in pieces of its own
        assert record.traffic == other.traffic | {"memory": line.traffic["memory"]}
        for name in ("slices", "slice_bytes", "footprint", "level", "core_level"):
            assert getattr(record, name) == getattr(other, name), name
        assert record.footprint >= FAR and record.complete
        of_line = {
            s.round: s.seconds / s.passes for s in line.samples if s.program == record.point.dtype
        }
        own = {s.round: s.seconds / s.passes for s in record.samples if s.program == "point"}
        assert own == of_line
        assert measured([record]).shares.keys() <= {
            *("point", "twin", "twin_ahead", "core", "core_off", "memory")
        }


def test_decodes_from_memory_are_beside_plain_reads_of_it(bare):
    """A pass over one of its own slices; if they are few, of as many bytes elsewhere."""
    hot, few = of("f16", residency="hot"), of("f16", residency="evicted")
    own, near, swept = (next(r for r in visited(bare, each)) for each in (of("f16"), hot, few))
    slice_bytes = own.slice_bytes
    assert own.slices * slice_bytes >= FAR
    assert own.traffic["memory"].bytes_compulsory == slice_bytes // 64 * 64
    assert swept.traffic["memory"].bytes_compulsory == slice_bytes // 64 * 64
    # nobody knows which cache holds it, so it counts as memory
    assert near.traffic.keys() == own.traffic.keys()


def test_decodes_from_caches_have_no_read_of_memory():
    """One slice of 512 tokens stays in L1 or L2 of any machine that declares them."""
    machine = describe()
    if not regime.holds(machine, (CPU,)):
        pytest.skip("no cache is known here")
    (record,) = visited(machine, of("i8", residency="hot"))
    assert "memory" not in record.traffic


def test_reads_of_memory_walk_all_slices(bare, monkeypatch):
    """One after another, and no slice twice before all others."""
    starts = []
    real = Decoding.probe
    monkeypatch.setattr(
        Decoding,
        "probe",
        lambda bench, op, *more, **facts: (
            starts.append((op, facts.get("to"))) or real(bench, op, *more, **facts)
        ),
    )
    (record,) = visited(bare, of("q8_0"))
    reads = [to for op, to in starts if op == "read"]
    assert len(reads) == record.slices
    places = [to.base - reads[0].base for to in reads]
    assert all(to.size <= record.slice_bytes for to in reads)
    assert all(b - a >= reads[0].size for a, b in pairwise(places))
    assert places[-1] + reads[-1].size <= record.slices * record.slice_bytes
    assert places[-1] >= FAR - 2 * record.slice_bytes

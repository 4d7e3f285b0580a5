"""What a run says: planted numbers, and the facts that follow."""

from dataclasses import replace

import pytest

from kvbench.analysis.differs.contrasts import FASTER, SAME, UNKNOWN
from kvbench.analysis.means.diagnosis.bandwidth import BestRead, MemoryRate, MemoryShare, MemoryUntested
from kvbench.analysis.means.diagnosis.choices import Choice, Lead, ThreadsHelp, ThreadsSuffice
from kvbench.analysis.means.diagnosis.l3 import L3Untested
from kvbench.analysis.means.diagnosis.limits import (
    Bounds,
    DtypeBound,
    Fit,
    ModelTokens,
    PassCost,
    Reach,
    Stretch,
    Tokens,
)
from kvbench.analysis.means.diagnosis.stores import StoreRate, Stores
from kvbench.analysis.means.diagnosis.trust import Above, Doubts, Noise
from kvbench.analysis.means.diagnosis.values import Interval, Untested
from kvbench.analysis.means.findings import findings
from kvbench.analysis.means.models import Geometry
from kvbench.model import Check, Contrast
from kvbench.report.words import sentences
from tests.made_run import DECODE, MACHINE, MIB, RUN, STORE, failed, probe, visit

CALM = (0.99, 1.0, 1.0, 1.0, 1.0, 1.0, 1.01)  # by launch
MODEL = Geometry("small", 24, 8, 2, 64, 65536)
INSIDE = {"walked": 9 * MIB, "layers": 1}  # of 32 MiB, and more than both threads' L2
HOT = replace(DECODE, residency="hot")
PAGED = replace(DECODE, layout="paged", inner="head", block_tokens=64)


def facts(records, machine=MACHINE, models=(MODEL,), checks=()):
    return findings(RUN, records, machine, checks, models).diagnosis


def fact(kind, *run, **known):
    """The only one of its kind."""
    (found,) = (each for each in facts(*run, **known) if isinstance(each, kind))
    return found


def near(value):
    return pytest.approx(value, rel=1e-3)


def sure(value):
    return Interval(near(value), near(value), near(value))


def chosen(records, factor):
    (found,) = (each for each in facts(records) if isinstance(each, Choice) and each.factor == factor)
    return found


def at(context, **changes):
    return replace(DECODE, shape=replace(DECODE.shape, context=context, capacity=context), **changes)


def rated(rate, point=DECODE, noise=CALM, *, twin=None, core=80.0, **facts):
    """All launches of a decode; its twin reads at `twin` GB/s, a fourth faster unless told."""
    each = {"twin": twin or rate * 1.25, "core": core}
    if point.residency == "hot":
        each |= {"slice": 60.0, "memory": 20.0, "rotated": 12.0}
    return [
        visit(n, {"point": [rate * times], **{name: [other * times] for name, other in each.items()}}, point, **facts)
        for n, times in enumerate(noise)
    ]


def reads(rate=20.0, noise=(0.95, 1.0, 1.0, 1.0, 1.0, 1.05)):
    return [probe(n, rate * times) for n, times in enumerate(noise)]


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_the_fastest_is_held_against_reads_of_the_same_threads():
    """15, 10 and 8 of 20 GB/s."""
    found = fact(MemoryRate, rated(15.0) + rated(10.0, at(2048)) + rated(8.0, at(4096)) + reads())
    share = MemoryShare("head f16 t=1024", near(15), near(20), 2, near(0.75), found.held.best, 3, near(0.5))
    assert found == MemoryRate("head f16 t=1024", near(15), share)
    assert found.held.best == BestRead(near(20), "plain", 2, near(0.75), False)


def test_without_a_ceiling_the_share_is_unknown():
    assert fact(MemoryRate, rated(15.0)) == MemoryRate("head f16", near(15), None, "there is no read ceiling")


def test_the_fastest_may_have_no_ceiling():
    found = fact(MemoryRate, rated(15.0) + rated(25.0, replace(DECODE, pages="base")) + reads())
    assert (found.name, found.gbps) == ("head f16 base", near(25))
    assert (found.held.name, found.held.gbps, found.held.points) == ("head f16 thp", near(15), 1)


def test_a_rate_above_the_ceiling_exceeds_it():
    best = fact(MemoryRate, rated(25.0) + reads()).held.best
    assert best.exceeded and best.share == near(1.25)


def test_what_was_not_tested_is_said():
    assert facts([]) == (MemoryUntested(Untested.NO_DECODE), L3Untested(Untested.NO_DECODE))
    assert fact(L3Untested, rated(15.0)) == L3Untested(Untested.ELSEWHERE)
    assert fact(MemoryUntested, rated(50.0, HOT, **INSIDE)).why == Untested.NEARER
    unknown = rated(15.0) + reads(), replace(MACHINE, caches=())
    assert fact(MemoryUntested, *unknown).why == fact(L3Untested, *unknown).why == Untested.UNKNOWN_CACHES


# ---- layouts, dtypes, threads ----------------------------------------------------------------------------------------


def layouts(rates, contexts=(1024, 2048, 4096)):
    """`rates`: by layout, of every context."""
    return [
        record
        for layout, rate in rates.items()
        for context in contexts
        for record in rated(rate, at(context, layout=layout))
    ]


def test_the_best_layout_has_its_leads():
    """12 GB/s against 10 and 8, in each of three contexts: as many bytes, so 1.2 and 1.5 times."""
    found = chosen(layouts({"a": 10.0, "b": 12.0, "c": 8.0}) + reads(), "layout")
    leads = Lead("a", sure(1.2), "faster", 3, False), Lead("c", sure(1.5), "faster", 3, False)
    assert found == Choice("layout", "DRAM", "b", leads)


def test_a_choice_within_noise_or_of_few_launches():
    wide = (0.8, 1.0, 1.0, 1.0, 1.0, 1.2)
    records = rated(12.0, at(1024, layout="a"), wide) + rated(12.1, at(1024, layout="b"), tuple(reversed(wide)))
    found = chosen(records, "layout")
    assert found.winner == "b" and [(lead.over, lead.word) for lead in found.leads] == [("a", SAME)]
    found = chosen(rated(12.0, at(1024, layout="a"), (1.0,)) + rated(6.0, at(1024, layout="b"), (1.0,)), "layout")
    assert found.winner == "a" and found.leads == (Lead("b", sure(2), UNKNOWN, 1, False),)


def test_one_that_is_best_but_for_noise():
    records = layouts({"a": 10.0, "b": 12.0}, (1024,))
    records += rated(11.9, at(1024, layout="c"), (0.8, 1.0, 1.0, 1.0, 1.0, 1.2))
    found = chosen(records, "layout")
    assert found.winner == "b" and {lead.over: lead.word for lead in found.leads} == {"a": FASTER, "c": SAME}


def test_layouts_in_caches_are_told_where_none_is_from_memory():
    records = rated(40.0, replace(HOT, layout="a"), **INSIDE) + rated(50.0, replace(HOT, layout="b"), **INSIDE)
    found = chosen(records, "layout")
    assert (found.regime, found.winner, found.leads[0].ratio) == ("L3", "b", sure(1.25))


@pytest.mark.parametrize(
    ("factor", "winner", "ratio", "records"),
    [
        # both read 12 GB/s, but i8 half the bytes: twice the tokens
        ("dtype", "i8", 2.0, rated(12.0, at(1024)) + rated(12.0, at(1024, dtype="i8"), walked=128 * MIB)),
        ("variant", "flash", 1.5, rated(12.0) + rated(8.0, at(1024, variant="mine"))),
        ("block_tokens", "block=64", 2.0, rated(16.0, PAGED) + rated(8.0, replace(PAGED, block_tokens=8))),
        ("order", "sequential", 4 / 3, rated(16.0, PAGED) + rated(12.0, replace(PAGED, shuffle=1))),
        ("pages", "thp", 4.0, rated(16.0, PAGED) + rated(4.0, replace(PAGED, pages="base"))),
    ],
)
def test_what_can_be_chosen(factor, winner, ratio, records):
    found = chosen(records, factor)
    assert found.winner == winner and [lead.ratio for lead in found.leads] == [sure(ratio)]


def teams(rates):
    """`rates`: GB/s by number of threads."""
    return [record for count, rate in rates.items() for record in rated(rate, at(1024, cpus=tuple(range(count))))]


def test_threads_that_still_help():
    found = fact(ThreadsHelp, teams({1: 8.0, 2: 15.0}))
    assert found == ThreadsHelp("head f16", 1, 2, near(15), 1, sure(15 / 8), False)


def test_threads_that_no_longer_help():
    """19 of 20 GB/s with two; four are slower than three."""
    found = fact(ThreadsSuffice, teams({1: 8.0, 2: 19.0, 3: 20.0, 4: 18.0}))
    assert found == ThreadsSuffice("head f16", 1, 4, 2, near(0.95), 3, near(20), near(0.9))


def test_a_gain_is_that_of_the_same_rounds():
    """Visits of their own leave open whether it is one; what was timed in the same rounds says 1.1 in each launch."""
    one, two = at(1024, cpus=(0,)), at(1024, cpus=(0, 1))
    records = rated(8.0, one) + rated(10.0, two, (0.6, 0.7, 0.7, 1.0, 1.2, 1.2, 1.3))
    found = fact(ThreadsHelp, records)
    assert not found.beside and found.ratio.low < 1 < found.ratio.value
    pair = Contrast("threads", (two, one))
    beside = [replace(visit(n, {"threads=2": [11.0] * 3, "threads=1": [10.0] * 3}), point=pair) for n in range(7)]
    assert fact(ThreadsHelp, records + beside) == replace(found, ratio=sure(1.1), beside=True)


# ---- what binds, what follows ----------------------------------------------------------------------------------------

MEMORY = Stretch(4, "memory", near(19 / 20), near(19 / 80))


def test_what_binds_each_dtype():
    records = rated(19.0, twin=20.0) + rated(9.5, at(1024, dtype="i8"), twin=19.0, core=10.0)
    core = Stretch(4, "core", near(0.5), near(0.95))
    assert fact(Bounds, records) == Bounds(2, (DtypeBound("f16", (MEMORY,), 0, 1), DtypeBound("i8", (core,), 0, 1)))


def test_from_which_group_on_the_core_binds():
    """Two query heads on a KV head, four, eight."""
    points = [
        replace(DECODE, shape=replace(DECODE.shape, q_heads=DECODE.shape.kv_heads * group)) for group in (2, 4, 8)
    ]
    records = [*rated(19.0, points[0], twin=20.0), *(r for each in points[1:] for r in rated(9.5, each, core=10.0))]
    (found,) = fact(Bounds, records).dtypes
    assert found.stretches == (replace(MEMORY, group=2), Stretch(4, "core", near(0.8), near(0.95)))


def test_a_roof_that_its_point_beats_limits_nothing():
    """i8 at 2.74 times its core roof; of f16, one point of two."""
    beaten = rated(9.5, at(1024, dtype="i8"), twin=30.0, core=9.5 / 2.74)
    beaten += rated(9.5, at(2048), twin=30.0, core=4.0)
    found = fact(Bounds, rated(19.0, twin=20.0) + beaten).dtypes
    assert found == (DtypeBound("f16", (MEMORY,), 1, 2), DtypeBound("i8", (), 1, 1))


def test_tokens_at_the_shortest_and_the_longest_context():
    """16 MiB a layer at 16.777216 GB/s are 1 ms, 24 layers 24 ms; the slower layout does not count."""
    rate = 16 * MIB / 1e6
    records = rated(rate, at(1024)) + rated(rate / 4, at(4096)) + rated(rate / 2, at(1024, layout="position"))
    (found,) = fact(Tokens, records, models=(MODEL, replace(MODEL, name="other"))).shapes
    assert found == ModelTokens(("other", "small"), ((1024, near(1000 / 24)), (4096, near(1000 / 96))))
    assert not any(isinstance(each, Tokens) for each in facts(records, models=()))


def test_fit_has_context_and_verdict():
    """2 threads x 1.5 MiB to 0.7 x 32 MiB, at 9 MiB for 1024 tokens: 2548 of them."""
    short = replace(MODEL, name="short", max_context=2000)
    found = fact(Fit, rated(50.0, HOT, **INSIDE) + reads(), models=(MODEL, short))
    reaches = Reach(2548, False, ("small",)), Reach(2000, True, ("short",))
    assert found == Fit("f16", 2, reaches, (("confirmed", ("small", "short")),))
    assert fact(Fit, rated(15.0), replace(MACHINE, caches=())).closed.startswith("no L3 is known")


@pytest.mark.parametrize("launches", [2, 6])
def test_overhead_is_the_line_through_contexts(launches):
    """10 µs and 1 µs for every token, of 16 KiB each."""
    records = []
    for context in (1024, 2048, 4096, 8192):
        seconds, moved = 1e-5 + 1e-6 * context, 16384.0 * context
        records += rated(moved / seconds / 1e9, at(context), (1.0,) * launches, walked=moved * 16)
    found = fact(PassCost, records)
    assert (found.layout, found.dtype, found.threads, found.launches) == ("head", "f16", 2, launches)
    assert (found.fixed, found.gbps, found.enough) == (sure(1e-5), sure(16.384), launches == 6)
    assert found.misfit == pytest.approx(0, abs=1e-6)


def test_stores_beside_copies():
    records = [visit(n, {"point": [6.0], "copy": [8.0], "copy_nt": [12.0]}, STORE) for n in range(3)]
    rate = StoreRate("bulk", "head f16", "DRAM", near(6), near(16 * MIB / 6e9 / 1024), "copy_nt", near(0.5))
    assert fact(Stores, records) == Stores((rate,))


# ---- doubts ----------------------------------------------------------------------------------------------------------


def test_noise_and_what_is_missing():
    """The spread of the seconds is 1/0.95 - 1/1.05 of the median."""
    records = rated(15.0, noise=(0.95, 1.0, 1.0, 1.0, 1.0, 1.05)) + [failed(6)]
    wide = near(1 / 0.95 - 1 / 1.05)
    assert fact(Noise, records) == Noise(1, wide, wide, failed=1)
    assert fact(Noise, rated(15.0, noise=(1.0,))) == Noise(1, None, None)
    assert fact(Noise, rated(15.0, noise=(0.5, 0.5, 1.0, 1.0, 2.0, 2.0))).unstable == 1


def test_points_that_failed_are_counted():
    records = rated(15.0) + rated(10.0, at(2048), CALM[:4]) + rated(10.0, at(4096), CALM[:3]) + [failed(3, at(4096))]
    found = fact(Noise, records)
    assert (found.points, found.failed) == (3, 1)


def test_launches_without_ratios_are_told():
    """In two launches of six the twin's samples are a tenth as long as the point's."""
    records = rated(15.0, passes=10)
    short = [
        [replace(s, seconds=s.seconds / 10, passes=1) if s.program == "twin" else s for s in r.samples] for r in records
    ]
    records = [replace(r, samples=tuple(each)) if r.launch < 2 else r for r, each in zip(records, short, strict=True)]
    assert fact(Noise, records).uneven == 1 and fact(Noise, rated(15.0, passes=10)).uneven == 0


def test_preflight_warnings_are_doubts():
    checks = [Check("load", "warn", "1.5", ""), Check("swap", "ok", "none", ""), Check("machine", "warn", "KVM", "")]
    assert fact(Doubts, [], checks=checks) == Doubts((("load", "1.5"), ("machine", "KVM")))


def test_points_above_a_roof_are_told():
    found = fact(Above, rated(40.0, twin=30.0) + reads() + rated(10.0, at(2048)))
    assert (found.count, found.points, found.unexplained, found.name) == (1, 2, 1, "head f16 t=1024")
    assert found.roof == "twin" and not found.reason.startswith("suspect")


# ---- all of it -------------------------------------------------------------------------------------------------------

ORDER = ["bandwidth", "l3", "layout", "dtype", "fit", "threads", "bound", "tokens", "overhead", "stores"]
ORDER += ["suspect", "doubt"]


def whole():
    records = reads() + layouts({"head": 12.0, "position": 10.0}) + rated(8.0, at(1024, dtype="i8"))
    records += rated(6.0, at(1024, cpus=(0,))) + rated(50.0, HOT, **INSIDE)
    return records + [visit(n, {"point": [6.0], "copy": [8.0], "copy_nt": [12.0]}, STORE) for n in range(6)]


def test_sentences_come_in_order_and_end():
    found = sentences(facts(whole(), checks=[Check("load", "warn", "1.5", "")]))
    topics = [sentence.topic for sentence in found]
    assert topics == sorted(topics, key=ORDER.index) and len(found) <= 14
    assert {"bandwidth", "l3", "layout", "dtype", "fit", "threads", "bound", "tokens", "stores", "doubt"} <= set(topics)
    for sentence in found:
        assert sentence.text.endswith(".") and "\n" not in sentence.text and len(sentence.text) < 400
        assert "nan" not in sentence.text and "<NA>" not in sentence.text and "None" not in sentence.text


@pytest.mark.parametrize(
    "records",
    [
        [],
        [probe(0, 20.0)],
        [failed(0), failed(1)],
        [visit(0, {"point": [9.0]})],
        [visit(0, {"point": [9.0]}, STORE)],
        [visit(0, {"point": [9.0]}, HOT, **INSIDE), probe(0, 20.0)],
        whole()[:9],
    ],
)
@pytest.mark.parametrize("machine", [MACHINE, replace(MACHINE, caches=())])
def test_any_part_of_a_run_says_something(records, machine):
    found = {sentence.topic: sentence.text for sentence in sentences(facts(records, machine))}
    assert found["bandwidth"] and found["l3"]
    assert not any("nan" in text or "<NA>" in text or "None" in text for text in found.values())

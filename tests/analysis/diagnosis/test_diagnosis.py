"""What a run is said to say: planted numbers, and the sentences that follow."""

from dataclasses import replace

import pytest

from kvbench.analysis.diagnosis.bandwidth import BestRead, MemoryRate, MemoryShare, MemoryUntested
from kvbench.analysis.diagnosis.l3 import L3Untested
from kvbench.analysis.diagnosis.values import Untested
from kvbench.analysis.findings import findings
from kvbench.analysis.models import Geometry
from kvbench.model import Check, Contrast
from kvbench.report.words import sentences
from tests.made_run import DECODE, MACHINE, MIB, RUN, STORE, failed, probe, visit

CALM = (0.99, 1.0, 1.0, 1.0, 1.0, 1.0, 1.01)  # by launch
MODEL = Geometry("small", 24, 8, 2, 64, 65536)
INSIDE = {"walked": 9 * MIB, "layers": 1}  # of 32 MiB, and more than both threads' L2
HOT = replace(DECODE, residency="hot")


def facts(records, machine=MACHINE, models=(MODEL,), checks=()):
    return findings(RUN, records, machine, checks, models).diagnosis


def fact(kind, *run, **known):
    """The only one of its kind."""
    (found,) = (each for each in facts(*run, **known) if isinstance(each, kind))
    return found


def near(value):
    return pytest.approx(value, rel=1e-3)


def said(records, machine=MACHINE, models=(MODEL,), checks=()):
    found = sentences(facts(records, machine, models, checks))
    topics: dict[str, str] = {}
    for sentence in found:
        topics[sentence.topic] = (
            f"{topics[sentence.topic]} {sentence.text}" if sentence.topic in topics else sentence.text
        )
    return topics


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


def test_the_best_layout_is_named_with_its_lead():
    """12 GB/s against 10 and 8, in each of three contexts: as many bytes, so 1.2 and 1.5 times."""
    found = said(layouts({"a": 10.0, "b": 12.0, "c": 8.0}) + reads())["layout"]
    assert found == (
        "Layout of the cache, decoding from memory: b decodes fastest: 1.20 times a (1.20..1.20, 3 pairs) and "
        "1.50 times c (1.50..1.50, 3 pairs); not timed side by side."
    )


def test_no_difference_is_said():
    wide = (0.8, 1.0, 1.0, 1.0, 1.0, 1.2)
    records = rated(12.0, at(1024, layout="a"), wide) + rated(12.1, at(1024, layout="b"), tuple(reversed(wide)))
    found = said(records)["layout"]
    assert found.startswith(
        "Layout of the cache, decoding from memory: no difference beyond the noise of single points; b is 1.01 times a ("
    )


def test_few_launches_tell_nothing():
    records = rated(12.0, at(1024, layout="a"), (1.0,)) + rated(6.0, at(1024, layout="b"), (1.0,))
    assert "too few launches to tell; a is 2.00 times b" in said(records)["layout"]


def test_one_that_is_best_but_for_noise():
    records = layouts({"a": 10.0, "b": 12.0}, (1024,))
    records += rated(11.9, at(1024, layout="c"), (0.8, 1.0, 1.0, 1.0, 1.0, 1.2))
    found = said(records)["layout"]
    assert "b decodes fastest: 1.20 times a (1.20..1.20); but not beyond noise 1.01 times c (" in found


def test_layouts_in_caches_are_told_where_none_is_from_memory():
    records = rated(40.0, replace(HOT, layout="a"), **INSIDE) + rated(50.0, replace(HOT, layout="b"), **INSIDE)
    assert "decoding from L3: b decodes fastest: 1.25 times a" in said(records)["layout"]


def test_the_dtype_of_most_tokens_is_named():
    """Both read 12 GB/s, but i8 half the bytes: twice the tokens."""
    records = rated(12.0, at(1024)) + rated(12.0, at(1024, dtype="i8"), walked=128 * MIB)
    assert said(records)["dtype"] == (
        "Number format of the cache, decoding from memory: i8 gives most tokens per second: 2.00 times f16 (2.00..2.00); "
        "not timed side by side."
    )


def test_a_variant_is_held_against_the_others():
    assert "flash decodes fastest: 1.50 times" in said(rated(12.0) + rated(8.0, at(1024, variant="mine")))["variant"]


def teams(rates):
    """`rates`: GB/s by number of threads."""
    return [record for count, rate in rates.items() for record in rated(rate, at(1024, cpus=tuple(range(count))))]


def test_threads_that_still_help():
    found = said(teams({1: 8.0, 2: 15.0}))["threads"]
    assert found == (
        "Threads: more still help up to the 2 that were measured: 15 GB/s with 2 threads are 1.88 times (1.88..1.88) "
        "what one thread reads from memory, not timed side by side (head f16)."
    )


def test_threads_that_no_longer_help():
    """19 of 20 GB/s with two; four are slower than three."""
    found = said(teams({1: 8.0, 2: 19.0, 3: 20.0, 4: 18.0}))["threads"]
    assert found == (
        "Threads: beyond 2 of 4 more hardly help: 2 reach 95% of the best rate, 20 GB/s with 3 threads; all 4 reach 90% "
        "of it (head f16)."
    )


def test_a_gain_within_noise_is_doubted():
    """Visits of their own leave open whether it is one; what was timed in the same rounds says 1.1 in each launch."""
    one, two = at(1024, cpus=(0,)), at(1024, cpus=(0, 1))
    records = rated(8.0, one) + rated(10.0, two, (0.6, 0.7, 0.7, 1.0, 1.2, 1.2, 1.3))
    assert said(records)["threads"] == (
        "Threads: whether more help up to the 2 that were measured is open: 10 GB/s with 2 threads are 1.15 times "
        "(0.81..1.55) what one thread reads from memory, not timed side by side (head f16)."
    )
    pair = Contrast("threads", (two, one))
    beside = [replace(visit(n, {"threads=2": [11.0] * 3, "threads=1": [10.0] * 3}), point=pair) for n in range(7)]
    assert said(records + beside)["threads"] == (
        "Threads: more still help up to the 2 that were measured: 10 GB/s with 2 threads are 1.10 times (1.10..1.10) "
        "what one thread reads from memory (head f16)."
    )


# ---- what binds, what follows ----------------------------------------------------------------------------------------


def test_what_binds_each_dtype():
    records = rated(19.0, twin=20.0) + rated(9.5, at(1024, dtype="i8"), twin=19.0, core=10.0)
    assert said(records)["bound"] == (
        "What limits decoding from memory by 2 threads, beside bare reads of the same bytes and what the core alone "
        "allows: "
        "f16 memory, 95% of the reads and 24% of the core; i8 the core, 50% of the reads and 95% of the core."
    )


def test_from_which_group_on_the_core_binds():
    """Two query heads on a KV head, four, eight."""
    points = [
        replace(DECODE, shape=replace(DECODE.shape, q_heads=DECODE.shape.kv_heads * group)) for group in (2, 4, 8)
    ]
    records = [*rated(19.0, points[0], twin=20.0), *(r for each in points[1:] for r in rated(9.5, each, core=10.0))]
    assert said(records)["bound"].endswith(
        "allows: f16 memory, 95% of the reads and 24% of the core, "
        "from 4 query heads on a KV head the core, 80% of the reads and 95% of the core."
    )


def test_a_roof_that_its_point_beats_limits_nothing():
    """i8 at 2.74 times its core roof; of f16, one point of two."""
    beaten = rated(9.5, at(1024, dtype="i8"), twin=30.0, core=9.5 / 2.74)
    text = said(rated(19.0, twin=20.0) + beaten)["bound"]
    assert text.endswith(
        "allows: f16 memory, 95% of the reads and 24% of the core; i8 unknown, faster than what should limit it."
    )
    one = said(rated(19.0, twin=20.0) + rated(9.5, at(2048), twin=30.0, core=4.0))["bound"]
    assert one.endswith(
        "f16 memory, 95% of the reads and 24% of the core, unknown at 1 of 2 points, faster than what should limit it."
    )


def test_launches_without_ratios_are_told():
    """In two launches of six the twin's samples are a tenth as long as the point's."""
    records = [
        replace(
            r,
            samples=tuple(
                replace(s, seconds=s.seconds / 10, passes=1) if s.program == "twin" else s for s in r.samples
            ),
        )
        if r.launch < 2
        else r
        for r in rated(15.0, passes=10)
    ]
    told = said(records)["doubt"]
    assert "launches of 1 point are left out of ratios, for their samples differ in length" in told
    assert "left out" not in said(rated(15.0, passes=10))["doubt"]


def test_blocks_and_pages_are_choices():
    """Blocks of 8 and 64 tokens, in order and shuffled, on both kinds of pages."""
    paged = [
        (replace(DECODE, layout="paged", inner="head", block_tokens=block, shuffle=shuffle, pages=pages), rate)
        for block, shuffle, pages, rate in (
            (8, None, "thp", 8.0), (64, None, "thp", 16.0), (64, 1, "thp", 12.0), (64, None, "base", 4.0)
        )
    ]  # fmt: skip
    found = said([record for point, rate in paged for record in rated(rate, point)])
    assert found["block_tokens"].startswith(
        "Size of the blocks, decoding from memory: block=64 decodes fastest: 2.00 times block=8"
    )
    assert found["order"].endswith(
        "sequential decodes fastest: 1.33 times shuffled (1.33..1.33); not timed side by side."
    )
    assert found["pages"].endswith("thp decodes fastest: 4.00 times base (4.00..4.00); not timed side by side.")


def test_tokens_at_the_shortest_and_the_longest_context():
    """16 MiB a layer at 16.777216 GB/s are 1 ms, 24 layers 24 ms; the slower layout does not count."""
    rate = 16 * MIB / 1e6
    records = rated(rate, at(1024)) + rated(rate / 4, at(4096)) + rated(rate / 2, at(1024, layout="position"))
    assert said(records, models=(MODEL, replace(MODEL, name="other")))["tokens"] == (
        "Tokens per second at most, by reading the cache alone in the fastest format measured: other and small 41.7 "
        "with 1024 and 10.4 with 4096 tokens of context."
    )
    assert "tokens" not in said(records, models=())


def test_fit_names_context_and_verdict():
    """2 threads x 1.5 MiB to 0.7 x 32 MiB, at 9 MiB for 1024 tokens: 2548 of them."""
    found = said(rated(50.0, HOT, **INSIDE) + reads())["fit"]
    assert found == (
        "Keys and values of one layer (f16, 2 threads) fit the L3 cache up to a context of so many tokens: 2548 for "
        "small; decoding there is faster than from memory."
    )
    short = replace(MODEL, name="short", max_context=2000)
    assert (
        "2548 for small and the whole 2000 for short" in said(rated(50.0, HOT, **INSIDE), models=(MODEL, short))["fit"]
    )
    assert "no L3 is known" in said(rated(15.0), replace(MACHINE, caches=()))["fit"]


def line(launches):
    """10 µs and 1 µs for every token, of 16 KiB each."""
    records = []
    for context in (1024, 2048, 4096, 8192):
        seconds, moved = 1e-5 + 1e-6 * context, 16384.0 * context
        records += rated(moved / seconds / 1e9, at(context), (1.0,) * launches, walked=moved * 16)
    return records


def test_overhead_of_few_launches_is_unknown():
    found = said(line(2))["overhead"]
    assert found.startswith("A pass over one layer (head f16, 2 threads) has a fixed cost that 2 launches cannot tell ")


def test_overhead_is_the_line_through_contexts():
    found = said(line(6))["overhead"]
    assert found == (
        "A pass over one layer (head f16, 2 threads) has a fixed cost of 10 µs (10 µs..10 µs); beyond it, tokens are "
        "read at 16.4 GB/s (16.4..16.4); measured times lie within 0% of the time that this says."
    )


def test_stores_beside_copies():
    token = 16 * MIB / 6e9 / 1024 * 1e6  # µs
    records = [visit(n, {"point": [6.0], "copy": [8.0], "copy_nt": [12.0]}, STORE) for n in range(3)]
    assert said(records)["stores"] == (
        f"Storing a whole prompt: 6 GB/s to memory, {token:.3g} µs a token and layer, 50% of a copy with non-temporal "
        "stores (head f16)."
    )


# ---- doubts ----------------------------------------------------------------------------------------------------------


def test_noise_and_what_is_missing():
    """The spread of the seconds is 1/0.95 - 1/1.05 of the median."""
    records = rated(15.0, noise=(0.95, 1.0, 1.0, 1.0, 1.0, 1.05)) + [failed(6)]
    wide = 1 / 0.95 - 1 / 1.05
    assert said(records)["doubt"] == (
        f"Noise between launches: half of the points spread by {wide:.1%} of their time or less, nine in ten by "
        f"{wide:.1%} of it; launches failed at 1 of 1 point."
    )
    assert "Noise is unknown, for no point has more than one launch" in said(rated(15.0, noise=(1.0,)))["doubt"]


def test_points_with_fewer_launches_are_counted():
    records = rated(15.0) + rated(10.0, at(2048), CALM[:4]) + rated(10.0, at(4096), CALM[:3]) + [failed(3, at(4096))]
    assert said(records)["doubt"].endswith("launches failed at 1 of 3 points.")


def test_points_that_jump_are_counted():
    assert "1 of 1 point jump between launches" in said(rated(15.0, noise=(0.5, 0.5, 1.0, 1.0, 2.0, 2.0)))["doubt"]


def test_preflight_warnings_are_named():
    checks = [Check("load", "warn", "1.5", ""), Check("swap", "ok", "none", ""), Check("machine", "warn", "KVM", "")]
    assert said([], checks=checks)["doubt"] == "Doubts about the machine: load (1.5) and machine (KVM)."


def test_points_above_a_roof_are_told():
    records = rated(40.0, twin=30.0) + reads() + rated(10.0, at(2048))
    found = said(records)["suspect"]
    assert found.startswith(
        "1 of 2 points exceed what should bound them, 1 without an explanation: suspect; such as head"
    )


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
    found = said(records, machine)
    assert found["bandwidth"] and found["l3"]
    assert not any("nan" in text or "<NA>" in text or "None" in text for text in found.values())

"""What a run says: planted numbers, and the facts that its sentences state."""

from dataclasses import replace

import pytest

from kvbench.analysis.means.findings import findings
from kvbench.analysis.means.models import Geometry
from kvbench.model import Check, Contrast, Fact
from kvbench.report.words.limits import stores
from kvbench.report.words.sentences import sentences
from tests.analysis.measured.test_launches import paced
from tests.made_run import DECODE, MACHINE, MIB, READ, RUN, STORE, failed, probe, visit
from tests.report.texts import unnamed

CALM = (0.99, 1.0, 1.0, 1.0, 1.0, 1.0, 1.01)  # by launch
WIDE = (0.8, 1.0, 1.0, 1.0, 1.0, 1.2)
MODEL = Geometry("small", 24, 8, 2, 64, 65536)
INSIDE = {"walked": 9 * MIB, "layers": 1}  # of 32 MiB, and more than both threads' L2
HOT = replace(DECODE, residency="hot")
PAGED = replace(DECODE, layout="paged", inner="head", block_tokens=64)
NO_CACHES = replace(MACHINE, caches=())


def at(context, **changes):
    return replace(
        DECODE, shape=replace(DECODE.shape, context=context, capacity=context), **changes
    )


def rated(rate, point=DECODE, noise=CALM, *, twin=None, core=80.0, **facts):
    """All launches of a decode; its twin reads at `twin` GB/s, a fourth faster unless told. In L3
    slices are read at 60 GB/s, memory at 20, and a decode from memory runs at 12.
    """
    each = {"twin": twin or rate * 1.25, "core": core}
    if point.residency == "hot":
        each |= {"slice": 60.0, "memory": 20.0, "rotated": 12.0}
    return [
        visit(
            n,
            {"point": [rate * times], **{name: [other * times] for name, other in each.items()}},
            point,
            **facts,
        )
        for n, times in enumerate(noise)
    ]


def reads(rate=20.0, noise=(0.95, 1.0, 1.0, 1.0, 1.0, 1.05), of=READ, ahead=1.0):
    """ahead: times as fast as the plain ones."""
    return [probe(n, rate * times, of, ahead=ahead * rate * times) for n, times in enumerate(noise)]


def near(rate, noise=CALM, core=80.0, context=1024, dtype="f16"):
    """In L3."""
    return rated(rate, at(context, residency="hot", dtype=dtype), noise, core=core, **INSIDE)


def layouts(rates, contexts=(1024, 2048, 4096)):
    """`rates`: by layout, of every context: as many bytes, so many times as fast."""
    return [
        r
        for n in contexts
        for layout, rate in rates.items()
        for r in rated(rate, at(n, layout=layout))
    ]


def teams(rates):
    """`rates`: GB/s by number of threads."""
    return [
        record
        for count, rate in rates.items()
        for record in rated(rate, at(1024, cpus=tuple(range(count))))
    ]


def uneven(records):
    """In two launches the twin's samples are a tenth as long as the point's."""
    short = [
        [
            replace(s, seconds=s.seconds / 10, passes=1) if s.program == "twin" else s
            for s in r.samples
        ]
        for r in records
    ]
    return [
        replace(r, samples=tuple(each)) if r.launch < 2 else r
        for r, each in zip(records, short, strict=True)
    ]


def host(slow):
    """Two points in ten launches, of which so many were at 60 % of the cores' speed: of one point,
    or of both.
    """
    of = {"f16": slow, "f32": slow if slow > 5 else 0}
    return [
        paced(n, 0.6 if n < of[d] else 1.0, point=replace(DECODE, dtype=d))
        for d in of
        for n in range(10)
    ]


ONE = at(1024, cpus=(0,))
UNSURE = replace(MACHINE, facts={"l3": Fact(32 * MIB, "declared", "low")})
LARGE = replace(
    # 2 x 12 MiB of L2 before 32 MiB of L3: 1.5 x 12 MiB of one thread are within 0.7 x 32 MiB, of
    # two not
    MACHINE,
    caches=tuple(
        replace(cache, size=12 * MIB) if cache.level == 2 else cache for cache in MACHINE.caches
    ),
    allowed=(0, 1),
)
LIMITED = sum((near(10.0, core=10.2, context=64 << n) for n in range(4)), [])
GROUPS = [replace(DECODE, shape=replace(DECODE.shape, q_heads=2 * group)) for group in (2, 4, 8)]
NEAR_READS = rated(19.0, twin=20.0)
PAIR = Contrast("threads", (at(1024, cpus=(0, 1)), ONE))
BESIDE = [
    replace(visit(n, {"threads=2": [11.0] * 3, "threads=1": [10.0] * 3}), point=PAIR)
    for n in range(7)
]
LOOSE = rated(8.0, ONE) + rated(10.0, PAIR.points[0], (0.6, 0.7, 0.7, 1.0, 1.2, 1.2, 1.3))
TOKENS = (
    rated(16 * MIB / 1e6, at(1024))
    + rated(4 * MIB / 1e6, at(4096))
    + rated(8 * MIB / 1e6, at(1024, layout="a"))
)
OTHERS = (MODEL, replace(MODEL, name="other"), replace(MODEL, name="z", layers=48))
LEAN = [
    replace(r, samples=tuple(s for s in r.samples if s.program != "rotated")) for r in near(50.0)
]
CHECKS = [
    Check("load", "warn", "1.5", ""),
    Check("swap", "ok", "none", ""),
    Check("machine", "warn", "KVM", ""),
]

CASES = [  # topic, facts that are said, records, and what else is known
    ("bandwidth", "no decode was measured", []),
    ("bandwidth", "every point fits in a cache", near(50.0)),
    ("bandwidth", "cache sizes", rated(15.0) + reads(), {"machine": NO_CACHES}),
    (
        "bandwidth",
        "15 GB/s | 75% | 2 threads",
        rated(15.0) + rated(10.0, at(2048)) + rated(8.0, at(4096)) + reads(),
    ),
    ("bandwidth", "15 GB/s | no read ceiling", rated(15.0)),
    (
        "bandwidth",
        "8 GB/s | 40% | the same thread",
        rated(8.0, ONE) + reads(of=replace(READ, cpus=(0,))),
    ),
    (
        "bandwidth",
        "25 GB/s | 15 GB/s | 75%",
        rated(15.0) + rated(25.0, replace(DECODE, pages="base")) + reads(),
    ),
    ("bandwidth", "125% | exceeds | suspect", rated(25.0) + reads()),
    (
        "bandwidth",
        "125% | 91%",
        rated(25.0) + reads(ahead=1.375),
    ),
    ("l3", "no decode was measured", []),
    ("l3", "no point lies in L3", rated(15.0)),
    ("l3", "cache sizes", rated(15.0) + reads(), {"machine": NO_CACHES}),
    ("l3", "--axis threads=1", rated(15.0), {"machine": LARGE}),
    ("l3", "3 launches", near(50.0, CALM[:3]) + reads()),
    ("l3", "Of 1 point: yes at 1 | 3.00x | 4.17x", near(50.0) + reads()),
    ("l3", "no at 1 | 0.83x", near(10.0) + reads()),
    ("l3", "not decided at 1 | 1.62x", near(19.5) + reads()),
    ("l3", "the core is the limit at 1", near(10.0, core=10.2) + reads()),
    ("l3", "plain read of memory: 2.50x | in doubt", LEAN + reads(), {"machine": UNSURE}),
    (
        "l3",
        "yes at 3; not decided at 1; no at 1 | 4.17x | 1.67x",
        sum(
            (
                near(10.0 * n, dtype=d)
                for n, d in enumerate(("q8_0", "f16", "i8", "bf16", "f32"), 1)
            ),
            reads(),
        ),
    ),
    (
        "l3",
        "no at 2; yes at 1 | 0.42x",
        near(60.0, context=512) + near(10.0) + near(5.0, context=2048) + reads(),
    ),
    (
        "l3",
        "limit at 4; yes at 1 | 4.17x",
        LIMITED + near(50.0) + reads(),
    ),  # one alone may look otherwise by chance
    (
        "l3",
        "yes at 2; no, the core is the limit at 4 | 5.00x | 4.17x",
        LIMITED + near(50.0) + near(60.0, dtype="f32") + reads(),
    ),
    (
        "l3",
        "not decided at 3; yes at 2 | 4.17x",
        sum(
            (near(19.5, context=64 << n) for n in range(3)),
            near(50.0, context=512) + near(50.0) + reads(),
        ),
    ),
    (
        "layout",
        "b is the fastest | 1.20x a | 1.50x c",
        layouts({"a": 10.0, "b": 12.0, "c": 8.0}) + reads(),
    ),
    (
        "layout",
        "b is the fastest | no lead | Level with a",
        rated(12.0, at(1024, layout="a"), WIDE) + rated(12.1, at(1024, layout="b"), WIDE[::-1]),
    ),
    (
        "layout",
        "a is the fastest | no lead | more launches",
        rated(12.0, at(1024, layout="a"), (1.0,)) + rated(6.0, at(1024, layout="b"), (1.0,)),
    ),
    (
        "layout",
        "1.20x a | Level with c",
        layouts({"a": 10.0, "b": 12.0}, (1024,)) + rated(11.9, at(1024, layout="c"), WIDE),
    ),
    (
        "layout",
        "no lead | some points only",
        layouts({"a": 10.0, "b": 12.0}, range(1, 6)) + layouts({"a": 10.0, "b": 9.0}, range(6, 9)),
    ),
    (
        "layout",
        "From L3 | 1.25x a",
        rated(40.0, replace(HOT, layout="a"), **INSIDE)
        + rated(50.0, replace(HOT, layout="b"), **INSIDE),
    ),
    # half the bytes
    (
        "dtype",
        "i8 gives | 2.00x f16",
        rated(12.0, at(1024)) + rated(12.0, at(1024, dtype="i8"), walked=128 * MIB),
    ),
    ("variant", "flash is | 1.50x mine", rated(12.0) + rated(8.0, at(1024, variant="mine"))),
    (
        "block_tokens",
        "block=64 | 2.00x block=8",
        rated(16.0, PAGED) + rated(8.0, replace(PAGED, block_tokens=8)),
    ),
    ("order", "1.33x shuffled", rated(16.0, PAGED) + rated(12.0, replace(PAGED, order=1))),
    (
        "pages",
        "thp pages | 4.00x base",
        rated(16.0, PAGED) + rated(4.0, replace(PAGED, pages="base")),
    ),
    (
        "fit",
        "2,548 tokens of small | 2,000 tokens of short",
        near(50.0) + reads(),
        {"models": (MODEL, replace(MODEL, name="short", max_context=2000))},
    ),
    ("fit", "no L3 is known", rated(15.0), {"machine": NO_CACHES}),
    ("threads", "15.2 GB/s | 1.90x", teams({1: 8.0, 2: 15.2})),
    ("threads", "2 of 4 threads | 95% | 20 GB/s", teams({1: 8.0, 2: 19.0, 3: 20.0, 4: 18.0})),
    ("threads", "1 of 2 threads | 95%", teams({1: 19.0, 2: 20.0})),
    (
        "threads",
        "not decided | 1.15x (0.81 to 1.55)",
        LOOSE,
    ),  # visits of their own leave open whether there is a gain
    (
        "threads",
        "help: 2 threads | 1.10x (1.10 to 1.10)",
        LOOSE + BESIDE,
    ),  # which these rounds show
    (
        "bound",
        "reads of its rows for f16; the core for i8",
        NEAR_READS + rated(9.5, at(1024, dtype="i8"), twin=19.0, core=10.0),
    ),
    (
        "bound",
        "reads of its rows, then the core (from 4 query heads",
        sum(
            (rated(9.5, each, core=10.0) for each in GROUPS[1:]), rated(19.0, GROUPS[0], twin=20.0)
        ),
    ),
    (  # i8 at 2.74 times its core roof; of f16, one point of two
        "bound",
        "neither memory nor the core | suspect",
        NEAR_READS
        + rated(9.5, at(1024, dtype="i8"), twin=30.0, core=9.5 / 2.74)
        + rated(9.5, at(2048), twin=30.0, core=4.0),
    ),
    # 24 layers of 1 ms, and of 4 ms; the slower layout does not count
    ("tokens", "other and small | 41.7 | 10.4", TOKENS, {"models": OTHERS[:2]}),
    ("tokens", "41.7 | 1 other model shape", TOKENS, {"models": OTHERS}),
    (
        "suspect",
        "1 of 2 points | 1 for no known reason",
        rated(40.0, twin=30.0) + reads() + rated(10.0, at(2048)),
    ),
    (
        "suspect",
        "1 of 2 points | all for a known reason",
        rated(40.0, twin=30.0) + reads(50.0) + rated(10.0, at(2048)),
    ),
    # 1/0.95 - 1/1.05 of the median
    (
        "doubt",
        "10% | 1 of 1 point failed",
        rated(15.0, noise=(0.95, 1.0, 1.0, 1.0, 1.0, 1.05)) + [failed(6)],
    ),
    ("doubt", "unknown", rated(15.0, noise=(1.0,))),
    ("doubt", "150% | 1 of 1 point is unstable", rated(15.0, noise=(0.5, 0.5, 1.0, 1.0, 2.0, 2.0))),
    (
        "doubt",
        "1% | 1 of 3 points failed",
        rated(15.0)
        + rated(9.0, at(2048), CALM[:4])
        + rated(9.0, at(4096), CALM[:3])
        + [failed(3, at(4096))],
    ),
    ("doubt", "9.5% | 1 point cannot be compared", uneven(rated(15.0, passes=10))),
    (
        "doubt",
        "33.3% of the samples",
        [
            replace(r, samples=(replace(r.samples[0], faults=1), *r.samples[1:]))
            for r in rated(15.0)
        ],
    ),
    ("doubt", "60% | 4 of 20 visits", host(4)),
    ("doubt", "60% | 14 of 20 visits", host(7)),
    ("doubt", "load (1.5) and machine (KVM)", [], {"checks": CHECKS}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[1]}")
def test_a_sentence_states_its_facts(case):
    """In one line, and percentages with what they are shares of."""
    topic, facts, records, *more = case
    known = {"machine": MACHINE, "models": (MODEL,)} | dict(*more)
    (text,) = {s.text for s in sentences(findings(RUN, records, **known)) if s.topic == topic}
    assert [fact for fact in facts.split(" | ") if fact not in text] == []
    assert text.endswith(".") and "\n" not in text and len(text) < 400 and not unnamed(text)


def test_stores_beside_copies():
    """16 MiB of 1024 tokens at 6 GB/s."""
    records = [
        visit(n, {"point": [6.0], "copy": [8.0], "copy_nt": [12.0]}, STORE) for n in range(3)
    ]
    assert stores(findings(RUN, records, MACHINE).points) == (
        "Storing a prompt takes 2.73 µs a token and layer (head f16): 6 GB/s, 50% of the speed of a"
        " non-temporal copy."
    )


# ---- all of it -----------------------------------------------------------------------------------

TOPICS = [
    "bandwidth",
    "l3",
    "layout",
    "dtype",
    "fit",
    "threads",
    "bound",
    "tokens",
    "stores",
    "doubt",
    "doubt",
]


def whole():
    records = reads() + layouts({"head": 12.0, "position": 10.0}) + rated(8.0, at(1024, dtype="i8"))
    records += rated(6.0, ONE) + near(50.0)
    return records + [
        visit(n, {"point": [6.0], "copy": [8.0], "copy_nt": [12.0]}, STORE) for n in range(6)
    ]


def test_sentences_come_in_order():
    found = sentences(findings(RUN, whole(), MACHINE, CHECKS, [MODEL]))
    assert [each.topic for each in found if each.topic in TOPICS] == TOPICS and len(found) <= 14


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
@pytest.mark.parametrize("machine", [MACHINE, NO_CACHES])
def test_any_part_of_a_run_says_something(records, machine):
    found = {
        each.topic: each.text for each in sentences(findings(RUN, records, machine, models=[MODEL]))
    }
    assert found["bandwidth"] and found["l3"]
    assert not any("nan" in text or "<NA>" in text or "None" in text for text in found.values())

"""A sentence for each fact, and for each way in which it can be: all of them as a text."""

from dataclasses import replace
from pathlib import Path

from kvbench.analysis.differs.contrasts import DEPENDS, SAME, SLOWER, UNKNOWN
from kvbench.analysis.means.diagnosis.bandwidth import BestRead, MemoryRate, MemoryShare, MemoryUntested
from kvbench.analysis.means.diagnosis.choices import Choice, Lead, ThreadsHelp, ThreadsSuffice
from kvbench.analysis.means.diagnosis.l3 import L3Decodes, L3Reads, L3Untested, L3Verdict
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
from kvbench.analysis.means.diagnosis.stores import Payback, Pays, StoreRate, Stores
from kvbench.analysis.means.diagnosis.trust import Above, Doubts, Noise, Slow
from kvbench.analysis.means.diagnosis.values import Interval, Untested
from kvbench.report.words import sentences
from tests.report.texts import unnamed

GOLDEN = Path(__file__).with_name("sentences.txt")

BEST, ABOVE = BestRead(27.5, "plain", 2, 0.909, False), BestRead(20.0, "prefetch 2048 B", 1, 1.25, True)
SHARE = MemoryShare("head f16", 25.0, 27.5, 2, 0.909, BEST, 38, 0.672)
F16 = L3Decodes("f16", "flash", 4, Interval(1.1, 1.05, 1.16), "core-bound")
I8 = L3Decodes("i8", "dot8", 1, Interval(2.0, 1.8, 2.2), "confirmed")
READS = (L3Reads(2, Interval(3.9, 3.8, 4.0)), L3Reads(4, Interval(2.5, 2.2, 2.9)))
LEAD = Lead("paged", Interval(1.28, 1.16, 1.35), "faster", 14, True)
MEMORY, CORE, OPEN = Stretch(1, "memory", 1.02, 0.24), Stretch(4, "core", 0.5, 0.95), Stretch(1, "unknown", 0.4, 0.5)
PASS = PassCost("head", "f16", 2, Interval(1e-5, -1e-6, 2e-5), Interval(16.4, 16.2, 16.5), 0.021, 7, True)
STORE = StoreRate("bulk", "head f16", "DRAM", 6.0, 2.8e-6, "copy_nt", 0.5)
PAYBACKS = (
    Payback("blockt", "head", 4096, Pays.BY_TOKENS, Interval(120.3, 100.0, 150.0)),
    Payback("blockt", "head", 4096, Pays.BY_CONTEXT, Interval(2000.0, 1500.0, 3000.0)),
    Payback("blockt", "head", 4096, Pays.NEVER, None),
)

FACTS = [
    *(MemoryUntested(why) for why in (Untested.NO_DECODE, Untested.UNKNOWN_CACHES, Untested.NEARER)),
    MemoryRate("head f16", 15.0, None, "there is no read ceiling"),
    MemoryRate("head f16", 25.0, SHARE),
    MemoryRate("head i8", 26.04, MemoryShare("head f16", 25.0, 20.0, 1, 1.25, ABOVE, 1, 1.25)),
    MemoryRate("head f16", 25.0, MemoryShare("head f16", 25.0, 27.5, 2, 0.909, None, 1, 0.909)),
    MemoryRate("head f16", 25.0, replace(SHARE, plain_gbps=20.0, share=1.25)),
    L3Untested(Untested.ELSEWHERE, 3),
    L3Untested(Untested.CLOSED, 0, "not testable at 2 threads; try --axis threads=1"),
    L3Untested(Untested.CLOSED, 0, "no L3 is known for these CPUs"),
    L3Verdict((("confirmed", 5), ("core-bound", 1), ("unstable", 1)), True, READS, (I8, F16)),
    L3Verdict((("core-bound", 1),), False, READS[:1], (F16,), plain=True),
    L3Verdict((("not testable", 2),), False, example=("head f16", "the point has 3 launches, too few to tell")),
    Choice("layout", "DRAM", "blockt", (LEAD, replace(LEAD, over="head", pairs=1))),
    Choice("dtype", "L3", "i8", (replace(LEAD, beside=False), replace(LEAD, over="head", word=SAME))),
    *(Choice("pages", "DRAM", "thp", (replace(LEAD, word=word, pairs=1),)) for word in (SAME, UNKNOWN, DEPENDS)),
    Choice("order", "DRAM", "sequential", tuple(replace(LEAD, over=w, word=w) for w in (SAME, DEPENDS, UNKNOWN, SLOWER))),
    Fit("f16", 2, (Reach(2548, False, ("a", "b")), Reach(2000, True, ("c",))), (("confirmed", ("a", "b", "c")),)),
    Fit("f16", 2, (Reach(2548, False, tuple("abcdef")),), (("not tested", ("a",)), ("unstable", ("b",)))),
    Fit("i8", 1, closed="no L3 is known for these CPUs"),
    ThreadsHelp("head f16", 1, 2, 15.04, 1, Interval(1.88, 1.85, 1.9), False),
    ThreadsHelp("head f16", 3, 4, 15.0, 2, Interval(1.1, 0.9, 1.2), True),
    ThreadsSuffice("head f16", 1, 4, 2, 0.95, 3, 20.0, 0.9),
    ThreadsSuffice("head f16", 5, 4, 1, 0.95, 4, 20.0, 1.0),
    Bounds(2, (DtypeBound("f16", (MEMORY, CORE), 1, 9), DtypeBound("i8", (), 1, 1), DtypeBound("q4_0", (OPEN,), 0, 2))),
    Tokens((ModelTokens(("a", "b"), ((1024, 41.67), (4096, 10.4))), *(ModelTokens((n,), ((64, 123.4),)) for n in "cdef"))),
    replace(PASS, fixed=Interval(1e-5, 9e-6, 1.1e-5)),
    PASS,
    replace(PASS, launches=2, enough=False),
    Stores((StoreRate("append", "head f16", "mixed", 3.96, 2.5e-7, "", 0.0), STORE)),
    Stores((STORE,), True),
    *(Stores((STORE,), True, each) for each in PAYBACKS),
    Above(2, 9, 0, "head f16", "twin", "its data lies in L2"),
    Above(2, 9, 1, "head f16", "twin", "its reads alone are slower"),
    Noise(1, None, None, failed=1),
    Noise(55, 0.324, 0.502, 4, 0.006, 1, Slow(0.6, 4, 20, 4), 2),
    Noise(55, 0.324, 0.502, slow=Slow(0.6, 14, 20, 0)),
    Doubts((("load", "1.5"), ("machine", "KVM"))),
]  # fmt: skip


def test_all_sentences():
    assert "\n".join(f"{each.topic}: {each.text}" for each in sentences(FACTS)) + "\n" == GOLDEN.read_text()


def test_they_end_in_one_line_and_name_their_wholes():
    for each in sentences(FACTS):
        assert each.text.endswith(".") and "\n" not in each.text and not unnamed(each.text)

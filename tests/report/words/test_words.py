"""A sentence for each fact, and for each way in which it can be: all of them as a text."""

from pathlib import Path

from kvbench.analysis.diagnosis.bandwidth import BestRead, MemoryRate, MemoryShare, MemoryUntested
from kvbench.analysis.diagnosis.l3 import L3Decodes, L3Reads, L3Untested, L3Verdict
from kvbench.analysis.diagnosis.values import Interval, Untested
from kvbench.report.words import sentences
from tests.report.texts import unnamed

GOLDEN = Path(__file__).with_name("sentences.txt")

BEST, ABOVE = BestRead(27.5, "plain", 2, 0.909, False), BestRead(20.0, "prefetch 2048 B", 1, 1.25, True)
SHARE = MemoryShare("head f16", 25.0, 27.5, 2, 0.909, BEST, 38, 0.672)
F16 = L3Decodes("f16", "flash", 4, Interval(1.1, 1.05, 1.16), "core-bound")
I8 = L3Decodes("i8", "dot8", 1, Interval(2.0, 1.8, 2.2), "confirmed")
READS = (L3Reads(2, Interval(3.9, 3.8, 4.0)), L3Reads(4, Interval(2.5, 2.2, 2.9)))

FACTS = [
    *(MemoryUntested(why) for why in (Untested.NO_DECODE, Untested.UNKNOWN_CACHES, Untested.NEARER)),
    MemoryRate("head f16", 15.0, None, "there is no read ceiling"),
    MemoryRate("head f16", 25.0, SHARE),
    MemoryRate("head i8", 26.04, MemoryShare("head f16", 25.0, 20.0, 1, 1.25, ABOVE, 1, 1.25)),
    MemoryRate("head f16", 25.0, MemoryShare("head f16", 25.0, 27.5, 2, 0.909, None, 1, 0.909)),
    L3Untested(Untested.ELSEWHERE, 3),
    L3Untested(Untested.CLOSED, 0, "not testable at 2 threads; try --threads 1"),
    L3Untested(Untested.CLOSED, 0, "no L3 is known for these CPUs"),
    L3Verdict((("confirmed", 5), ("core-bound", 1), ("unstable", 1)), True, READS, (I8, F16)),
    L3Verdict((("core-bound", 1),), False, READS[:1], (F16,), plain=True),
    L3Verdict((("not testable", 2),), False, example=("head f16", "the point has 3 launches, too few to tell")),
]  # fmt: skip


def test_all_sentences():
    assert "\n".join(f"{each.topic}: {each.text}" for each in sentences(FACTS)) + "\n" == GOLDEN.read_text()


def test_they_end_in_one_line_and_name_their_wholes():
    for each in sentences(FACTS):
        assert each.text.endswith(".") and "\n" not in each.text and not unnamed(each.text)

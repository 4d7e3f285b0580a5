"""The sides of a made-up comparison."""

from dataclasses import replace

from kvbench.analysis.differs import compare as analysis
from kvbench.analysis.differs.compare import Side
from kvbench.model import Point, Probe, Record, Sample
from kvbench.report.words.compared import told
from tests.made_run import DECODE, MACHINE, MIB, READ, probe, traffic, visit

POSITION, PAGED = (replace(DECODE, layout=layout) for layout in ("position", "paged"))
CLOCK, FMA, COPY = (Probe(op, "scalar", (0, 1), "thp", count) for op, count in
                    (("clock", 0), ("flops", 0), ("copy", 256 * MIB)))  # fmt: skip
LAUNCHES = 10
LUCK = [1 + 0.001 * number for number in range(LAUNCHES)]  # of each launch: no two are alike
IDENTITY = {"suite": "s1", "build": "b1", "machine": "m1", "environment": "e1"}


def side(records, run="base", planned=None, **identity):
    points = [record.point for record in records if isinstance(record.point, Point)]
    return Side(
        run, IDENTITY | identity, MACHINE, tuple(dict.fromkeys(planned or points)), list(records)
    )


def measured(point=DECODE, rate=8.0, twin=10.0, luck=LUCK, **facts):
    """The point at `rate` GB/s beside its twin. Launches have random luck that the twin does not
    share.
    """
    beside = {} if twin is None else {"twin": [twin]}
    return [
        visit(n, {"point": [rate * lucky]} | beside, point, **facts) for n, lucky in enumerate(luck)
    ]


def probes(of=READ, rate=20.0, luck=LUCK[::-1]):
    if of.op != "clock":
        return [probe(n, rate * lucky, of) for n, lucky in enumerate(luck)]
    second = (Sample("point", 0, 1, 1.0, (), 0.0, 0, 0),)
    return [
        Record(n, of, second, {"point": traffic(0.0)}, {}, steps=int(rate * lucky * 1e9))
        for n, lucky in enumerate(luck)
    ]


def compare(*sides, **asked):
    return told(*analysis.compare(*sides, **asked))


def compared(base, head, **asked):
    return compare(side(base), side(head, "head"), "2026-01-02T03:04:05+00:00", **asked)


def only(found):
    (row,) = found.points
    return row

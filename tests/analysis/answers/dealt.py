"""Pages of a run with permuted labels: within a launch the programs of a set or a family swap their
times at random, so that nothing is truly faster.

As a program it prints how many pages still state a difference: python -m
tests.analysis.answers.dealt 200 results/*/quick
"""

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from kvbench.analysis.answers.pairs import pairs
from kvbench.analysis.answers.workload import workload
from kvbench.analysis.judge import FASTER, SLOWER
from kvbench.analysis.limits import frames
from kvbench.analysis.means.models import tokens
from kvbench.model import ROTATED, Contrast
from kvbench.model.contrast import value
from kvbench.model.program import ALONE
from kvbench.results import geometries, load


class Pages:
    """`most`: as in the run. Work that does not depend on the permutation is done once."""

    def __init__(self, run, looks=()):
        self.run, self.most, self.looks = run, run.manifest.looks, looks
        self.points = frames.points(run.records, run.machine, most=self.most)
        rates = tokens(self.points, geometries(run.manifest.models))
        self.page = workload(rates, self.points)
        paired = (r for r in run.records if r.tuned or ROTATED in r.traffic)
        sets = [r for r in run.records if isinstance(r.point, Contrast)]
        self.records = [*sets, *(r for r in paired if not isinstance(r.point, Contrast))]

    def words(self, records):
        return pairs(records, self.points, self.most, self.page)["word"]

    def false(self, rng):
        """Whether a page states a difference, now or at any of the looks."""
        records = deal(self.records, rng)
        looks = self.looks or (max(record.launch for record in records) + 1,)
        shown = ([r for r in records if r.launch < launches] for launches in looks)
        return any(self.words(each).isin([FASTER, SLOWER]).any() for each in shown)


def deal(records, rng):
    """Permute the labels. Points of a family and their decode from memory share rounds, so they may
    swap times.
    """
    dealt, pools = {}, defaultdict(dict)
    for record in records:
        if not isinstance(record.point, Contrast):
            for program, label in _labels(record).items():
                own = [sample for sample in record.samples if sample.program == program]
                pools[_visit(record)].setdefault(label, own)
    return [_dealt(record, dealt, rng, pools[_visit(record)]) for record in records]


def _base(record):
    return replace(record.point, between=0) if record.point.streamed else record.point


def _visit(record):
    point = record.point if isinstance(record.point, Contrast) else _base(record)
    return point.name, record.launch, record.part


def _labels(record):
    """For each program, the label that it has in all records of a family."""
    own = {"point": record.point.name, ALONE: _base(record).name, ROTATED: ROTATED}
    return {program: label for program, label in own.items() if program in record.traffic}


def _dealt(record, dealt, rng, pool):
    beside = isinstance(record.point, Contrast)
    names = pool
    if beside:
        names = [value(point, record.point.factor) for point in record.point.points]
    drawn = [str(name) for name in rng.permutation(list(names))]
    new = dealt.setdefault(_visit(record)[:2], dict(zip(names, drawn, strict=True)))
    if beside:
        samples = [replace(s, program=new.get(s.program, s.program)) for s in record.samples]
    else:
        labels = _labels(record)
        samples = [sample for sample in record.samples if sample.program not in labels]
        for program, label in labels.items():
            samples += [replace(sample, program=program) for sample in pool[new[label]]]
    tuned = tuple(replace(each, ratios=_rounds(each.ratios, rng)) for each in record.tuned)
    return replace(record, samples=tuple(samples), tuned=tuned)


def _rounds(ratios, rng):
    """Each round alone."""
    rounds = min(map(len, ratios.values()))
    values = np.array([own[:rounds] for own in ratios.values()])
    dealt = rng.permuted(values, axis=0)
    return dict(zip(ratios, map(tuple, dealt), strict=True))


def false_pages(run, pages, seed=0, looks=()):
    rng, every = np.random.default_rng(seed), Pages(run, looks)
    return sum(every.false(rng) for _ in range(pages))


def main(pages, *folders):
    for folder in folders:
        run = load(Path(folder))
        found, every = false_pages(run, int(pages)), Pages(run)
        said = every.words(every.records).value_counts().to_dict()
        looks = range(run.manifest.plan.launches, run.manifest.looks + 1)
        many = f"; at any look {false_pages(run, int(pages), looks=looks)}" if looks else ""
        print(f"{folder}: {found} of {pages} pages state a difference{many}; as it is: {said}")


if __name__ == "__main__":
    main(*sys.argv[1:])

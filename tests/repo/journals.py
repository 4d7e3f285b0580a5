"""Oracles for the tables of README.md and results/: rates, ratios and shares, computed from the
journals by json, and by nothing of the package.
"""

import itertools
import json
import math
import re
from collections import defaultdict
from functools import cache
from statistics import fmean, median

from scipy.stats import binom

from tests.raw import ROOT

RESULTS = ROOT / "results"
ENGINES = "zen5-kvm-2/peers"
LAYERS, SLOW = 32, 0.8
KERNEL = re.compile(r"decode\.(\w+)\.(\w+)\.(\w+)\.\w+/(b1\.[^/]+)/[^/]+/(cpu[^.]+)")


def read(lines):
    """The visits of a journal that gave samples."""
    found = map(json.loads, lines)
    return [each for each in found if not each.get("error") and each["samples"]]


@cache
def journal(run):
    with (RESULTS / run / "journal.jsonl").open() as file:
        return read(file)


def at_speed(visits):
    """Without visits in which the cores had less than four fifths of the best speed that they had
    in any: by the multiply-adds that are timed in each.
    """
    rates = {}
    for place, visit in enumerate(visits):
        taken = [s["passes"] / s["seconds"] for s in visit["samples"] if s["program"] == "fma"]
        if taken:
            cpus = re.search(r"/cpu([\d,-]+)", visit["point"])[1]
            rates[place] = cpus, median(taken) * visit["traffic"]["fma"]["flops"]
    best = defaultdict(float)
    for cpus, rate in rates.values():
        best[cpus] = max(best[cpus], rate)
    slow = {place for place, (cpus, rate) in rates.items() if rate < SLOW * best[cpus]}
    return [visit for place, visit in enumerate(visits) if place not in slow]


def by_launch(visits, program):
    """The median seconds of a pass in each launch."""
    found = defaultdict(list)
    for visit in visits:
        found[visit["launch"]] += [
            s["seconds"] / s["passes"] for s in visit["samples"] if s["program"] == program
        ]
    return {launch: median(each) for launch, each in found.items() if each}


def enclosing(values):
    """The two of them, from the ends inwards, that hold the median with 95 % at least."""
    ordered, count = sorted(values), len(values)
    outside = max(k for k in range(count // 2) if k == 0 or 2 * binom.cdf(k, count, 0.5) <= 0.05)
    return ordered[outside], ordered[-1 - outside]


def tokens(seconds):
    """Tokens/s of all layers, with its interval, from the launches' medians."""
    low, high = enclosing(seconds)
    return [1 / (LAYERS * each) for each in (median(seconds), high, low)]


# ---- engines -------------------------------------------------------------------------------------


@cache
def points():
    """By the name of a point of the run of peers: its cell, engine, layout and format."""
    found = {}
    for visit in journal(ENGINES):
        name = visit["point"]
        if kernel := KERNEL.match(name):
            engine = re.search(r"\.engine(\w+)$", name)
            _, layout, dtype, heads, cpus = kernel.groups()
            engine = engine[1] if engine else "kvbench"
            found[name] = (heads, cpus, dtype), engine, layout
    return found


def alike(one, two):
    """Whether two samples are of about the length that was asked for, or both off by as much."""
    return 0.5 <= (one["seconds"] * two["sample_time"]) / (two["seconds"] * one["sample_time"]) <= 2


def ratios(name, other):
    """By launch, the logarithm of the time of a point over another's: the median over rounds whose
    samples are of about the same length.
    """
    visits = defaultdict(dict)
    for visit in journal(ENGINES):
        if visit["point"] in (name, other):
            own = [s for s in visit["samples"] if s["program"] == "point"]
            visits[visit["launch"]][visit["point"]] = {s["round"]: s for s in own}
    found = {}
    for launch, each in visits.items():
        pairs = [
            (sample, each[other][number])
            for number, sample in each.get(name, {}).items()
            if number in each.get(other, {})
        ]
        known = [
            math.log(one["seconds"] / one["passes"] / (two["seconds"] / two["passes"]))
            for one, two in pairs
            if alike(one, two)
        ]
        if known:
            found[launch] = math.log(median(map(math.exp, known)))
    return found


def signed_ranks(values):
    """Hodges' and Lehmann's estimate, and the interval that signed ranks do not reject at 5 %, by
    all signs that launches can have; no interval where launches are too few.
    """
    count = len(values)
    means = sorted((a + b) / 2 for place, a in enumerate(values) for b in values[place:])
    sums = [
        sum(rank for rank, sign in enumerate(signs, 1) if sign)
        for signs in itertools.product((0, 1), repeat=count)
    ]
    chance = [sum(each >= w for each in sums) / len(sums) for w in range(len(means) + 1)]
    outside = sum(each <= 0.025 for each in chance)
    ends = [means[outside - 1], means[-outside]] if outside else []
    return [math.exp(each) for each in (median(means), *ends)]


def expected(engine, layout, dtype):
    """Of the cells of a format: the mean of the ratios to the fastest of ours in each launch."""
    cells = defaultdict(dict)
    for name, (cell, own, at) in points().items():
        cells[cell][name] = own, at
    series = []
    for cell, names in cells.items():
        theirs = [name for name, own in names.items() if own == (engine, layout)]
        if cell[2] == dtype and theirs:
            ours = [name for name, own in names.items() if own == ("kvbench", "head")]
            seconds = {name: median(by_launch(of(name), "point").values()) for name in ours}
            series.append(ratios(theirs[0], min(seconds, key=seconds.get)))
    launches = set.intersection(*map(set, series))
    return signed_ranks([fmean(each[launch] for each in series) for launch in sorted(launches)])


def of(name):
    return [visit for visit in journal(ENGINES) if visit["point"] == name]


@cache
def brisk():
    """The visits at speed."""
    return at_speed(journal(ENGINES))


def share(name):
    """The share of a read of the same rows that a point reaches: Hodges' and Lehmann's estimate of
    the launches' medians over rounds, of the time of the faster of both reads over the point's.
    """
    visits = [visit for visit in brisk() if visit["point"] == name]
    reads = {
        read: median(by_launch(visits, read).values())
        for read in ("twin", "twin_ahead")
        if by_launch(visits, read)
    }
    fastest = min(reads, key=reads.get)
    quotients = defaultdict(list)
    for visit in visits:
        samples = {(s["round"], s["program"]): s for s in visit["samples"]}
        for (number, program), own in samples.items():
            read = samples.get((number, fastest))
            if program == "point" and read and alike(own, read):
                taken = own["seconds"] / own["passes"]
                quotients[visit["launch"]].append(read["seconds"] / read["passes"] / taken)
    return signed_ranks([math.log(median(each)) for each in quotients.values()])[0]


def shares(engine, layout, dtype):
    """The geometric mean over the cells of a format; of ours the fastest point of each cell."""
    cells = defaultdict(list)
    for name, (cell, own, at) in points().items():
        if cell[2] == dtype and own == engine and at in (layout, layout or "head"):
            cells[cell].append(name)
    fastest = [
        min(names, key=lambda name: median(by_launch(of(name), "point").values()))
        for names in cells.values()
    ]
    return math.exp(fmean(math.log(share(name)) for name in fastest))

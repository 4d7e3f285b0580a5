"""How long the slowest steps take, from passes that are written here, beside numpy.percentile."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.model import MANY, NEIGHBOUR, STEP, Sample, tails
from kvbench.report.tables import points as table_of
from tests.made_run import DECODE, visit
from tests.report.drawn import found_in


def timed(seed, count=3 * MANY, program="point", least=5 * STEP):
    """A sample for every hundred passes, of which few are slow."""
    each = least * (1 + np.random.default_rng(seed).pareto(4.0, (count // MANY, MANY)))
    return [
        Sample(program, n, MANY, own.sum(), tuple(own), 0.0, 0, 0, sample_time=own.sum())
        for n, own in enumerate(each)
    ]


def of(samples, launch=0, point=DECODE, neighbour=0.0):
    rates = dict.fromkeys({sample.program for sample in samples} | {"twin"}, [10.0])
    return replace(visit(launch, rates, point), tails=tails(samples), neighbour=neighbour)


def test_quantiles_are_of_the_passes_of_a_launch():
    launches = [timed(seed) for seed in range(5)]
    points = found_in([of(samples, n) for n, samples in enumerate(launches)]).points
    passes = [np.concatenate([sample.pass_seconds for sample in samples]) for samples in launches]
    for column, percent in (("pass_p50", 50), ("pass_p99", 99)):
        assert points[column].iloc[0] == pytest.approx(
            np.median([np.percentile(each, percent) for each in passes])
        )
    assert points["pass_note"].iloc[0] == "" and points["neighbour_p50"].isna().all()


def test_few_passes_of_each_launch_are_enough_together():
    launches = [[replace(timed(seed, MANY)[0], passes=30)] for seed in range(5)]
    launches = [[replace(own[0], pass_seconds=own[0].pass_seconds[:30])] for own in launches]
    points = found_in([of(samples, n) for n, samples in enumerate(launches)]).points
    together = np.concatenate([own[0].pass_seconds for own in launches])
    assert points["pass_p99"].iloc[0] == pytest.approx(np.percentile(together, 99), rel=1e-6)
    assert "of all launches" in points["pass_note"].iloc[0]
    (alone,) = found_in([of(launches[0])]).points["pass_note"]
    assert alone == "30 passes are too few for a p99"


def test_short_passes_are_not_told_apart():
    short = [replace(sample, seconds=STEP / 2 * MANY) for sample in timed(1)]
    assert tails(short) == {} and tails(timed(1, program="twin")) == {}


def test_the_table_tells_the_tail_alone_and_beside_a_neighbour():
    samples = [*timed(1), *timed(2, program=NEIGHBOUR, least=10 * STEP)]
    table = table_of(found_in([of(samples, n, neighbour=7.0) for n in range(3)]))
    cell = table.rows[0][table.heads.index("slowest passes")]
    alone, beside = (
        np.concatenate([sample.pass_seconds for sample in timed(seed)]) for seed in (1, 2)
    )
    assert cell.order == pytest.approx(
        np.percentile(alone, 99) / np.percentile(alone, 50), rel=1e-3
    )
    assert (
        cell.text
        == f"{cell.order:.2f}x ({np.percentile(beside, 99) / np.percentile(beside, 50):.2f}x)"
    )

"""Each rule of a score, broken alone: the run reports that rule and no other."""

from dataclasses import replace

import pytest

from kvbench.model import PACE, Sample
from kvbench.score.rules import INVALID, NOISY, OPEN, VALID, Breach, state
from kvbench.submission import scored
from tests.made_run import MIB, failed, machine, traffic
from tests.score import made

FIRST = made.points()[0]
ONE_MORE = 11  # launches, so that one that does not count leaves enough


def changed(change, which, launches=ONE_MORE, **facts):
    """Points and visits, some of them changed. `which`: tells for a record."""
    own = made.points(**facts)
    return own, [change(r) if which(r) else r for r in made.records(own, launches)]


def of_first(launch=None):
    return lambda record: record.point == FIRST and launch in (None, record.launch)


def busy(record):
    return replace(record, samples=tuple(replace(sample, switches=50) for sample in record.samples))


def half_fast(record, by=0.5):
    return made.twice(made.twice(record, by=by), "twin", by)


def paced(record, slow):
    """The cores' own speed beside the point is 60 % in `slow` launches; nothing else shows it."""
    seconds = 1e-3 / (0.6 if record.launch in slow else 1.0)
    pace = Sample(PACE, 0, 1, seconds, (), 0.0, 0, 0, sample_time=1e-3)
    moved = record.traffic | {PACE: traffic(0.0, 1e8)}
    return replace(record, samples=(*record.samples, pace), traffic=moved)


def two_layouts():
    own = [*made.points(), *(replace(each, layout="position") for each in made.points()[:2])]
    return own, list(made.records(own))


LARGE_L3 = replace(made.MACHINE, caches=machine(2, l3=48 * MIB).caches)
ALONE = {
    "answers": lambda: changed(lambda r: failed(r.launch, FIRST), of_first(4)),
    "workload": lambda: changed(None, lambda r: False, shape=replace(made.SHAPE, layers=48)),
    "bytes": lambda: changed(made.lighter, of_first(7)),
    "launches": lambda: changed(None, lambda r: False, launches=9),
    "kernels": two_layouts,
    "above": lambda: changed(lambda r: made.twice(r, by=2), of_first()),
    "witnesses": lambda: changed(lambda r: half_fast(r, 0.45), lambda r: r.point != made.READ),
    "width": lambda: (made.points(), list(made.records(made.points(), wobble=0.15))),
    "other work": lambda: changed(busy, lambda r: r.launch == 3),
    "less memory": lambda: changed(half_fast, lambda r: r.launch == 3),
    "slow cores": lambda: changed(lambda r: paced(r, {3}), lambda r: r.point != made.READ),
}
RULES = {"other work": "contaminated", "less memory": "contaminated", "slow cores": "contaminated"}


@pytest.mark.parametrize("name", ALONE)
def test_one_rule_broken_alone(name, tmp_path):
    own, visits = ALONE[name]()
    launches = max(record.launch for record in visits) + 1
    found = scored(made.run(tmp_path / "run", own, visits, longer=False, launches=launches))
    assert {each.rule for each in found.breaches} == {RULES.get(name, name)}
    assert found.state == (NOISY if name == "width" else INVALID)


def test_a_footprint_that_a_large_cache_holds(tmp_path):
    """32 slices of 4 bits an element, 4.5 MiB each, are less than four times 48 MiB; those of 8 and
    16 bits are more.
    """
    found = scored(made.run(tmp_path / "run", machine=LARGE_L3, longer=False))
    assert {(each.rule, each.bits) for each in found.breaches} == {("caches", 4)}


@pytest.mark.parametrize(("layers", "valid"), [(64, True), (48, False)])
def test_whole_sets_of_the_model_s_layers(layers, valid, tmp_path):
    own = made.points(replace(made.SHAPE, layers=layers))
    found = scored(made.run(tmp_path / "run", own, list(made.records(own)), longer=False))
    assert (found.state == VALID) is valid
    if not valid:
        facts = [each.facts for each in found.breaches]
        assert {"name": "layers", "found": layers, "wanted": 32} in facts


def test_half_of_the_interval_is_held_against_the_limit(tmp_path):
    """Intervals of 5 to 10 %: half of that is allowed, all of it is not."""
    visits = list(made.records(made.points(), wobble=0.05))
    found = scored(made.run(tmp_path / "run", visits=visits, longer=False))
    widths = [(each.tuned.high - each.tuned.low) / each.tuned.tokens for each in found.figures]
    assert all(0.055 < width < 0.095 for width in widths), "or the test shows nothing"
    assert found.state == VALID


def test_cores_at_full_speed_contaminate_nothing(tmp_path):
    visits = [paced(r, set()) if r.point != made.READ else r for r in made.records(made.points())]
    assert scored(made.run(tmp_path / "run", visits=visits, longer=False)).state == VALID


def test_the_slow_launch_is_named(tmp_path):
    own, visits = ALONE["slow cores"]()
    found = scored(made.run(tmp_path / "run", own, visits, longer=False, launches=ONE_MORE))
    (breach,) = found.breaches
    assert breach.facts == {"launch": 3, "cores": pytest.approx(0.6)}


def test_the_worst_breach_decides(tmp_path):
    wide, own, wrong = Breach("width", {}), Breach("own", {}), Breach("answers", {})
    assert [state(each) for each in ((), (wide,), (own,), (wrong,))] == [
        VALID,
        NOISY,
        OPEN,
        INVALID,
    ]
    assert state((wide, own)) == state((own, wide)) == OPEN
    assert state((wide, own, wrong)) == state((wrong, wide)) == INVALID
    visits = list(made.records(made.points(), wobble=0.15))
    both = scored(
        made.run(tmp_path / "run", visits=visits, longer=False, options={"plugin": "/x/mine.so"})
    )
    assert both.state == OPEN and {each.rule for each in both.breaches} == {"own", "width"}

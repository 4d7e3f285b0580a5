"""A decoder gives the same tokens with and without a cache, and others once a cache is wrong."""

import numpy as np
import pytest

from suites.experiments import Cached, displaced, greedy, late, wrong_key
from tests.decoder.conftest import LAYOUTS, PROMPT, STEPS

ROUNDING = 1e-5  # of a logit, whose standard deviation is 1
AT = 40  # the token that is stored wrongly
FAULTS = {
    "one wrong key": ({(0, AT): wrong_key}, 52),
    "one slot written late": ({(layer, AT): late for layer in range(3)}, 88),
    "one row in the next slot": ({(0, AT): displaced}, 52),
}  # what is done, and the first other token


def test_no_best_token_is_near_a_tie(naive):
    best = np.sort(naive, axis=1)[:, -2:]
    assert (best[:, 1] - best[:, 0]).min() > 100 * ROUNDING
    assert len(set(naive.argmax(axis=1))) > 100  # it does not repeat itself


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cached_equals_naive(layout, decoder, naive, caches):
    found = greedy(Cached(decoder, caches(**LAYOUTS[layout])).step, PROMPT, STEPS)
    assert found.argmax(axis=1).tolist() == naive.argmax(axis=1).tolist()
    assert np.abs(found - naive).max() < ROUNDING


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_cache_never_recovers(fault, layout, decoder, naive, caches):
    faults, first = FAULTS[fault]
    found = greedy(Cached(decoder, caches(**LAYOUTS[layout]), faults=faults).step, PROMPT, STEPS)
    off = np.abs(found - naive).max(axis=1)
    step = AT - len(PROMPT) + 1
    assert off[:step].max() < ROUNDING and off[step:].min() > 50 * ROUNDING
    same = found.argmax(axis=1) == naive.argmax(axis=1)
    step = first - len(PROMPT) + 1
    assert same[:step].all() and not same[step]
    assert same[step:].mean() < 0.05  # by chance

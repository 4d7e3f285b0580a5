"""How much a format changes an answer, against an attention and formats restated in the tests."""

import numpy as np
import pytest

from kvbench.analysis.means.formats import (
    KEYS,
    drawn,
    format_error,
    format_errors,
    relative_error,
)
from kvbench.native import Cache, default_library
from tests.native.test_cache_life import kept
from tests.oracle import attend

TOKENS, HEADS, GROUP, DIM = 96, 8, 2, 128


def attended(q, k, v):
    """The attention of one sequence: q [1,Hq,D], k and v [1,T,Hkv,D]."""
    grouped = q.reshape(HEADS, GROUP, DIM)
    return attend(grouped, k[0].swapaxes(0, 1), v[0].swapaxes(0, 1), 1 / np.sqrt(DIM))[0]


def test_a_heavy_key_has_a_few_large_elements():
    plain, heavy = (drawn(keys, TOKENS, HEADS * GROUP, HEADS, DIM) for keys in KEYS)
    ratios = heavy[1] / plain[1]
    assert np.array_equal(np.unique(ratios.round(3)), [1, 20])
    assert ((ratios > 2).sum(axis=3) == 4).all() and (np.ptp(ratios, axis=(0, 1, 2)) < 1e-4).all()
    assert np.array_equal(plain[0], heavy[0]) and np.array_equal(plain[2], heavy[2])
    assert 0.9 < plain[1].std() < 1.1
    assert drawn("heavy", 4, 1, 1, 2)[1].shape == (1, 4, 1, 2)  # of rows with fewer elements


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("dtype", default_library().words("dtype"))
def test_errors_of_formats(dtype, keys):
    q, *stored = drawn(keys, TOKENS, HEADS * GROUP, HEADS, DIM)
    right = attended(q, *stored)
    found = attended(q, *(kept(side, dtype) for side in stored))
    wanted = np.sqrt(((found - right) ** 2).mean() / (right**2).mean())
    with Cache(HEADS, DIM, TOKENS, dtype=dtype) as cache:
        cache.bulk(*stored)
        error = format_error(q, tuple(stored), cache.numpy())
    assert error == pytest.approx(wanted, rel=1e-6) and (error > 0) is (dtype != "f32")


def test_a_share_of_what_is_right():
    right = np.array([3.0, -4.0])
    assert relative_error(right + 1, right) == pytest.approx(np.sqrt(2 / 25))
    assert relative_error(right, right) == 0


@pytest.mark.parametrize(("dtype", "k_scale"), [("i8+q4_0", "channel"), ("q8_0+q4_0", "token")])
def test_errors_of_pairs_and_of_scales_by_channel(dtype, k_scale):
    """Scales are 1.5 times what the first half of the tokens needs. The second half uses them, too,
    and is clamped where it is larger.
    """
    of_k, of_v = dtype.split("+")
    found = {}
    for keys in KEYS:
        q, k, v = drawn(keys, 256, 32, 8, 128)
        stored = kept(k, of_k)
        if k_scale == "channel":
            scales = 1.5 * np.abs(k[:, :128]).max(axis=1, keepdims=True) / np.float32(127)
            stored = np.clip(np.rint(k / scales), -127, 127) * scales
        heads = q.reshape(8, 4, 128), *(own[0].swapaxes(0, 1) for own in (stored, kept(v, of_v)))
        exact = q.reshape(8, 4, 128), *(own[0].swapaxes(0, 1) for own in (k, v))
        got, right = (attend(*each, 1 / np.sqrt(128))[0] for each in (heads, exact))
        found[keys] = np.sqrt(((got - right) ** 2).mean() / (right**2).mean())
    assert format_errors(dtype, k_scale=k_scale) == pytest.approx(found, rel=1e-4)
    assert found["normal"] < found["heavy"]


def test_heavy_keys_lose_less_by_channel():
    token, channel = (format_errors("i8", k_scale=word) for word in ("token", "channel"))
    assert channel["heavy"] < token["heavy"] / 2 and channel["normal"] < 1.5 * token["normal"]

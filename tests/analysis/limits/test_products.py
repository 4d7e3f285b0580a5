"""A point beside the peak of its own products."""

from dataclasses import replace

import pytest
from msgspec import UNSET

from kvbench.analysis.limits.profile import profile
from tests.cli.test_profile import POINT, visit_of

BYTES_AND_BF16 = replace(POINT, variant="dot", dtype="q8_0", v_dtype="bf16")


def test_products_of_two_kinds_take_the_time_of_both():
    """Half of 4 GFLOP each: bytes would do all in 10 ms, bf16 in 20. Multiply-adds are not used."""
    seconds = {"point": [0.1], "ceiling": [0.05], "dot8": [0.01], "dot16": [0.02], "fma": [0.03]}
    facts = profile(replace(visit_of(seconds), point=BYTES_AND_BF16))
    assert facts.fma_gflops == pytest.approx(4 / 0.015)
    assert facts.fma_fraction == pytest.approx(0.15)
    del seconds["dot16"]
    facts = profile(replace(visit_of(seconds), point=BYTES_AND_BF16))
    assert (facts.fma_gflops, facts.fma_fraction) == (UNSET, UNSET)

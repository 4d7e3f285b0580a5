"""A suite written in a test, and expanded."""

from functools import partial

import pytest

from tests.plan.made_sweep import expanded


@pytest.fixture
def sweep(tmp_path):
    return partial(expanded, tmp_path)

import pytest

from tests.raw import Raw
from tests.trial import Bench


def pytest_generate_tests(metafunc):
    """A test that takes `isa` runs on every tier of this CPU."""
    if "isa" in metafunc.fixturenames:
        metafunc.parametrize("isa", Raw().tiers())


@pytest.fixture(scope="session")
def raw():
    return Raw()


@pytest.fixture(scope="session")
def bench(raw):
    bench = Bench(raw)
    yield bench
    bench.close()

import pytest

from kvbench.units import GB, GIB, KIB, MIB, duration, gbps, size


def test_rates_are_decimal_and_capacities_binary():
    assert gbps(3 * GB, 2) == 1.5
    assert (GB, KIB, MIB, GIB) == (10**9, 2**10, 2**20, 2**30)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (3 * MIB // 2, "1.5 MiB"), (40 * GIB, "40 GiB")],
)
def test_size(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (0.0301, "30.1 ms"), (1.5e-6, "1.5 µs"), (8e-9, "8 ns"), (0, "0 ns")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text

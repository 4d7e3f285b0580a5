import pytest

from kvbench.units import GB, GIB, KIB, MIB, counted, cpu_list, cpu_text, cut, duration, gbps, size


def test_rates_are_decimal_and_capacities_binary():
    assert gbps(3 * GB, 2) == 1.5
    assert (GB, KIB, MIB, GIB) == (10**9, 2**10, 2**20, 2**30)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (3 * MIB // 2, "1.5 MiB"),
        (40 * GIB, "40 GiB"),
        (1 << 41, "2 TiB"),
    ],
)
def test_size(count, text):
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (0.0301, "30.1 ms"), (1.5e-6, "1.5 µs"), (8e-9, "8 ns"), (0, "0 ns")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("cpus", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 5), "0-2,5"), ((0, 2, 8, 9), "0,2,8-9")]
)
def test_cpu_lists(cpus, text):
    assert cpu_text(cpus) == text and cpu_list(text) == set(cpus)


def test_counted():
    assert [counted(1, "launch"), counted(2, "launch"), counted(0, "point")] == [
        "1 launch",
        "2 launches",
        "0 points",
    ]


@pytest.mark.parametrize(("longest", "text"), [(5, "paged"), (4, "pag…"), (1, "…")])
def test_cut(longest, text):
    assert cut("paged", longest) == text

"""A chase as a user meets it: what a profile shows of it, and what a machine without a CPU for it
refuses.
"""

from dataclasses import replace

import pytest

from kvbench.analysis.limits.profile import profile
from kvbench.cli.measure.profile import _chase
from kvbench.model import Sample
from tests.cli.test_cli import told
from tests.cli.test_profile import POINT, visit_of
from tests.machine.trees import grow


def test_a_chase_has_lines_of_its_own():
    """Medians over rounds; those that end a round have no line."""
    names = ["idle", "spin", "idle_after", "spin_after"]
    names += [f"loaded_{load}.{n}" for load in ("read", "copy", "point") for n in (25, 50, 75, 100)]
    visit = visit_of(dict.fromkeys(("point", "twin", "core", "ceiling", "fma"), [0.1, 0.1, 0.1]))
    seen = [
        Sample(name, number, 3, 0.02, (), 0.02, 0, 0, load=place + number, latency=latency)
        for place, name in enumerate(names)
        for number in range(3)
        for latency in [((100 + place + number) * 1e-9, (200 + place) * 1e-9)]
    ]
    point = replace(POINT, chase="node")
    facts = profile(replace(visit, point=point, samples=(*visit.samples, *seen)))
    first, heading, *lines = _chase(facts)
    assert not first and heading.split()[3:5] == ["chase:", "node"]
    assert [line.split()[-4:] for line in lines[:2]] == [
        ["alone", "101", "200", "ns"],
        ["L1", "102", "201", "ns"],
    ]
    assert " ".join(lines[2].split()) == "beside plain reads, paced to 25% 105 204 ns 5.0"
    assert " ".join(lines[-1].split()) == "beside decode, paced to 100% 116 215 ns 16.0"
    assert len(lines) == 14 and not _chase(profile(visit))


@pytest.fixture
def planted(monkeypatch, tmp_path):
    """A machine of two cores, of which some are allowed."""

    def plant(allowed):
        more = {"proc/meminfo": f"MemTotal: {64 << 20} kB\nMemAvailable: {32 << 20} kB"}
        grow(tmp_path / allowed, cores=2, allowed=allowed, more=more)
        monkeypatch.setenv("KVBENCH_ROOT", str(tmp_path / allowed))

    return plant


def test_one_node_has_no_other_to_chase_on(planted, capsys):
    planted("0-1")
    code, out, _ = told(capsys, "sweep", "latency", "--dry-run")
    assert code == 0 and "no such NUMA node: a chase on another NUMA node" in out


@pytest.mark.parametrize(
    "asked", ["sweep latency", "profile decode --model llama-3-8b --chase node"]
)
def test_one_cpu_is_refused_in_a_line(asked, planted, capsys):
    planted("1")
    code, out, err = told(capsys, *asked.split())
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "not enough CPUs: a chase takes a CPU of its own, but 1 CPU is allowed" in err

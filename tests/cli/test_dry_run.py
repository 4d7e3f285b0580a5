"""kvbench sweep --dry-run and kvbench list suites on a made-up machine, as a user meets them."""

import json
import re
from collections import Counter

import pytest

from kvbench.native import Cache, default_library
from kvbench.plan.needs import slice_bytes, tokens_in
from kvbench.suite import AXES, shipped
from tests.cli.test_cli import output_of, told
from tests.machine.trees import grow

CACHES = [(1, "Data", "32K", 1), (2, "Unified", "512K", 1), (3, "Unified", "32768K", 2)]


@pytest.fixture(autouse=True)
def made_up(monkeypatch, tmp_path):
    tree = tmp_path / "tree"
    more = {"proc/meminfo": f"MemTotal: {64 << 20} kB\nMemAvailable: {32 << 20} kB"}
    grow(tree, cores=2, caches=CACHES, more=more)
    monkeypatch.setenv("KVBENCH_ROOT", str(tree))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def listings():
    return []


@pytest.fixture
def listed(listings, made_up, capsys):
    """What `list suites` printed here, and with --json its rows. It plans every suite, so that each
    is called once.
    """
    if not listings:
        listings.append(told(capsys, "list", "suites"))
        listings.append(json.loads(output_of(capsys, "list", "suites", "--json"))["suites"])
    return listings


def dry_run(capsys, *asked):
    return told(capsys, "sweep", "--dry-run", *asked)


def test_text(capsys):
    code, out, err = dry_run(capsys, "l3fit", "--axis", "isa=scalar")
    assert code == 0 and not err
    first, points, when, memory, *rest = out.splitlines()
    assert first.startswith("l3fit: Is a KV slice")
    assert " points, " in points and " contrasts, 10 launches of 3 samples of 30 ms" in points
    assert "time: about " in when and "estimate" in when
    assert "32 GiB available" in memory and "decode.flash" in memory
    assert any(line.split()[:2] == ["layers", "0"] for line in rest)


def test_what_is_left_out(capsys):
    code, out, _ = dry_run(capsys, "threads", "--axis", "threads=1,4")
    assert code == 0
    assert (
        "left out: " in out and "not enough CPUs: 4 threads on 2 CPUs" in out and "threads=4" in out
    )


def test_json(capsys):
    code, out, _ = dry_run(
        capsys,
        "threads",
        "--json",
        "--axis",
        "context=1k,8k",
        "--axis",
        "pages=base",
        "--axis",
        "threads=1,4",
    )
    facts = json.loads(out)
    assert code == 0 and facts["version"] == 2 and facts["suite"] == "threads"
    assert facts["count"] == len(facts["points"]) > 0
    assert facts["axes"]["context"] == [1024, 8192] and facts["axes"].keys() <= AXES.keys()
    assert {point["pages"] for point in facts["points"]} == {"base"}
    assert facts["memory"]["available"] == 32 << 30 and 0 < facts["memory"]["needed"] < 32 << 30
    assert facts["seconds"] > 0 and facts["launches"] == 10
    (skip,) = facts["skips"]
    assert (
        skip["count"] > 0 and skip["reason"] and skip["detail"] and skip["example"]["threads"] == 4
    )


def test_it_is_asked_as_a_sweep_is(capsys):
    asked = (
        "--only *.i8.* --only *.bf16.* --launches 3 --samples 2 --sample-time 0.5 --cpus 1 --pages"
        " base"
    )
    code, out, _ = dry_run(capsys, "dtypes", "--json", *asked.split())
    facts = json.loads(out)
    assert code == 0 and (facts["launches"], facts["samples"], facts["sample_time"]) == (3, 2, 0.5)
    seen = {(point["dtype"], point["pages"], *point["cpus"]) for point in facts["points"]}
    assert seen == {("i8", "base", 1), ("bf16", "base", 1)}


def test_a_suite_of_ones_own(capsys, made_up):
    (made_up / "mine.toml").write_text(
        'question = "Mine?"\n[axes]\nmodel = "gpt-2"\npages = "base"\nsamples = 3'
    )
    code, out, err = dry_run(capsys, "mine.toml")
    assert code == 2 and not out
    assert f"{made_up}/mine.toml: axes: samples is not an axis (" in err and err.count("\n") == 1
    (made_up / "mine.toml").write_text(
        'question = "Mine?"\n[axes]\nmodel = "gpt-2"\npages = "base"'
    )
    code, out, err = dry_run(capsys, "mine.toml")
    assert code == 0 and out.startswith("mine: Mine?\n  1 point")


def test_nothing_to_measure_is_refused_as_a_sweep_of_it_is(capsys, made_up):
    (made_up / "mine.toml").write_text('question = "Mine?"\n[axes]\nmodel = "gpt-2"\nthreads = 64')
    code, out, err = dry_run(capsys, str(made_up / "mine.toml"))
    assert (
        code == 2
        and not out
        and told(capsys, "sweep", str(made_up / "mine.toml")) == (code, out, err)
    )
    assert (
        "64 threads on 2 CPUs" in err and "model=gpt-2 threads=64" in err and err.count("\n") == 1
    )
    (made_up / "mine.toml").write_text(
        'question = "Mine?"\n[axes]\nmodel = "gpt-2"\n[[skip]]\nop = "decode"'
    )
    code, out, err = dry_run(capsys, "mine.toml")
    assert code == 2 and not out and "[[skip]]" in err


def test_a_forced_tier_is_the_best(capsys, monkeypatch):
    monkeypatch.setenv("KVBENCH_ISA", "scalar")
    _, out, _ = dry_run(capsys, "smoke", "--json")
    assert {point["isa"] for point in json.loads(out)["points"]} == {"scalar"}
    monkeypatch.setenv(
        "KVBENCH_ISA", next(isa for isa in default_library().words("isa") if isa != "scalar") + "x"
    )
    code, _, err = dry_run(capsys, "smoke")
    assert code == 2 and "KVBENCH_ISA" in err


def test_suites(listed):
    code, out, _ = listed[0]
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} == set(shipped())
    assert all(" points " in line and line.endswith("?") for line in out.splitlines())


@pytest.mark.parametrize(
    ("suite", "word"), [("quick", "up to"), ("smoke", "about"), ("standard", "about")]
)
def test_one_forecast_a_suite(listed, capsys, suite, word):
    """The listing's is the dry run's, in words and in JSON. quick adds launches for up to 360 s."""
    (_, text, note), rows = listed
    (line,) = (line for line in text.splitlines() if line.split()[0] == suite)
    time = re.search(r"points  (.*?)  +", line)[1]
    assert time.startswith(word) and "Times are forecasts" in note
    assert f"  time: {time} from start to end" in dry_run(capsys, suite)[1]
    (row,) = (row for row in rows if row["name"] == suite)
    assert row["seconds"] == json.loads(dry_run(capsys, suite, "--json")[1])["seconds"]
    if suite == "quick":
        assert row["seconds"] >= 360


def test_every_reason_why_there_are_no_points_is_told(capsys):
    code, out, err = dry_run(capsys, "latency", "--axis", "residency=hot")
    assert (code, out) == (2, "") and len(err.splitlines()) == 1
    assert "invalid combination: a chase needs residency rotate, not hot" in err
    assert "no such NUMA node: a chase on another NUMA node" in err


def test_without_caches_there_is_nothing_to_take_time(capsys, made_up, monkeypatch):
    grow(made_up / "bare", cores=2, caches=[])
    monkeypatch.setenv("KVBENCH_ROOT", str(made_up / "bare"))
    code, out, err = dry_run(capsys, "l3fit")
    assert (code, out) == (2, "") and "left out: cache size unknown" in err
    code, out, _ = told(capsys, "list", "suites")
    (line,) = (line for line in out.splitlines() if line.startswith("l3fit"))
    assert line.split()[1:6] == ["0", "points", "about", "0", "s"] and line.endswith(
        "? (cache size unknown)"
    )


def test_the_largest_plan_is_quick(capsys, monkeypatch):
    """Judged by its calls of the kernels' library, which are most of its work: none twice, and few
    for each point.
    """
    asked = Counter()
    planned = Cache.planned

    def counted(*sizes, **facts):
        asked[sizes, tuple(sorted(facts.items()))] += 1
        return planned(*sizes, **facts)

    monkeypatch.setattr(Cache, "planned", staticmethod(counted))
    slice_bytes.cache_clear()
    tokens_in.cache_clear()
    _, out, _ = dry_run(capsys, "full", "--json")
    assert 0 < asked.total() < 2 * json.loads(out)["count"]
    assert asked.most_common(1)[0][1] == 1

"""A run directory read as a run: the machine, the checks before it, and its results."""

import subprocess
import sys
import tomllib
from dataclasses import asdict, fields, replace

import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.model import Check
from kvbench.model.geometry import Geometry
from kvbench.report.words.findings import sentences
from kvbench.results import geometries
from kvbench.store import RunDirectory
from kvbench.store.run import FILES
from tests.cli.test_cli import call
from tests.made_run import DECODE, MACHINE, probe, visit
from tests.raw import ROOT
from tests.store.made import manifest

MODELS = ROOT / "suites" / "models.toml"
SHIPPED = sorted(path.parent for path in (ROOT / "results").glob("*/*/manifest.json"))
WARNED = Check("load", "warn", "1.5", "others work", "wait")


def written(path, facts):
    records = [visit(0, {"point": [15.0]}), replace(probe(0, 20.0), steps=1)]
    points = tuple(record.point for record in records)
    with RunDirectory.create(path, manifest(points=points, launches=1, run="mine")) as run:
        run.write_machine({"topology": asdict(MACHINE)} | facts)
        for record in records:
            run.append(record)
    return kvbench.load(path)


def test_a_run_says_what_was_measured_and_what_was_checked(tmp_path):
    run = written(tmp_path / "run", {"preflight": [asdict(WARNED)]})
    assert run.checks == (WARNED,) and run.machine == MACHINE
    said = {each.topic: each.text for each in sentences(run.findings())}
    assert said["checks"] == "What may have disturbed the run: load (1.5)."
    assert list(run.frame("points")["name"]) == [DECODE.name]


@pytest.mark.parametrize("lines", [None, [], "none", [None, 3, {"name": "load"}]])
def test_a_preflight_that_cannot_be_read_is_none(tmp_path, lines):
    assert written(tmp_path / "run", {"preflight": lines}).checks == ()


def test_geometries_are_those_of_the_file():
    known = tomllib.loads(MODELS.read_text())
    found = {model.name: model for model in geometries(known)}
    assert found.keys() == known.keys()
    for name, facts in known.items():
        expected = dict.fromkeys(("window", "window_every", "hidden", "intermediate"), 0)
        expected |= {"v_dim": 0, "sinks": "none", "softcap": 0}
        expected |= {**facts, "name": name}
        for field in fields(Geometry):
            assert getattr(found[name], field.name) == expected[field.name]


# ---- what is shipped -----------------------------------------------------------------------------


READERS = (  # and whether it takes long
    ("report RUN --format csv", False),
    ("report RUN --format md", True),
    ("report RUN -o page", True),
    ("compare base RUN --bless", False),
    ("history add RUN --root runs", False),
    ("history show --root runs", False),
    ("history export --root runs", False),
    ("size llama-3-8b --context 4096 --machine RUN", False),
)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: "-".join(path.parts[-2:]))
def test_every_command_that_a_readme_names_reads_it(shipped, whole, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert set(FILES) <= {path.name for path in shipped.iterdir()}
    for command in (command for command, slow in READERS if whole or not slow):
        assert call(*(word.replace("RUN", str(shipped)) for word in command.split())) == 0, (
            capsys.readouterr().err
        )
    asked = [sys.executable, "-m", "pyperf", "stats", shipped / "run.json.gz"]
    subprocess.run(asked, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def shipped():
    return kvbench.load(ROOT / "results" / "zen4-kvm-2" / "quick")


def test_a_run_says_what_it_is(shipped):
    assert repr(shipped).startswith(
        "<kvbench run 20261129-203904-4af9 of quick: 71 points in 14 launches, "
    )


def test_tables(shipped):
    assert len(shipped.points) == 71 and shipped.frame("points") is shipped.points
    assert set(shipped.ceilings["op"]) >= {"read", "copy", "flops"} and len(shipped.contrasts)
    for table in (shipped.points, shipped.ceilings, shipped.contrasts, shipped.tokens()):
        assert not any(isinstance(value, tuple | list | dict) for value in table.iloc[0])
    assert set(shipped.tokens(model="llama-3-8b")["model"]) == {"llama-3-8b"}
    with pytest.raises(BadArgument, match="llama-3-8c"):
        shipped.tokens(model="llama-3-8c")
    with pytest.raises(BadArgument, match="table"):
        shipped.frame("pints")


def test_figures(shipped):
    assert "tokens/s" in shipped.plot("hero").get_xlabel() and len(
        shipped.plot("roofline").figure.axes
    )
    with pytest.raises(BadArgument) as caught:
        shipped.plot("rooflin")
    assert caught.value.hint.startswith("did you mean roofline?")


def test_the_package_lists_what_it_has():
    assert {"Cache", "load", "sweep", "native"} <= set(dir(kvbench))
    assert all(getattr(kvbench, name) for name in dir(kvbench))

"""profile --engine: options that exclude it, and faults. Planted engines answer as float64 does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kvbench.oracle import attention, whole
from kvbench.peers.interface import LayerShape
from tests.cli.test_cli import errors_of
from tests.peers import fakes, planted
from tests.peers.outside import register

FAULTS = ("Liar", "Dying", "Hanging")
SIZES = "--q-heads 4 --kv-heads 2 --head-dim 32 --context 512 --layers 2"
SHORT = ["--threads", "1", "--samples", "3", "--sample-time", "0.001", "--patience", "3"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return planted.build(tmp_path_factory.mktemp("planted"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", planted.KINDS)
def test_planted_engines_are_right(kind, threads, library):
    shape, coin = LayerShape(4, 2, 32, 100), np.random.default_rng(1)
    k, v = coin.standard_normal((2, 3, 2, 100, 32), dtype=np.float32)
    q = coin.standard_normal((3, 4, 32), dtype=np.float32)
    engine = kind("f32", "head", threads, str(library))
    engine.setup(shape, k, v)
    engine.ask(q)
    for layer in (0, 2, 1):
        engine.step(layer)
        rows = whole(*(side[layer].transpose(1, 0, 2)[None] for side in (k, v)))
        right = attention(q[layer][None], rows, [100])[0]
        np.testing.assert_allclose(engine.output(layer), right, atol=1e-5)
    assert engine.bytes() == 2 * 2 * 100 * 32 * 4


def test_the_script_says_what_it_found(monkeypatch, capsys):
    """For an engine without a fault it expects nothing: times decide no test."""
    monkeypatch.setattr(planted, "KINDS", (planted.Even,))
    monkeypatch.setattr(planted, "_MOST", 1)
    monkeypatch.setattr(planted, "_SIZES", [*SIZES.split(), "--sample-time", "0.001"])
    assert planted.main(["--samples", "2"]) == 0
    _, row, found = capsys.readouterr().out.splitlines()
    assert re.match(r"even +(start|core|rest|-) +([\d.-]+% \(.*?\) *){4}$", row), row
    assert found == "all that was planted is found"


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """How each faulty engine ended; all run at once, and their processes have a mark."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "fakes.py").write_text(Path(fakes.__file__).read_text())
    register(folder, "fakes", [f"{name.lower()} = fakes:{name}" for name in FAULTS])
    environment = {**os.environ, "PYTHONPATH": str(folder), "MARK": str(folder)}
    command = [sys.executable, "-m", "kvbench.cli", "profile", "decode", *SIZES.split(), *SHORT]
    how = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    begun = {name: subprocess.Popen([*command, "--engine", name.lower()], **how) for name in FAULTS}
    found = {name: (*each.communicate(timeout=60), each.returncode) for name, each in begun.items()}
    return found, str(folder)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_and_no_time(name, ended):
    out, err, code = ended[0][name]
    assert code == 4 and not out
    line = err.splitlines()[-1]
    assert line.startswith(f"kvbench: the peer {name.lower()}") and fakes.FAULTS[name] in line
    assert "Traceback" not in err


def test_no_process_is_left(ended):
    left = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            left += [each] if f"MARK={ended[1]}".encode() in each.read_bytes() else []
        except OSError:  # it is gone, or somebody else's
            continue
    assert not left


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--engine", "nump"], "nump"),
        (["--engine", "numpy=/no/such.so"], "neither a library nor an interpreter"),
        (["--engine", "numpy", "--dtype", "q4_0"], "numpy has no head q4_0"),
        (["--engine", "numpy", "--residency", "hot"], "from memory"),
        (["--engine", "numpy", "--batch", "2"], "one sequence"),
        (
            ["--engine", "numpy", "--q-len", "2", "--mask", "tree"],
            "ask for mask=chain",
        ),
        (
            ["--engine", "numpy", "--schedule", "off"],
            "--schedule works with kvbench's own kernels only",
        ),
        (["--engine", "numpy", "--neighbour"], "--neighbour works with kvbench's own kernels only"),
    ],
)
def test_options_that_do_not_go_with_it(more, said, capsys):
    assert said in errors_of(capsys, "profile", "decode", *SIZES.split(), *more)


def test_it_times_only_decodes(capsys):
    assert "--engine needs OP decode" in errors_of(capsys, "profile", "step", "--engine", "numpy")

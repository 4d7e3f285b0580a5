"""A fleet on this machine: three workers act as hosts. Finished runs are kept, whichever process is
lost.
"""

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from kvbench.errors import BadArgument, BadRun
from kvbench.fleet import fleet, gather
from kvbench.results import load
from tests.machine import trees
from tests.report import made

pytest.importorskip("distributed")

BRIEF = ("--launches", "1", "--samples", "1", "--sample-time", "0.001")
SWEEP = ("smoke", *BRIEF, "--only", "decode.flash.head.f16.*", "--axis", "context=512")
LONG = (*SWEEP[:2], "200", *SWEEP[3:])


def _started(*words, **environment):
    command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]]
    return subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@contextmanager
def cluster(tmp_path, names):
    """Processes: a scheduler, and a worker for each name."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    running = {
        "scheduler": _started(
            "dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            address.rpartition(":")[2],
            "--no-dashboard",
        )
    }
    for name in names:
        own = tmp_path / f"tree-{name}"
        trees.grow(own, cores=2, brand=f"CPU of {name}")
        facts = {"KVBENCH_HOST": name, "KVBENCH_ROOT": str(own)}
        running[name] = _started(
            "dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard", **facts
        )
    try:
        _all_there(address, len(names))
        yield address, running
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _all_there(address, count):
    from distributed import Client

    end = time.monotonic() + 60
    while True:
        try:
            with Client(address, timeout=5, set_as_default=False) as client:
                client.wait_for_workers(count, timeout=60)
                return
        except OSError:
            assert time.monotonic() < end


def twice(test):
    """Run a test again once if it fails: Dask may lose a worker that got no CPU for long."""

    @functools.wraps(test)
    def tried(tmp_path):
        for folder in (tmp_path / "first", tmp_path / "second"):
            folder.mkdir()
        try:
            test(tmp_path / "first")
        except AssertionError:
            test(tmp_path / "second")

    return tried


@twice
def test_one_host_is_killed_and_the_others_come_back(tmp_path):
    with cluster(tmp_path, "abc") as (address, running):

        def told(host, line):
            if host == "b" and running["b"].poll() is None:
                running["b"].kill()

        arrived = {
            each.host: each
            for each in fleet(address, SWEEP, str(tmp_path / "there"), tmp_path / "here", told)
        }
    assert sorted(arrived) == ["a", "b", "c"]
    assert arrived["b"].lost.startswith("its worker is gone; the finished part is on the host in")
    for host in "ac":
        assert not arrived[host].lost and len(load(tmp_path / "here" / host).points) > 0


@twice
def test_the_scheduler_is_killed_and_gather_brings_finished_runs(tmp_path):
    with cluster(tmp_path, "ab") as (address, running):
        there = tmp_path / "there"

        def told(host, line):
            if all((there / name / "journal.jsonl").exists() for name in "ab"):
                running["scheduler"].send_signal(signal.SIGKILL)

        arrived = list(fleet(address, LONG, str(there), tmp_path / "here", told))
    for each in psutil.process_iter(["cmdline"]):
        if str(there) in " ".join(each.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                each.terminate()
    assert {each.host for each in arrived} == {"a", "b"}
    assert ["scheduler is gone" in each.lost for each in arrived] == [True, True]
    found = gather([there], tmp_path / "gathered")
    assert len(found) == 2 and gather([there], tmp_path / "gathered") == found, (
        "gathering again adds none"
    )
    assert all(isinstance(path, Path) and load(path).manifest.suite == "smoke" for path in found)


def test_a_run_that_is_damaged_or_misnamed(tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "manifest.json").write_text('{"run":')
    with pytest.raises(BadRun, match="manifest.json"):
        gather([tmp_path / "bad"], tmp_path / "out")
    points = made.READS[:6]
    made.directory(tmp_path / "there", made.whole(points, 3), points, run="one")
    facts = json.loads((tmp_path / "there" / "manifest.json").read_text())
    facts["versions"]["hostname"] = "../../else"
    (tmp_path / "there" / "manifest.json").write_text(json.dumps(facts))
    assert gather([tmp_path / "there"], tmp_path / "out") == [tmp_path / "out" / "_.._else"]


def test_no_host_answers(tmp_path):
    with pytest.raises(BadArgument, match="--scheduler tcp://127.0.0.1:9"):
        list(fleet("tcp://127.0.0.1:9", SWEEP, str(tmp_path), tmp_path, print))

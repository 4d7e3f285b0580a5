"""`kvbench doctor` as a user meets it, on a made-up machine and on this one."""

import json
import os
import sys

import pytest

from kvbench.machine.preflight import CHECKS
from tests.cli.test_cli import told
from tests.machine.healthy import CLOCKSOURCE, HEALTHY, THP, Still
from tests.machine.trees import grow, put
from tests.processes import succeeds

STATUS = {
    "/proc/self/status": "Cpus_allowed_list:\t0-1\nTHP_enabled:\t1\nCapEff:\t0000000000000000\n"
}
MADVISE_NEVER = {f"{THP}/enabled": "always madvise [never]"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Replace this machine by a healthy machine of two cores."""
    grow(
        tmp_path,
        cores=2,
        caches=[(1, "Data", "32K", 1), (3, "Unified", "32768K", 2)],
        more=HEALTHY | STATUS,
    )
    monkeypatch.setenv("KVBENCH_ROOT", str(tmp_path))
    monkeypatch.setattr("kvbench.machine.preflight.Live", lambda: Still(tmp_path))
    return tmp_path


def test_a_healthy_machine(root, capsys):
    code, out, err = told(capsys, "doctor", "--strict")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == len(CHECKS) and all(line.startswith("ok ") for line in lines)
    assert err == f"{len(CHECKS)} checks: {len(CHECKS)} ok, 0 warnings, 0 unknown\n"
    values = {line[9:].split("  ")[0]: line for line in lines}
    assert len({line.index(line[9 + len(name) :].strip()) for name, line in values.items()}) == 1, (
        "one column"
    )


def test_what_is_not_well_is_explained(root, capsys):
    put(root, MADVISE_NEVER)
    (root / CLOCKSOURCE.lstrip("/")).unlink()
    code, out, err = told(capsys, "doctor")
    lines = out.splitlines()
    assert code == 0
    (at,) = (i for i, line in enumerate(lines) if line.startswith("warn "))
    assert lines[at].split()[:5] == ["warn", "transparent", "huge", "pages", "never;"]
    assert lines[at + 1].startswith("         why: ") and lines[at + 2].startswith(
        "         do:  echo madvise | sudo tee"
    )
    (at,) = (i for i, line in enumerate(lines) if line.startswith("unknown "))
    assert "clock source" in lines[at] and "current_clocksource" in lines[at]
    assert lines[at + 1].startswith("         why: ")
    assert err == f"{len(CHECKS)} checks: {len(CHECKS) - 2} ok, 1 warning, 1 unknown\n"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_strict(root, capsys, form):
    (root / CLOCKSOURCE.lstrip("/")).unlink()
    assert told(capsys, "doctor", "--strict", *form)[0] == 0, "what is unknown is no warning"
    put(root, MADVISE_NEVER)
    assert told(capsys, "doctor", "--strict", *form)[0] == 5
    assert told(capsys, "doctor", *form)[0] == 0


def test_json(root, capsys):
    put(root, MADVISE_NEVER)
    code, out, err = told(capsys, "doctor", "--json")
    answer = json.loads(out)
    assert (code, err, answer["version"]) == (0, "", 1)
    assert answer["fingerprint"] and answer["environment"]
    assert len(answer["checks"]) == len(CHECKS)
    for check in answer["checks"]:
        assert check.keys() == {"name", "status", "value", "why", "advice"}
        assert check["status"] in ("ok", "warn", "unknown") and check["value"] and check["why"]
    assert [check["name"] for check in answer["checks"] if check["status"] == "warn"] == [
        "transparent huge pages"
    ]


def test_a_quota_and_threads_asked_for(root, capsys):
    """1.5 CPUs: one thread by default. Three of them would be throttled, and wrap round."""
    put(
        root,
        {
            "/sys/fs/cgroup/cpu.max": "150000 100000",
            "/sys/fs/cgroup/cpu.stat": "nr_periods 0\nnr_throttled 0",
        },
    )
    code, out, _ = told(capsys, "doctor", "--strict")
    assert code == 0 and "1.5 CPUs' worth of time; threads: 1, allowed CPUs: 2" in out
    code, out, _ = told(capsys, "doctor", "--strict", "--threads", "3")
    assert code == 5 and "threads: 3" in out and "or use --axis threads=1" in out


WATCHED = """
import os, sys

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = os.fsdecode(args[0])
        if args[2] & WRITES and path.startswith(("/sys/", "/proc/")):
            os.write(2, f"WRITES {path}\\n".encode())
    elif event.startswith((
        "os.ch", "os.re", "os.mk", "os.link", "os.symlink", "os.trunc", "subprocess", "os.exec"
    )):
        if not str(args[0]).endswith(("__pycache__", ".pyc")) and ".pyc." not in str(args[0]):
            os.write(2, f"CHANGES {event} {args}\\n".encode())

mask = os.sched_getaffinity(0)
sys.addaudithook(watch)
from kvbench.cli import main
try:
    main(["doctor"])
finally:
    assert os.sched_getaffinity(0) == mask
"""


def test_this_machine_is_only_observed():
    """Run the real command, and watch every file that Python opens or changes."""
    ended = succeeds([sys.executable, "-c", WATCHED], timeout=60)
    assert ended.stderr.count("\n") == 1 and f"{len(CHECKS)} checks: " in ended.stderr
    assert sum(not line.startswith(" ") for line in ended.stdout.splitlines()) == len(CHECKS)


@pytest.mark.parametrize("tree", [{}, {"/proc/stat": "nonsense", CLOCKSOURCE: "\0"}])
def test_an_empty_or_broken_tree(tmp_path, tree):
    """With an empty recorded system, all checks still answer, for this machine's CPUs."""
    put(tmp_path, tree)
    program = "from kvbench.cli import main; main(['doctor', '--json'])"
    environment = os.environ | {"KVBENCH_ROOT": str(tmp_path)}
    ended = succeeds([sys.executable, "-c", program], timeout=60, env=environment)
    found = {check["name"]: check["status"] for check in json.loads(ended.stdout)["checks"]}
    assert len(found) == len(CHECKS)
    assert found["other tasks"] == found["governor"] == found["clock source"] == "unknown"


def test_one_cpu_that_is_not_the_first():
    last = max(os.sched_getaffinity(0))
    program = (
        f"import os; os.sched_setaffinity(0, [{last}]); from kvbench.cli import main;"
        " main(['doctor'])"
    )
    ended = succeeds([sys.executable, "-c", program], timeout=60)
    (line,) = (line for line in ended.stdout.splitlines() if "allowed CPUs" in line)
    assert f"1 of {os.cpu_count()}: {last}" in line

"""The runner on a made-up tree: it tells caught faults, missed faults and faults that no longer
fit, and changes nothing but the copy.
"""

import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.mutate import planting
from tests.mutate.__main__ import chosen, show, table
from tests.mutate.faults import Fault, pattern, read
from tests.mutate.planting import Planting
from tests.mutate.tree import Copy

SUMS = (
    "def total(values):\n    return sum(\n        values\n    )\n\n\ndef mean(values):\n    return"
    " total(values) / len(values)\n"
)
TEST = """
import pathlib
import sums
import time

def test_total():
    assert pathlib.Path(sums.__file__).parent == pathlib.Path(__file__).parent
    assert sums.total([1, 2]) == 3

def test_nothing():
    assert sums.mean

def test_broken():
    assert sums.mean([1]) == 2
"""


def fault(name, find, replace, *checks, **facts):
    return Fault(
        name, "sums", "sums.py", find, replace, checks or ("pytest test_sums.py -k total",), **facts
    )


FAULTS = [
    fault("caught", "return sum(values)", "return sum(values) + 1"),
    fault(
        "caught by the second",
        "return sum(values)",
        "return 0",
        "pytest test_sums.py -k nothing",
        "pytest test_sums.py -k total",
    ),
    fault("not caught", "total(values) / len(values)", "total(values)"),
    fault("gone", "return product(values)", "return 1"),
    fault("twice", "(values)", "()"),
    fault("no Python", "return sum(values)", "return ("),
    fault("no sound check", "return sum(values)", "return 0", "pytest test_sums.py -k broken"),
    fault("hangs", "return sum(values)", "return [1 for _ in iter(int, 1)]"),
    fault("not to be seen", "len(values)", "1", why="nobody asks for the mean"),
    fault("another tier", "len(values)", "1", tier="avx1024"),
]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "sums.py").write_text(SUMS)
    (root / "test_sums.py").write_text(TEST)
    copy = Copy(root, tmp_path / "copy", ["sums.py", "test_sums.py"])
    copy.python = Path(sys.executable)
    copy.refresh()
    return copy


def test_each_fault_has_its_outcome(tree, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(planting, "LEAST", 4)
    said = []
    work = Planting(tree, said.append, tmp_path / "logs")
    work.prepare(FAULTS)
    rows = list(work.rows(FAULTS, ["scalar"]))
    assert {row.fault.name: row.outcome for row in rows} == {
        "caught": planting.CAUGHT,
        "caught by the second": planting.CAUGHT,
        "not caught": planting.MISSED,
        "gone": planting.GONE,
        "twice": planting.GONE,
        "no Python": planting.UNBUILT,
        "no sound check": planting.UNCHECKED,
        "hangs": planting.CAUGHT,
        "not to be seen": planting.UNSEEN,
        "another tier": planting.NO_TIER,
    }
    by = {row.fault.name: row.by for row in rows}
    assert by["caught by the second"] == "pytest test_sums.py -k total"
    assert by["hangs"].endswith("(ran out of time)")
    assert list(work.broken) == ["pytest test_sums.py -k broken"]
    assert (tree.root / "sums.py").read_text() == (tree.place / "sums.py").read_text() == SUMS
    assert len(said) == len(FAULTS) + 3 and "1/3" in said[0]
    assert table(rows, work.broken) == 1
    out = capsys.readouterr().out
    assert "not caught" in out and "no longer fits" in out and "broken check" in out


def test_all_caught_is_fine(tree, tmp_path, capsys):
    work = Planting(tree, lambda line: None, tmp_path / "logs")
    own = [each for each in FAULTS if each.name in ("caught", "not to be seen", "another tier")]
    work.prepare(own[:1])
    assert table(list(work.rows(own, [])), work.broken) == 0
    assert show(own, tree.root) == 0 and show(FAULTS, tree.root) == 1
    assert capsys.readouterr().out.count("NO LONGER FITS") == 2


def test_the_copy_equals_the_tree(tree):
    tree.write("sums.py", "broken")
    (tree.place / "more.py").write_text("")
    (tree.place / "build").mkdir()
    (tree.place / "build" / "kept").write_text("")
    same = (tree.place / "test_sums.py").stat().st_mtime_ns
    (tree.root / "sums.py").write_text(SUMS + "\n")
    tree.refresh()
    assert (tree.place / "sums.py").read_text() == SUMS + "\n"
    assert not (tree.place / "more.py").exists() and (tree.place / "build" / "kept").exists()
    assert (tree.place / "test_sums.py").stat().st_mtime_ns == same


def test_python_finds_the_package_of_the_copy(tmp_path):
    """It also finds the other packages of this Python. From any folder it takes the copy's kvbench,
    not the installed one.
    """
    (tmp_path / "root" / "kvbench").mkdir(parents=True)
    (tmp_path / "root" / "kvbench" / "__init__.py").write_text("")
    copy = Copy(tmp_path / "root", tmp_path / "copy", ["kvbench/__init__.py"])
    copy.refresh()
    copy.furnish()
    program = (
        "import os; os.chdir('/'); import cffi, numpy, pytest, kvbench; print(*kvbench.__path__)"
    )
    assert copy.run([str(copy.python), "-c", program], 60).said == f"{copy.place / 'kvbench'}\n"


def test_a_check_that_runs_out_of_time_ends_with_its_children(tree, tmp_path):
    program = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)"
        "  # {0}'])"
    )
    mark = str(tmp_path)
    begun = time.monotonic()
    ended = tree.run([sys.executable, "-c", program.format(mark)], 2)
    assert ended.code is None and time.monotonic() - begun < 30
    left = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    assert left and not any(f"# {mark}" in line for line in left)


def test_an_interruption_restores_the_file(tree, tmp_path):
    work = Planting(tree, lambda line: None, tmp_path / "logs")
    own = [fault("slow", "return sum(values)", "return __import__('time').sleep(60)")]
    work.prepare(own)
    usual = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(2)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(work.rows(own, []))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, usual)
    assert (tree.place / "sums.py").read_text() == SUMS


def test_white_space_does_not_matter():
    for text in ("a->b[i + 1] = x;", "a->b[ i+1 ]\n    =x ;", "a->b[i + \\\n 1] = x;"):
        assert pattern("a->b[i+1] = x").search(text)
    assert pattern("f(a, b)").search("f(\n  a,\n  b,\n)") and pattern("_A = 2").search("_A = 2")
    assert not pattern("a + b").search("aa + b") and not pattern("a + b").search("a + bb")
    assert not pattern("return x").search("returnx") and pattern("return x").search("return\n  x")


def test_a_word_selects_faults():
    assert [each.name for each in chosen(FAULTS, ["caught second"])] == ["caught by the second"]
    assert [each.name for each in chosen(FAULTS, ["SUMS.py", "tier"])] == ["another tier"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('name = "a"', "missing"),
        ('name = "a"\nroom = "b"\nfile = "c"\nfind = "d"\nreplace = "e"', "either checks or why"),
        (
            'name = "a"\nroom = "b"\nfile = "c"\nfind = "d"\nreplace = "e"\nchecks = ["ls"]',
            "a check begins with",
        ),
        (
            'name = "a"\nroom = "b"\nfile = "c"\nfind = "d"\nreplace = "e"\nwhy = "f"\nchek = 1',
            "chek",
        ),
    ],
)
def test_an_invalid_fault_is_named(row, said, tmp_path):
    (tmp_path / "x.toml").write_text(f"[[fault]]\n{row}\n")
    with pytest.raises(ValueError, match=f"x.toml: a: .*{said}"):
        read(tmp_path)


def test_two_faults_of_one_name_are_refused(tmp_path):
    row = '[[fault]]\nname = "a"\nroom = "b"\nfile = "c"\nfind = "d"\nreplace = "e"\nwhy = "f"\n'
    (tmp_path / "x.toml").write_text(row)
    (tmp_path / "y.toml").write_text(row)
    with pytest.raises(ValueError, match="one name: a"):
        read(tmp_path)

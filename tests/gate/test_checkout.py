"""Two revisions of another small project, built by its own command."""

import ctypes
import re
import shutil
import signal
import subprocess
import sys

import pytest

from kvbench.errors import BadArgument, BadLibrary, Refused, Unwritable
from kvbench.gate.checkout import products, same
from tests.gate.test_builds import git
from tests.test_watched import alive, awaited, numbers

SOURCE = "#include <part.h>\nint answer(void) { return 1 + PART; }\n"
BUILD = "mkdir -p build && cc -I. -shared -nostdlib -fPIC -o build/libsmall.so answer.c"
LIBRARY = "build/libsmall.so"


@pytest.fixture
def project(tmp_path):
    """A project with one commit, tagged v1, whose answer is 1."""
    project = tmp_path / "small"
    project.mkdir()
    write(project, SOURCE, part=0)
    (project / ".gitignore").write_text("build\n")
    git(project, "init")
    git(project, "add", ".")
    git(project, "commit", "-m", "one")
    git(project, "tag", "v1")
    return project


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kvbench" / "checkouts"


def write(project, source, part):
    (project / "answer.c").write_text(source)
    (project / "part.h").write_text(f"#define PART {part}\n")


def said(project, *words):
    done = subprocess.run(
        ["git", "--no-optional-locks", "-C", project, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def answer(product):
    return ctypes.CDLL(str(product.path)).answer()


def built(project, base="v1", head=".", command=BUILD, product=LIBRARY, **more):
    return products(project, command, product, base, head, **more)


def test_a_revision_and_the_files_as_they_stand(project, places):
    write(project, SOURCE, part=6)
    lines = []
    with built(project, report=lines.append) as (base, head):
        assert (answer(base), answer(head)) == (1, 7) and not same(base, head)
        assert len(str(base.path)) == len(str(head.path)) and base.path != head.path
    commit = said(project, "rev-parse", "v1").strip()
    assert (base.text, head.text) == (f"v1 ({commit[:7]})", "working tree of small")
    assert base.tree == said(project, "rev-parse", "v1^{tree}").strip()
    for side, (begun, ended) in zip((base, head), (lines[:2], lines[2:]), strict=True):
        assert begun.startswith(f"building {side.text}, outside the budget; its output goes to ")
        assert re.fullmatch(r"built in .*(s|min)", ended)


def test_nothing_is_left_and_the_checkout_stays_as_it_is(project, places):
    """Its index too, which holds another state of a file than the folder."""
    write(project, SOURCE, part=6)
    git(project, "add", "part.h")
    write(project, SOURCE, part=7)
    hook = project / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)

    def state():
        words = (
            ["status", "--porcelain"],
            ["for-each-ref"],
            ["worktree", "list"],
            ["stash", "list"],
        )
        index = (project / ".git" / "index").read_bytes()
        return index, sorted(project.rglob("ran")), [said(project, *each) for each in words]

    before = state()
    with built(project) as (_, head):
        assert answer(head) == 8
        assert not list(head.path.parents[1].glob("ran"))
    assert state() == before
    assert list(places.iterdir()) == []


def test_files_that_git_would_commit(project, places):
    (project / "new.c").write_text("")
    (project / "answer.c").unlink()
    (project / "build").mkdir()
    (project / "build" / "old").write_text("")
    listing = f"ls > $KVBENCH_SIDE; {BUILD.replace('answer.c', '-x c /dev/null')}"
    with built(project, command=listing) as (base, head):
        names = [
            (side.path.parents[1] / word).read_text().split()
            for side, word in ((base, "base"), (head, "head"))
        ]
    assert names == [["answer.c", "base", "part.h"], ["head", "new.c", "part.h"]]


def test_what_the_command_is_told(project, places, monkeypatch):
    """It is not told the variables of a hook that runs the gate."""
    git(project, "commit", "--allow-empty", "-m", "two")
    commits = [said(project, "rev-parse", word).strip() for word in ("v1", "HEAD")]
    monkeypatch.setenv("GIT_INDEX_FILE", "elsewhere")
    monkeypatch.setenv("MINE", "kept")
    tell = f"echo $KVBENCH_REVISION $LC_ALL $MINE $GIT_INDEX_FILE > told; {BUILD}"
    with built(project, head="HEAD", command=tell, every=True) as sides:
        told = [(side.path.parents[1] / "told").read_text().strip() for side in sides]
        assert [answer(side) for side in sides] == [1, 1] and same(*sides)
    assert told == [f"{commit} C.UTF-8 kept" for commit in commits]


def test_the_same_sources_are_not_built(project, places):
    git(project, "commit", "--allow-empty", "-m", "two")
    for head in (".", "HEAD"):
        with built(project, head=head, command="exit 1") as sides:
            assert same(*sides) and [side.path for side in sides] == [None, None]


def test_a_folder_of_a_checkout(tmp_path, places):
    inner = tmp_path / "whole" / "small"
    inner.mkdir(parents=True)
    write(inner, SOURCE, part=0)
    git(inner.parent, "init")
    git(inner.parent, "commit", "--allow-empty", "-m", "none")
    git(inner.parent, "add", ".")
    git(inner.parent, "commit", "-m", "one")
    write(inner, SOURCE, part=1)
    with built(inner, base="HEAD") as sides:
        assert [answer(side) for side in sides] == [1, 2]
    with pytest.raises(BadArgument, match="has no folder small"):
        built(inner, base="HEAD^").__enter__()


def test_a_library_among_its_links(project, places):
    links = f"{BUILD}; cd build; mv libsmall.so libsmall.so.1; ln -s libsmall.so.1 libsmall.so"
    with built(project, command=links, product="build/lib*.so*", every=True) as (base, _):
        assert answer(base) == 1 and base.path.name == "libsmall.so"


@pytest.mark.parametrize(
    ("more", "error", "words", "hint"),
    [
        ({"product": "/usr/lib/x.so"}, BadArgument, "not a path in the checkout", "by its path"),
        ({"product": "build/../../x.so"}, BadArgument, "not a path in the checkout", "by its path"),
        ({"product": ""}, BadArgument, "not a path in the checkout", "by its path"),
        ({"base": "never"}, BadArgument, "never is not a revision", "fetch-depth: 0"),
        ({"head": "--help"}, BadArgument, "--help is not a revision", "fetch-depth: 0"),
        (
            {"product": "build/libsmal.so"},
            BadLibrary,
            "did not make build",
            f"did you mean {LIBRARY}",
        ),
        (
            {"command": "true"},
            BadLibrary,
            "v1 .* did not make build/libsmall.so",
            "the full log is",
        ),
        ({"command": "exit 3"}, BadLibrary, "v1 .*: it ended with exit code 3", "the full log is"),
        ({"command": "kill $$"}, BadLibrary, "it ended with exit code 143", "the full log is"),
        ({"command": "nosuch"}, BadLibrary, "nosuch: .*not found", "the full log is"),
        (
            {"command": f"{BUILD}; cp {LIBRARY} build/other.so", "product": "build/*.so"},
            BadArgument,
            "matches build/libsmall.so, build/other.so",
            "name one",
        ),
        (
            {"command": f"mkdir build; echo > {LIBRARY}"},
            BadLibrary,
            "is not a library",
            "--product",
        ),
        (
            {"command": f"mkdir build; ln -s '{sys.executable}' {LIBRARY}"},
            BadArgument,
            "v1 .* is a link out of the worktree",
            "--product",
        ),
    ],
)
def test_an_error_is_one_line(project, places, more, error, words, hint):
    with pytest.raises(error, match=words) as caught:
        built(project, **{"every": True, **more}).__enter__()
    assert hint in caught.value.hint and "\n" not in str(caught.value)
    assert not [path for path in places.glob("*") if path.suffix != ".log"]
    assert len(said(project, "worktree", "list").splitlines()) == 1


def test_a_failed_build_says_why_and_keeps_its_log(project, places):
    (project / "answer.c").write_text("int answer(void) { return nothing; }\n")
    with pytest.raises(BadLibrary) as caught:
        built(project, command=f"echo first; {BUILD}").__enter__()
    said = str(caught.value)
    assert said.startswith("cannot build working tree of small: answer.c:1:") and "nothing" in said
    (log,) = places.glob("*.log")
    assert str(log) in caught.value.hint and log.read_text().startswith("first\n")


def test_places_that_are_not_a_checkout(tmp_path, project, places, monkeypatch):
    def refused(error, words, source, **more):
        with pytest.raises(error, match=words) as caught:
            built(source, **more).__enter__()
        assert caught.value.hint

    refused(BadArgument, "never is not a git repository", tmp_path / "never")
    git(tmp_path, "init", "empty")
    refused(BadArgument, "has no commit yet", tmp_path / "empty", base="HEAD")
    git(tmp_path, "clone", "--bare", project, "bare")
    refused(BadArgument, "bare has no files for", tmp_path / "bare")
    with built(tmp_path / "bare", head="HEAD", every=True) as (base, _):
        assert answer(base) == 1
    (project / ".git" / "worktrees").write_text("in the way")
    refused(Unwritable, "cannot make a worktree of .*small: ", project, every=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(Refused, "git is missing", project)


def test_submodules_are_empty(project, tmp_path, places):
    shutil.copytree(project, tmp_path / "other")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", tmp_path / "other", "deps")
    with pytest.raises(BadLibrary, match="cannot build") as caught:
        built(project, base=".", head="v1", command="ls deps/*").__enter__()
    assert "such as deps" in caught.value.hint
    assert "git submodule update --init" in caught.value.hint


GATE = """
import sys
from pathlib import Path
from kvbench.cli._signals import take_signals
from kvbench.gate.checkout import products

take_signals()
with products(Path(sys.argv[1]), sys.argv[2], "x.so", "v1", "v1", every=True):
    pass
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_gate_that_is_ended_ends_the_command(project, places, tmp_path, name):
    """Whatever process the command has become. The next gate removes what a killed gate left."""
    begun = tmp_path / "begun"
    command = f"(setsid sleep 1000 & echo $! >> {begun}); echo $$ >> {begun}; sleep 1000; true"
    gate = subprocess.Popen([sys.executable, "-c", GATE, project, command], stderr=subprocess.PIPE)
    awaited(lambda: begun.exists() and len(numbers(begun)) == 2)
    assert len(said(project, "worktree", "list").splitlines()) == 3
    gate.send_signal(signal.Signals[name])
    gate.communicate(timeout=60)
    awaited(lambda: not any(map(alive, numbers(begun))))
    left = [*places.iterdir()]
    assert len(left) == (name == "SIGKILL")
    with built(project, head="v1"):
        assert len(said(project, "worktree", "list").splitlines()) == 1
    assert list(places.iterdir()) == []


def test_a_gate_that_goes_on_keeps_its_worktrees(project, places):
    with built(project, every=True) as (base, _):
        with built(project, command="exit 1"):
            assert len(said(project, "worktree", "list").splitlines()) == 3
        assert base.path.is_file()

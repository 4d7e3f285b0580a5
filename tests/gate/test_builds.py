"""Builds of small projects in the form of ours: revisions, the working tree, libraries; and
failures.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from kvbench.errors import BadArgument, BadLibrary, Refused
from kvbench.gate import Request, builds, tiers
from kvbench.gate.builds import build, sides
from kvbench.gate.compiling import tools
from kvbench.native import default_library, library_path

CMAKE = """\
cmake_minimum_required(VERSION 3.18)
file(STRINGS ../pyproject.toml version REGEX "^version = ")
set(CMAKE_C_COMPILER_WORKS TRUE) # no trial of it: that takes longer than all the rest
set(CMAKE_C_ABI_COMPILED TRUE)
project(small C)
set(ANSWER "" CACHE STRING "another answer")
add_library(kvbench SHARED answer.c)
# else it would stand for the real one in the tests' process
set_target_properties(kvbench PROPERTIES NO_SONAME ON)
if(ANSWER)
  target_compile_definitions(kvbench PRIVATE ANSWER=${ANSWER})
endif()
"""
SOURCE = "#ifndef ANSWER\n#define ANSWER 1\n#endif\nint answer(void) { return ANSWER; }\n"


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)


def answer(made: builds.Build) -> int:
    return ctypes.CDLL(str(made.library)).answer()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kvbench" / "builds"


@pytest.fixture
def tree(tmp_path, cache):
    """A tree with one commit, tagged v1, whose answer is 1."""
    tree = tmp_path / "project"
    (tree / "kernels").mkdir(parents=True)
    (tree / "kernels" / "CMakeLists.txt").write_text(CMAKE)
    (tree / "kernels" / "answer.c").write_text(SOURCE)
    (tree / "kernels" / "abi.h").write_text("int answer(void); /* first */\n")
    (tree / "pyproject.toml").write_text('[project]\nversion = "1.0"\n')
    git(tree, "init")
    git(tree, "add", ".")
    git(tree, "commit", "-m", "one")
    git(tree, "tag", "v1")
    return tree


def test_revisions_and_the_working_tree(tree, cache):
    (tree / "kernels" / "answer.c").write_text(SOURCE.replace("1", "2"))
    (tree / "kernels" / "abi.h").write_text("int answer(void); /* second */\n")
    said = []
    old, new = (build(asked, tree / "kernels", report=said.append) for asked in ("v1", "."))
    assert (answer(old), answer(new)) == (1, 2)
    assert old.interface.read_text().endswith("first */\n") and new.interface.read_text().endswith(
        "second */\n"
    )
    assert old.text.startswith("v1 (") and new.text == "working tree"
    begun = [line.partition(": about ")[0] for line in said[::2]]
    assert begun == [f"building {old.text}", "building working tree"]
    assert all(re.fullmatch(r"built in .*(s|min)", line) for line in said[1::2])
    assert old.digest != new.digest
    assert not any(path.name.startswith(".") for path in cache.iterdir())


def test_builds_are_kept_by_content(tree, cache):
    first = build("v1", tree)
    git(tree, "commit", "--allow-empty", "-m", "two")
    (tree / "README.md").write_text("no part of the library")
    said = []
    assert [build(asked, tree, report=said.append).library for asked in ("HEAD", ".", "v1")] == [
        first.library
    ] * 3
    assert said == []
    (tree / "kernels" / "more.c").write_text("")  # git does not know it yet
    assert build(".", tree).library != first.library


def test_the_compiler_is_part_of_the_key(tree, monkeypatch):
    plain = build("v1", tree)
    monkeypatch.setenv("CFLAGS", "-DANSWER=3")
    assert answer(build("v1", tree)) == 3
    assert answer(plain) == 1


def test_a_tree_without_git(tree, tmp_path):
    shutil.copytree(tree, tmp_path / "plain", ignore=shutil.ignore_patterns(".git"))
    assert answer(build(".", tmp_path / "plain")) == 1
    with pytest.raises(BadArgument, match="not a git repository"):
        build("v1", tmp_path / "plain")


def test_two_at_once(tree):
    code = (
        "from pathlib import Path; from kvbench.gate.builds import build; print(build('v1',"
        f" Path({str(tree)!r})).library)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(said) == 1 and Path(said.pop().strip()).is_file()


def test_a_library_is_taken_as_it_is(tree, tmp_path):
    made = build(str(library_path()))
    assert (made.library, made.interface) == (library_path(), library_path().with_name("abi.h"))
    alone = shutil.copy(library_path(), tmp_path / "other.so")
    assert build(str(alone)).interface == library_path().with_name("abi.h")
    beside = tmp_path / "abi.h"
    beside.write_text("")
    assert build(str(alone)).interface == beside
    assert build(str(alone)).digest == made.digest and made.digest[:8] in made.text


def test_a_wheel_is_the_library_in_it(tmp_path, cache):
    wheel = tmp_path / "kvbench-1.0.0-py3-none-linux_x86_64.whl"
    with ZipFile(wheel, "w") as packed:
        packed.write(library_path(), "kvbench/libkvbench.so")
        packed.writestr("kvbench/abi.h", "int first;")
    made, again = (build(str(wheel)) for _ in range(2))
    assert made == again and made.text.startswith(wheel.name) and made.library.is_relative_to(cache)
    assert (
        made.library.read_bytes() == library_path().read_bytes()
        and made.interface.read_text() == "int first;"
    )
    for content in (b"", made.library.read_bytes()):
        wheel.write_bytes(content)
        with pytest.raises(BadLibrary, match="is not a wheel of kvbench"):
            build(str(wheel))
    with pytest.raises(BadLibrary, match="cannot read .*other.whl"):
        build(str(tmp_path / "other.whl"))


def test_no_library(tmp_path):
    (tmp_path / "words.so").write_text("words")
    with pytest.raises(BadLibrary, match="is not a library"):
        build(str(tmp_path / "words.so"))
    with pytest.raises(BadLibrary, match="cannot read .*missing.so"):
        build(str(tmp_path / "missing.so"))
    other = bytearray(Path(sys.executable).resolve().read_bytes()[:64])
    other[18] ^= 0xFF
    (tmp_path / "other.so").write_bytes(other)
    with pytest.raises(BadLibrary, match="another machine"):
        build(str(tmp_path / "other.so"))


def test_no_revision(tree, tmp_path, cache):
    for asked in ("never", "--help", "v1:kernels"):
        with pytest.raises(BadArgument, match="neither a revision") as caught:
            build(asked, tree)
        assert "fetch-depth: 0" in caught.value.hint
    with pytest.raises(BadArgument, match="not in a source tree"):
        build("v1", tmp_path)
    git(tree, "rm", "-r", "--cached", "kernels")
    git(tree, "commit", "-m", "without")
    with pytest.raises(BadArgument, match="has no kernels"):
        build("HEAD", tree)


def test_the_same_sources_are_not_built(tree, cache):
    one, other = sides("v1", ".", repository=tree)
    assert one.unbuilt and one.digest == other.digest
    assert (one.text[:4], other.text) == ("v1 (", "working tree")
    assert list(cache.iterdir()) == []
    one, other = sides("v1", ".", every=True, repository=tree)
    assert not one.unbuilt and answer(one) == answer(other) == 1


@pytest.mark.parametrize(
    ("name", "old", "new", "same"),
    [
        ("answer.c", "int answer", "/* what\n * it is */\n\nint answer", True),
        ("answer.c", "return ANSWER", "return ANSWER + 1", False),
        (
            "CMakeLists.txt",
            "answer.c)",
            "answer.c)\ntarget_link_options(kvbench PRIVATE -Wl,-z,now)",
            False,
        ),
    ],
)
def test_changed_code_is_built_and_changed_comments_are_not(tree, name, old, new, same):
    path = tree / "kernels" / name
    path.write_text(path.read_text().replace(old, new))
    one, other = sides("v1", ".", repository=tree)
    assert (one.unbuilt, one.digest == other.digest) == (same, same)


SWITCHED = """\
set(KVB_TIERS all CACHE STRING "")
if(NOT KVB_TIERS STREQUAL "all")
  list(LENGTH KVB_TIERS count)
  target_compile_definitions(kvbench PRIVATE ANSWER=7${count})
endif()
"""


def test_some_tiers_alone_are_built_where_both_sides_can(tree, cache):
    """The answer is 72 if two tiers are asked for. Builds with all tiers and with some are kept
    apart.
    """
    path = tree / "kernels" / "CMakeLists.txt"
    some = ("plain", "wide")
    whole = sides("v1", ".", every=True, repository=tree, tiers=some)
    assert [answer(side) for side in whole] == [1, 1]
    path.write_text(CMAKE + SWITCHED)
    (tree / "kernels" / "answer.c").write_text(SOURCE + "/* another */ int other;")
    for asked in (("v1", "."), (".", "v1")):
        assert [answer(side) for side in sides(*asked, repository=tree, tiers=some)] == [1, 1]
    git(tree, "commit", "-a", "-m", "two")
    git(tree, "tag", "v2")
    (tree / "kernels" / "more.c").write_text("")
    said = []
    pair = sides("v2", ".", repository=tree, tiers=some, report=said.append)
    assert [answer(side) for side in pair] == [72, 72]
    assert (
        said[0].startswith(f"building {pair[0].text} and working tree: about ")
        and "outside the budget" in said[0]
    )
    assert [answer(side) for side in sides("v2", ".", repository=tree)] == [1, 1]
    said.clear()
    assert [
        answer(side) for side in sides("v2", ".", repository=tree, tiers=some, report=said.append)
    ] == [72, 72]
    assert said == []


def test_a_library_is_held_against_a_whole_build(tree):
    (tree / "kernels" / "CMakeLists.txt").write_text(CMAKE + SWITCHED)
    base, head = sides(str(library_path()), ".", repository=tree, tiers=("plain", "wide"))
    assert base.library == library_path() and answer(head) == 1


def test_tiers_that_are_measured():
    """The plainest tier and the points' own; all tiers if a suite names tiers itself."""
    library = default_library()
    plainest, best = library.isas()[0], library.isa()
    assert tiers(Request()) == tuple(dict.fromkeys((plainest, best)))
    assert tiers(Request(isa=plainest)) == (plainest,)
    assert tiers(Request(suite="full")) == ()


@pytest.mark.parametrize(
    ("asked", "built"),
    [
        ("all", None),
        ("scalar", ["scalar"]),
        ("wide", "'wide' is not a tier here: use all, or some of scalar"),
        ("scalar;x", "'x'"),
    ],
)
def test_the_switch_of_the_kernels(tmp_path, asked, built):
    """kvb_build() reports what the switch builds; an unknown word gives one line."""
    kernels = Path(__file__).resolve().parents[2] / "kernels"
    done = subprocess.run(
        [tools().cmake, "-S", kernels, "-B", tmp_path, f"-DKVB_TIERS={asked}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if isinstance(built, str):
        complaint = [line for line in done.stderr.splitlines() if "KVB_TIERS" in line]
        assert done.returncode and len(complaint) == 1 and built in complaint[0], done.stderr
        return
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "tiers: " in line)
    here = set(default_library().isas()) if built is None else set(built)
    assert here <= set(line.partition("tiers: ")[2].split())
    assert built is None or set(line.partition("tiers: ")[2].split()) == here


def test_a_failed_build_says_why(tree, cache):
    (tree / "kernels" / "answer.c").write_text("int answer(void) { return nothing; }\n")
    with pytest.raises(BadLibrary) as caught:
        build(".", tree)
    assert "kernels/answer.c:1:" in str(caught.value) and "nothing" in str(caught.value)
    (log,) = cache.glob("*.log")
    assert str(log) in caught.value.hint and "answer.c" in log.read_text()
    (tree / "kernels" / "CMakeLists.txt").write_text(
        'project(answer C)\nmessage(FATAL_ERROR "no luck today")\n'
    )
    with pytest.raises(BadLibrary, match="no luck today"):
        build(".", tree)


@pytest.mark.parametrize("missing", ["git", "cmake", "make", "cc"])
def test_missing_tools(tree, tmp_path, monkeypatch, missing):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in {"git", "cmake", "make", "cc"} - {missing}:
        os.symlink(
            shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"),
            tools / name,
        )
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(sys, "executable", str(tools / "python"))  # tools may lie beside it
    with pytest.raises(Refused, match=f"{missing} is missing"):
        build("v1", tree)


def test_a_compiler_that_is_not_there_is_named(tree, monkeypatch):
    for compiler in ("nosuchcc -O2", 'nosuchcc "'):
        monkeypatch.setenv("CC", compiler)
        with pytest.raises(Refused, match="CC='nosuchcc .*' is missing"):
            build("v1", tree)

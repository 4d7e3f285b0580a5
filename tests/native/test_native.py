"""Access to C: one library, two libraries, a wrong library; words, tiers, status codes, arenas,
teams, tasks.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument, BadLibrary, KvbenchError, OutOfMemory, Unsupported
from kvbench.native import (
    Arena,
    Library,
    Series,
    Task,
    Team,
    default_library,
    library_path,
    probe_task,
)


@pytest.fixture
def library():
    return default_library()


@pytest.fixture
def copies(tmp_path):
    """Two libraries: copies of one build."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(library_path(), tmp_path / name)
        shutil.copy(library_path().with_name("abi.h"), tmp_path / name)
    return Library(tmp_path / "one" / library_path().name), Library(
        tmp_path / "two" / library_path().name
    )


def test_interface_is_the_one_in_the_tree():
    source = Path(__file__).resolve().parents[2] / "kernels" / "abi.h"
    assert library_path().with_name("abi.h").read_text() == source.read_text()


# ---- a wrong library -----------------------------------------------------------------------------


def changed(tmp_path, before, after):
    text = library_path().with_name("abi.h").read_text()
    assert before in text
    path = tmp_path / "abi.h"
    path.write_text(text.replace(before, after, 1))
    return path


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        (
            "    int64_t kv_heads;\n    int64_t head_dim;",
            "    int64_t head_dim;\n    int64_t kv_heads;",
            "kv_heads",
        ),
        ("    double ai; ", "    double ai; double more; ", "kvb_traffic.more"),
        ("    int32_t stages; ", "    ", "kvb_decode.stages"),
        (
            "int32_t kvb_isa_best(void);",
            "int32_t kvb_isa_best(void); int32_t kvb_isa_worst(void);",
            "kvb_isa_worst",
        ),
    ],
    ids=["swapped", "more", "fewer", "function"],
)
def test_another_interface_is_refused(tmp_path, before, after, named):
    with pytest.raises(BadLibrary, match=named) as caught:
        Library(library_path(), changed(tmp_path, before, after))
    assert caught.value.exit_code == 5


def test_no_library(tmp_path):
    with pytest.raises(BadLibrary, match="abi.h"):
        Library(tmp_path / "libkvbench.so")
    (tmp_path / "libkvbench.so").write_text("not a library")
    with pytest.raises(BadLibrary, match="cannot load"):
        Library(tmp_path / "libkvbench.so", library_path().with_name("abi.h"))


# ---- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["f65", "", None, 3, "F16"])
def test_an_unknown_word_lists_the_known_ones(library, word):
    with pytest.raises(BadArgument) as caught:
        library.number("dtype", word)
    assert str(caught.value).startswith("dtype: ")
    assert all(known in caught.value.hint for known in library.words("dtype"))


# ---- tiers ---------------------------------------------------------------------------------------


def test_the_best_tier_runs(library, monkeypatch):
    monkeypatch.delenv("KVBENCH_ISA", raising=False)
    assert library.isa() in library.isas()


def test_the_schedule_that_is_taken_is_the_same_everywhere(library):
    assert library.schedule("auto") == "weave"
    assert [library.schedule(word) for word in library.words("schedule")] == list(
        library.words("schedule")
    )


def test_a_tier_can_be_forced(library, monkeypatch):
    plain = library.isas()[0]
    assert library.isa(plain) == plain
    monkeypatch.setenv("KVBENCH_ISA", plain)
    assert library.isa() == plain
    assert library.isa(library.isas()[-1]) == library.isas()[-1]
    monkeypatch.setenv("KVBENCH_ISA", "")
    assert library.isa() in library.isas()


def test_a_tier_that_does_not_run_is_an_error(library, monkeypatch):
    absent = next(isa for isa in library.words("isa") if isa not in library.isas())
    with pytest.raises(Unsupported, match=absent) as caught:
        library.isa(absent)
    assert caught.value.exit_code == 2
    assert all(isa in caught.value.hint for isa in library.isas())
    monkeypatch.setenv("KVBENCH_ISA", absent)
    with pytest.raises(Unsupported, match="KVBENCH_ISA"):
        library.isa()
    monkeypatch.setenv("KVBENCH_ISA", "mmx")
    row = np.ones((1, 1, 8), np.float32)
    with kvbench.Cache(1, 8, 4) as cache:
        cache.append(row, row, isa=library.isas()[0])
        for asks in (library.isa, lambda: cache.decode(row)):
            with pytest.raises(BadArgument, match="KVBENCH_ISA"):
                asks()


# ---- status codes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "exit_code"),
    [
        ("KVB_BAD_ARGUMENT", BadArgument, 2),
        ("KVB_UNSUPPORTED", Unsupported, 2),
        ("KVB_NO_MEMORY", OutOfMemory, 5),
    ],
)
def test_codes_become_exceptions(library, code, kind, exit_code):
    with pytest.raises(kind) as caught:
        library.check(getattr(library.lib, code))
    assert caught.value.hint
    assert caught.value.exit_code == exit_code
    assert isinstance(caught.value, KvbenchError)


# ---- arenas --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pages", ["base", "thp"])
def test_an_arena_is_memory(pages):
    with Arena(1 << 20, pages) as arena:
        view = arena.view()
        assert view.size == 1 << 20
        assert view.ctypes.data % 64 == 0
        view[:] = 7
        assert arena.view(np.uint32)[-1] == 0x07070707
        facts = arena.inspect()
        assert facts["resident_bytes"] >= 1 << 20
        assert facts["mapped"] >= 1 << 20


# ---- teams and tasks -----------------------------------------------------------------------------


def read_task(library, arena, threads):
    probe = library.ffi.new("kvb_probe *")
    probe.op, probe.isa = library.number("op", "read"), library.number("isa", library.isa())
    probe.a, probe.bytes = arena.base, arena.size
    return Task(library, library.lib.kvb_task_probe, probe, threads, keep=(arena,))


def test_a_team_runs_tasks(library):
    with Arena(1 << 16) as arena, Team(2) as team:
        with read_task(library, arena, 2) as one, read_task(library, arena, 2) as two:
            times = team.run(one, two, passes=5, between=two)
            assert len(times.pass_seconds) == 5
            assert len(times.thread_seconds) == 2
            assert times.seconds == pytest.approx(sum(times.pass_seconds))
            assert all(second > 0 for second in times.pass_seconds)
            assert one.traffic().bytes_compulsory == 1 << 16


def test_a_task_is_planned_for_its_team(library):
    with Arena(1 << 16) as arena, Team(1) as team, read_task(library, arena, 2) as task:
        with pytest.raises(BadArgument, match="2 threads"):
            team.run(task)


def test_closed_ones(library):
    team, arena = Team(1), Arena(64)
    task = read_task(library, arena, 1)
    task.close()
    task.close()
    with pytest.raises(BadArgument, match="task is closed"):
        team.run(task)
    team.close()
    team.close()
    with read_task(library, arena, 1) as task, pytest.raises(BadArgument, match="team is closed"):
        team.run(task)


# ---- series --------------------------------------------------------------------------------------


def test_a_series_runs_its_tasks(library):
    with Arena(1 << 16) as arena, Team(2) as team:
        arena.view(np.uint16)[:] = 1
        whole = read_task(library, arena, 2)
        piece = probe_task(library, "read", 2, isa=library.isa(), to=arena, size=1 << 16, piece=640)
        with Series(library, (whole, piece, whole), (0, 2, 0), 2) as series:
            times = team.run(series, passes=3)
            assert series.traffic().bytes_compulsory == 2 * (1 << 16) + 640
        assert whole.sum() == 3 * 2 * (1 << 15) % 65536 and piece.sum() == 3 * 320
        assert len(times.pass_seconds) == 3 and times.stage_share[1] == 0
        assert sum(times.stage_share) == pytest.approx(1)


def test_a_series_keeps_its_tasks(library):
    with Arena(1 << 16) as arena, Team(1) as team:
        series = Series(library, [read_task(library, arena, 1)], [0], 1)
        team.run(series)
        series.tasks[0].close()
        with pytest.raises(BadArgument, match="task is closed"):
            team.run(series)
        series = Series(library, [read_task(library, arena, 1)], [0], 1)
        series.close()
        with pytest.raises(BadArgument, match="series is closed"):
            team.run(series)


def test_tasks_that_a_series_refuses(library, copies):
    with Arena(64) as arena, read_task(library, arena, 1) as task:
        calls = {
            "1 kinds for 2 tasks": ((task, task), [0], 1),
            "a kind is 'x'": ([task], ["x"], 1),
            "a kind is 1099511627776": ([task], [1 << 40], 1),
            "kind of tasks.0. is 3": ([task], [3], 1),
            "threads is None": ([task], [0], None),
            "count is 0": ([], [], 1),
        }
        for message, args in calls.items():
            with pytest.raises(BadArgument, match=message):
                Series(library, *args)
        with pytest.raises(BadArgument, match="another library"):
            Series(copies[0], [task], [0], 1)
    with pytest.raises(BadArgument, match="task is closed"):
        Series(library, [task], [0], 1)


# ---- two libraries -------------------------------------------------------------------------------


def test_two_libraries_side_by_side(copies):
    one, two = copies
    assert one.ffi.cast("uintptr_t", one.lib.kvb_word(b"isa", 0)) != two.ffi.cast(
        "uintptr_t", two.lib.kvb_word(b"isa", 0)
    )
    assert one.words("isa") == two.words("isa")
    one.lib.kvb_cache_plan(one.ffi.NULL)
    assert b"cache" in one.ffi.string(one.lib.kvb_message())
    assert two.ffi.string(two.lib.kvb_message()) == b""


def test_a_task_of_another_library_is_refused(copies):
    one, two = copies
    with (
        Arena(64, library=one) as arena,
        Team(1, library=two) as team,
        read_task(one, arena, 1) as task,
    ):
        with pytest.raises(BadArgument, match="another library"):
            team.run(task)


def test_objects_may_outlive_their_library_s_name():
    """Destructors of teams and arenas run C code, in any order: the library must still be
    loaded.
    """
    code = """
from kvbench.native import Arena, Cache, Library, Team, library_path
import numpy as np
team, arena = Team(2, library=Library(library_path())), Arena(64, library=Library(library_path()))
cache = Cache(1, 8, 4, library=Library(library_path()))
cache.append(np.ones((1, 1, 8)), np.ones((1, 1, 8)), threads=2)
del team, arena, cache
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

"""Plug-ins: the documented example, what is refused, and where their kernels join ours."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kvbench.errors import BadArgument, BadLibrary
from kvbench.native import (
    Cache,
    Library,
    Team,
    decode_task,
    default_library,
    is_plugin,
    library_path,
)
from kvbench.oracle import attention, tolerance, whole
from kvbench.plan import Site, expand, refuse_without_plugin
from kvbench.plan.expansion import NO_KERNEL
from kvbench.suite import load
from kvbench.suite.axes import from_options
from kvbench.verify import kernels
from tests.cli.test_cli import refused, told
from tests.faulty import build_plugin
from tests.plan.test_plan import TWO
from tests.raw import ROOT

EXAMPLE = ROOT / "kernels" / "example" / "plugin.c"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Build the example with the commands that it gives itself, in an empty folder."""
    folder, here = tmp_path_factory.mktemp("example"), Path(sys.executable).parent
    lines = re.findall(
        r"^ \* +(kvbench verify --example .*|cc .*)$", EXAMPLE.read_text(), re.MULTILINE
    )
    assert len(lines) == 2
    environment = {**os.environ, "PATH": f"{here}:{os.environ['PATH']}"}
    for line in lines:
        how = {
            "shell": True,
            "cwd": folder,
            "env": environment,
            "capture_output": True,
            "text": True,
        }
        assert not subprocess.run(line, check=True, **how).stderr
    return folder / "my.so"


@pytest.fixture(scope="module")
def library(example):
    return Library(library_path(), plugin=example)


@pytest.fixture(scope="module")
def isa(library):
    return library.plugins.kernels[0].isa


# ---- the example ---------------------------------------------------------------------------------


def test_the_example_is_short():
    assert len(EXAMPLE.read_text().splitlines()) < 90


def test_its_kernels_are_listed_after_ours(library):
    own, everything = default_library().kernels(), library.kernels()
    assert everything[: len(own)] == own
    added = everything[len(own) :]
    assert {(k.op, k.variant, k.layout, k.dtype) for k in added} == {
        ("decode", "textbook", layout, "f32") for layout in ("head", "position", "paged")
    }
    assert all(kernel.runnable and kernel.isa in library.isas() for kernel in added)


@pytest.mark.parametrize("layout", ["head", "position", "paged"])
def test_it_is_right_in_every_situation(library, layout):
    """Against float64: rings, windows, ragged batches, odd sizes, stale tails, unreadable pages
    behind the rows.
    """
    (kernel,) = (kernel for kernel in library.plugins.kernels if kernel.layout == layout)
    bench = kernels.Checker(library, quick=False)
    assert bench.check_decode(kernel) <= 1
    bench.close()


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
def test_units_are_cut_and_merged(library, isa, threads):
    """Several threads share rows. With deterministic=True any number of threads gives the same
    bits.
    """
    with Cache(2, 24, 3000, batch=2, layout="position", library=library) as cache:
        k, v = np.random.default_rng(3).standard_normal((2, 2, 2500, 2, 24), dtype=np.float32)
        q = np.random.default_rng(4).standard_normal((2, 6, 24), dtype=np.float32)
        cache.bulk(k, v)
        right = attention(q, whole(k, v), cache.lengths, None)
        out = cache.decode(q, "textbook", isa, threads)
        assert np.abs(out - right).max() <= tolerance(np.abs(v).max(), 2500)
        fixed = [cache.decode(q, "textbook", isa, n, deterministic=True) for n in (threads, 1)]
        assert np.array_equal(*fixed)


TREE = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]], bool)


@pytest.mark.parametrize("how", [{}, {"mask": "block"}, {"tree": TREE}])
@pytest.mark.parametrize("queries", [None, (2, 4)])
def test_several_queries(library, isa, how, queries):
    """They equal float64 and flash, also 4 queries of a sequence of 3 tokens."""
    q = np.random.default_rng(4).standard_normal((2, 4, 6, 24), dtype=np.float32)
    k, v = np.random.default_rng(3).standard_normal((2, 2, 90, 2, 24), dtype=np.float32)
    words = {"tree": (TREE << np.arange(4)).sum(axis=1)} if "tree" in how else how
    with Cache(2, 24, 90, batch=2, layout="paged", library=library) as cache:
        cache.bulk(k, v)
        cache.lengths[0] = 3
        right = attention(q, whole(k, v), cache.lengths, queries=queries, **words)
        for variant in ("textbook", "flash"):
            out = cache.decode(q, variant, isa, 3, queries=queries, **how)
            assert np.abs(out - right).max() <= tolerance(np.abs(v).max(), 90), variant


def test_bytes_are_those_of_the_twin(library, isa):
    """Both read the same rows in the same shares. Loads beyond the compulsory bytes are unknown."""
    q = np.ones((1, 4, 16), np.float32)
    with Cache(2, 16, 700, library=library) as cache, Team(2, library=library) as team:
        cache.bulk(*np.ones((2, 1, 600, 2, 16)))
        facts = {"isa": isa, "variant": "textbook"}
        with (
            decode_task("decode", cache, q, q.copy(), 2, **facts) as decode,
            decode_task("twin", cache, q, q.copy(), 2, **facts) as twin,
        ):
            own, read = decode.traffic(), twin.traffic()
            team.run(twin)
    assert own.bytes_kv == read.bytes_kv == 2 * 600 * 2 * 16 * 4
    assert own.bytes_compulsory == own.bytes_issued == own.bytes_kv + 2 * q.nbytes
    assert own.flops == 4 * 600 * 4 * 16


def test_a_walk_in_a_window_ends(library, isa):
    """The core roof reads as many tokens, but always the first 50 of the first head. So equal rows
    give their own value.
    """
    q, out = np.ones((1, 4, 16), np.float32), np.zeros((1, 4, 16), np.float32)
    with Cache(2, 16, 700, library=library) as cache, Team(3, library=library) as team:
        k, v = np.full((2, 1, 600, 2, 16), 100.0, np.float32)
        k[:, :50, 0] = v[:, :50, 0] = 0.25
        cache.bulk(k, v)
        with decode_task(
            "decode", cache, q, out, 3, isa=isa, variant="textbook", wrap=50, stages=True
        ) as task:
            times = team.run(task, passes=3)
    assert np.allclose(out, 0.25) and not any(times.stage_share)


def test_the_layout_of_version_4():
    """This digest changes if the structures that a plug-in sees change. KVB_PLUGIN must then change
    too.
    """
    library = default_library()
    rows = sorted(
        (name, *place)
        for name, place in library._compiled().items()
        if name.split(".")[0] in ("kvb_kernel", "kvb_plane", "kvb_cache", "kvb_work")
    )
    assert library.lib.KVB_PLUGIN == 4
    assert hashlib.sha256(repr(rows).encode()).hexdigest()[:16] == "03ff7ab3170e2126"


# ---- what is refused -----------------------------------------------------------------------------


def row(**changed):
    facts = {
        "op": '"decode"',
        "variant": '"mine"',
        "layout": '"head"',
        "dtype": '"f32"',
        "isa": '"scalar"',
    }
    facts |= {"about": '"says"', "runnable": "1", "takes": "0", "run": "right"} | changed
    return "-DLISTED={" + ",".join(facts.values()) + "}"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("-DNO_VERSION", "is not a plug-in"),
        ("-DNO_TABLE", "does not export kvb_kernels"),
        ("-DLISTED={0}", "lists no kernels"),
        (row(op='"append"'), "op 'append' cannot be plugged in"),
        (row(variant='"flash"'), "variant flash already exists"),
        (row(variant='"plain"'), "variant plain already exists"),
        (row(variant='"all"'), "variant all already exists"),
        (row(variant='"Fast!"'), "variant 'Fast!' is not a valid name"),
        (row(variant="NULL"), "variant is not printable text"),
        (
            row(layout='"heads"'),
            r"layout 'heads' is not known \(one of: head, position, paged, blockt, block16\)",
        ),
        (row(dtype='"f64"'), "dtype 'f64' is not known"),
        (row(isa='"sse"'), "isa 'sse' is not known"),
        (row(about='"two\\nlines"'), "about is not printable text"),
        (row(takes="3"), "takes 3, which libkvbench.so does not know"),
        (row(run="NULL"), "decode.mine.head.f32.scalar has no function"),
        (
            row() + "," + row().removeprefix("-DLISTED="),
            "kernel 1: decode.mine.head.f32.scalar is listed twice",
        ),
    ],
)
def test_a_plug_in_that_is_refused(tmp_path, option, said):
    made = build_plugin(tmp_path / "made.so", option)
    with pytest.raises(BadLibrary, match=said) as caught:
        Library(library_path(), plugin=made).kernels()
    assert (
        "made.so" in str(caught.value)
        and "\n" not in str(caught.value)
        and caught.value.exit_code == 5
    )


def test_a_file_that_is_not_a_shared_object(tmp_path, capsys):
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(BadLibrary, match="text.so"):
        is_plugin(tmp_path / "text.so")
    for name, code in (("text.so", 5), ("none.so", 2)):
        refused(capsys, "list", "kernels", "--plugin", tmp_path / name, words=[name], code=code)


@pytest.mark.parametrize(
    ("loaded", "said"),
    [
        ("exit(0)", "ended with exit code 0"),
        ("abort()", "was killed by SIGABRT"),
        ("for (;;) pause()", "gave no sign of life for 2 s: it hangs"),
    ],
)
def test_a_plug_in_that_is_never_loaded(tmp_path, capsys, monkeypatch, loaded, said):
    monkeypatch.setattr("kvbench.native.plugin._PATIENCE", 2.0)
    made = build_plugin(tmp_path / "made.so", f"-DLOADED={loaded}")
    refused(
        capsys,
        "list",
        "kernels",
        "--plugin",
        made,
        words=[f"made.so: the process that loaded it {said}"],
        code=5,
    )


def test_an_older_plug_in_is_told_what_to_do(tmp_path, capsys):
    made = build_plugin(tmp_path / "made.so", "-DVERSION=3")
    refused(
        capsys,
        "list",
        "kernels",
        "--plugin",
        made,
        words=["version 3, and libkvbench.so takes version 4", "build it again with the kvbench.h"],
        code=5,
    )


def test_a_library_is_not_a_plug_in(example):
    assert is_plugin(example) and not is_plugin(library_path())


def test_a_tier_that_does_not_run(tmp_path):
    absent = next(
        isa for isa in default_library().words("isa") if isa not in default_library().isas()
    )
    made = build_plugin(tmp_path / "made.so", row(isa=f'"{absent}"'))
    assert [kernel.runnable for kernel in Library(library_path(), plugin=made).plugins.kernels] == [
        False
    ]


def test_a_combination_that_it_lacks(library, isa):
    with Cache(1, 8, 4, dtype="f16", library=library) as cache:
        cache.bulk(*np.ones((2, 1, 3, 1, 8)))
        with pytest.raises(
            BadArgument, match=f"no kernel for head.f16.{isa}.*it has: head.f32.{isa}"
        ):
            cache.decode(np.ones((1, 2, 8)), "textbook", isa)
        with pytest.raises(BadArgument, match="variant nonesuch has no kernel for head.f16"):
            cache.decode(np.ones((1, 2, 8)), "nonesuch")


@pytest.mark.parametrize(
    ("takes", "queries", "asked", "said"),
    [
        (0, 4, {}, "4 queries of a sequence, and kvb_kernel.takes lacks KVB_TAKES_QUERIES"),
        (0, 1, {"queries": [0]}, "different numbers of queries, .* lacks KVB_TAKES_QUERIES"),
        (1, 4, {"mask": "block"}, "the mask block, and kvb_kernel.takes lacks KVB_TAKES_MASK"),
        (1, 1, {"softcap": 2.0}, "softcap, and kvb_kernel.takes lacks KVB_TAKES_SOFTCAP"),
        (16, 1, {"slopes": [0, 1]}, "slopes, and kvb_kernel.takes lacks KVB_TAKES_SLOPE"),
        (129, 4, {}, "4 queries of a sequence with a window, which plug-ins cannot take"),
    ],
)
def test_work_that_a_kernel_does_not_take(tmp_path, takes, queries, asked, said):
    made = build_plugin(tmp_path / "made.so", row(takes=str(takes)))
    window = 2 if takes == 129 else None
    with Cache(1, 8, 9, window=window, library=Library(library_path(), plugin=made)) as cache:
        cache.bulk(*np.ones((2, 1, 6, 1, 8)))
        assert (cache.decode(np.ones((1, 2, 8)), "mine", "scalar") == 1).all()
        with pytest.raises(BadArgument, match=f"^variant mine is asked for {said} \\(ask for less"):
            cache.decode(np.ones((1, queries, 2, 8)), "mine", "scalar", **asked)


# ---- where they join -----------------------------------------------------------------------------


@pytest.fixture
def planned(tmp_path, library):
    def planned(axes, library=library):
        path, geometry = (
            tmp_path / "x.toml",
            "q_heads = 32\nkv_heads = 8\nhead_dim = 128\ncontext = 512\n",
        )
        path.write_text(f'question = "?"\n[axes]\npages = "base"\n{geometry}{axes}')
        here = Site(
            TWO,
            64 << 30,
            library.plugins.kernels[0].isa if library.plugins else None,
            ("base",),
            library,
        )
        return expand(load(path, library=library), here), here

    return planned


def cells(found):
    return [(point.variant, point.layout, point.dtype, point.schedule) for point in found.points]


def test_plug_ins_join_a_suite_that_names_no_variant(planned, library):
    """They stand beside the default, once whatever the schedule. Combinations that they lack are
    not reported.
    """
    found, _ = planned('layout = "all"\ndtype = ["f32", "f16"]\nschedule = ["off", "weave"]')
    foreign = [cell for cell in cells(found) if cell[0] == "textbook"]
    assert sorted(foreign) == sorted(
        ("textbook", layout, "f32", "auto") for layout in ("head", "position", "paged")
    )
    assert {cell[0] for cell in cells(found)} == {"flash", "textbook"} and not found.skips


def test_a_suite_that_names_its_variants(planned):
    assert {cell[0] for cell in cells(planned('variant = "twopass"\ndtype = "f32"')[0])} == {
        "twopass"
    }
    found, _ = planned('variant = "all"\ndtype = ["f32", "f16"]')
    # dot is of i8 and of packed rows
    both, one = ("flash", "twopass", "perhead"), ("round16", "textbook")
    assert [cell[0] for cell in cells(found)] == [*(word for word in both for _ in range(2)), *one]
    assert not found.skips
    found, _ = planned('variant = "textbook"\ndtype = ["f32", "f16"]')
    assert [cell[:3] for cell in cells(found)] == [("textbook", "head", "f32")]
    assert [skip.reason for skip in found.skips] == [NO_KERNEL]


def test_only_kernels_that_take_several_queries_get_such_points(planned, library, tmp_path):
    found, _ = planned('q_len = [1, 4]\nvariant = "textbook"\ndtype = "f32"')
    assert [point.shape.q_len for point in found.points] == [1, 4] and not found.skips
    one = Library(library_path(), plugin=build_plugin(tmp_path / "made.so", row()))
    found, _ = planned('q_len = [1, 4]\nvariant = "mine"\ndtype = "f32"', one)
    assert [point.shape.q_len for point in found.points] == [1]
    (left,) = found.skips
    assert "variant mine is asked for 4 queries" in left.detail and "KVB_TAKES" in left.detail


def test_without_it_its_words_are_unknown(planned, library):
    with pytest.raises(BadArgument, match="textbook"):
        planned('variant = "textbook"', default_library())
    with pytest.raises(BadArgument, match="textbook"):
        from_options(["variant=textbook"])
    assert from_options(["variant=textbook"], library) == {"variant": ("textbook",)}


def test_a_sweep_without_any_of_them_is_refused(planned):
    with pytest.raises(BadArgument, match="no kernel of my.so is among the points"):
        refuse_without_plugin(*planned('dtype = "f16"'))
    refuse_without_plugin(*planned('dtype = "f32"'))


# ---- commands ------------------------------------------------------------------------------------


def test_verify_fails_a_wrong_plug_in(capsys, tmp_path):
    """A command of README shows that verify passes the example."""
    made = build_plugin(tmp_path / "made.so", row(run="wrong"))
    code, said, _ = told(capsys, "verify", "--quick", "--isa", "scalar", "--plugin", made)
    assert code == 1 and "WRONG decode.mine.head.f32.scalar" in said


def test_profile(capsys, example, isa):
    shape = [
        "--q-heads",
        4,
        "--kv-heads",
        2,
        "--head-dim",
        32,
        "--context",
        300,
        "--layers",
        2,
        "--pages",
        "base",
    ]
    # of some rounds: other work may stall the reads of one
    time = ["--samples", 7, "--sample-time", 0.001, "--threads", 1, "--isa", isa, "--json"]
    asked = ["profile", "decode", "--plugin", example, "--variant", "textbook", *shape, *time]
    code, said, _ = told(capsys, *asked, "--dtype", "f32")
    facts = json.loads(said)
    assert code == 0 and facts["kernel"] == f"decode.textbook.head.f32.{isa}" and facts["gbps"] > 0
    assert facts["efficiency"] > 0 and facts["core_gbps"] > 0 and not facts["stage_share"]
    refused(capsys, *asked, words=["textbook has no kernel for head.f16"])


def test_plan(capsys, example):
    asked = [
        "sweep",
        "--dry-run",
        "smoke",
        "--plugin",
        example,
        "--axis",
        "op=decode",
        "--axis",
        "dtype=f32",
        "--json",
    ]
    code, said, _ = told(capsys, *asked)
    assert code == 0 and json.loads(said)["axes"]["variant"] == ["flash", "textbook"]
    refused(capsys, *asked[:5], "--axis", "dtype=i8", words=["no kernel of my.so"])

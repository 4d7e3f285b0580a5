"""Two plug-ins in one run, such as an old and a new build: each has its name, process and row."""

import numpy as np
import pytest

import kvbench
from kvbench.errors import BadArgument
from kvbench.model import Point
from kvbench.native import Cache, Library, library_path
from tests.cli.test_cli import told
from tests.faulty import build_plugin
from tests.faulty.test_plugin_faults import SHAPE, SHORT
from tests.faulty.test_plugin_sweep import HEADS, SMALL, sweep
from tests.faulty.test_plugin_sweep import SHORT as BRIEF

_NEW = "-DLISTED=ONE(right), ONE(talks)"


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return build_plugin(folder / "old.so", "-DLISTED=ONE(right)"), build_plugin(
        folder / "new.v2.so", _NEW
    )


def test_a_variant_that_both_have_is_told_apart(two):
    library = Library(library_path(), plugin=two)
    assert library.foreign_variants == ("right@old", "right@new_v2", "talks")
    assert [library.plugins.of(word).path for word in library.foreign_variants] == [
        two[0],
        two[1],
        two[1],
    ]


def test_each_runs_the_kernel_of_its_own_file(tmp_path):
    """One of them is wrong by a half in the last element; the other is right."""
    wrong = '-DLISTED={"decode", "mine", "head", "f32", ISA, "for tests", 1, 0, wrong}'
    right = wrong.replace(", wrong}", ", right}")
    plugins = build_plugin(tmp_path / "a.so", wrong), build_plugin(tmp_path / "b.so", right)
    library = Library(library_path(), plugin=plugins)
    isa = library.plugins.kernels[0].isa
    q, k, v = (
        np.random.default_rng(1).standard_normal((1, 2, 40, 8), dtype=np.float32) for _ in "qkv"
    )
    with Cache(2, 8, 40, library=library) as cache:
        cache.bulk(*(x.swapaxes(1, 2) for x in (k, v)))
        off = [
            np.abs(cache.decode(q[:, :, 0], f"mine@{name}", isa) - _right(q, k, v)).max()
            for name in "ab"
        ]
    assert off[0] == pytest.approx(0.5, rel=1e-4) and off[1] < 1e-5


def _right(q, k, v):
    """Return the right answer in float64: [1][heads][dim]."""
    scores = np.einsum("bhd,bhtd->bht", q[:, :, 0].astype(float), k) / np.sqrt(k.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bht,bhtd->bhd", weights / weights.sum(-1, keepdims=True), v)


def test_one_stem_is_refused(two, tmp_path):
    twin = build_plugin(tmp_path / "old.so", "-DLISTED=ONE(right)")
    with pytest.raises(BadArgument, match="are both called old.*rename one"):
        Library(library_path(), plugin=(two[0], twin))


def test_a_sweep_has_a_row_of_each(two, tmp_path):
    plugins = [word for path in two for word in ("--plugin", path)]
    done = sweep(
        "smoke", *SMALL, *HEADS, *BRIEF, "--axis", "dtype=f32", *plugins, "--out", tmp_path / "run"
    )
    assert done.returncode == 0, done.stderr
    run = kvbench.load(tmp_path / "run")
    rows = run.frame("points").set_index("variant")
    assert (rows.loc[["right@old", "right@new_v2", "talks", "flash"], "gbps"] > 0).all()
    assert list(run.manifest.plan.plugin) == [str(path) for path in two]
    parts: dict[str, set[int]] = {}
    for record in run.records:
        if isinstance(record.point, Point) and record.launch == 0:
            parts.setdefault(record.point.variant, set()).add(record.part)
    # a process of its own for each
    assert len({part for own in parts.values() for part in own}) == 4


def test_a_profile_has_a_row_of_each(two, capfd):
    plugins = [word for path in two for word in ("--plugin", path)]
    code, out, err = told(
        capfd, "profile", "decode", *plugins, "--variant", "right", *SHAPE, *SHORT
    )
    last = out.split("of reads of its rows")[-1]
    assert (
        code == 0 and "decode.right@old.head.f32" in last and "decode.right@new_v2.head.f32" in last
    ), err
    code, _, err = told(
        capfd, "profile", "decode", *plugins, "--variant", "right", *SHAPE, *SHORT, "--json"
    )
    assert code == 2 and "right@old and right@new_v2" in err and "--variant" in err

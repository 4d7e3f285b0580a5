"""Points with different K and V, or with sinks, a softcap, slopes or kept tokens: which ones exist,
their names and needs.
"""

from dataclasses import replace

import pytest

from kvbench.plan.expansion import NO_KERNEL
from kvbench.plan.needs import needs, room
from kvbench.plan.shapes import INVALID
from tests.made_run import DECODE, MIB
from tests.plan.test_expansion import why

MODELS = 'model = ["gemma-2-9b", "gpt-oss-20b", "llama-3-8b"]\n'
OWN = "isa = 'scalar'\npages = 'base'\ncontext = 256\n"


def scored(point=DECODE, **facts):
    return replace(point, shape=replace(point.shape, **facts))


def test_a_pair_is_of_k_and_v(sweep):
    found = sweep('dtype = ["q8_0", "q8_0+q4_0", "i8+f16"]\nvariant = ["flash", "dot"]')
    assert {(p.variant, p.kv_dtype) for p in found.points} == {
        ("flash", "q8_0"),
        ("dot", "q8_0"),
        ("flash", "q8_0+q4_0"),
        ("dot", "q8_0+q4_0"),
        ("flash", "i8+f16"),
    }
    assert why(found) == (NO_KERNEL, "decode.dot.head.i8+f16.scalar")
    (pair, _) = (point for point in found.points if point.kv_dtype == "q8_0+q4_0")
    assert (pair.dtype, pair.v_dtype) == ("q8_0", "q4_0")
    assert pair.name.startswith("decode.flash.head.q8_0+q4_0.scalar/")


def test_skips_name_pairs(sweep):
    found = sweep('dtype = ["q8_0", "q8_0+q4_0"]\n[[skip]]\ndtype = "q8_0+q4_0"')
    assert [point.kv_dtype for point in found.points] == ["q8_0"]


@pytest.mark.parametrize("op", ["append", "bulk"])
def test_stores_take_pairs_and_widths(sweep, op):
    plain, pair = sweep(f'op = "{op}"\ndtype = ["f16", "f16+q4_0"]\nv_dim = [64]').points
    assert plain.shape.v_dim == pair.shape.v_dim == 64
    of_k, of_v = (8 * 4096 * size for size in (2 * 128, 64 // 32 * 18))
    assert needs(replace(pair, pad=0), MIB).slice_bytes == of_k + of_v


def test_what_a_model_does_to_scores(sweep, tmp_path):
    from kvbench.plan import expand
    from kvbench.suite import load
    from tests.plan.made_sweep import site

    path = tmp_path / "models.toml"
    path.write_text(f'question = "?"\n[axes]\n{OWN}{MODELS}[[grid]]\n[[grid]]\nsinks = "none"')
    found = expand(load(path), site()).points
    assert [(p.shape.sinks, p.shape.softcap, p.shape.head_dim) for p in found] == [
        ("none", 50.0, 256),
        ("heads", 0.0, 64),
        ("none", 0.0, 128),
        ("none", 0.0, 64),
    ]
    assert found[0].name.split("/")[2].endswith(".softcap50")
    assert found[1].name.split("/")[2].endswith(".sinksheads")


def test_stores_have_no_scores(sweep):
    (point,) = sweep('op = "bulk"\nsinks = "all"\nsoftcap = 50\nalibi = 8').points
    assert point.name == sweep('op = "bulk"').points[0].name


@pytest.mark.parametrize(
    ("axes", "detail"),
    [
        ("kept = 4", "kept = 4 needs a window: without one all tokens count"),
        (
            'dtype = "q8_0"\nk_scale = "channel"',
            "k_scale = channel: q8_0 has one scale per block",
        ),
        ('op = "step"\nlayers = 2\nv_dim = 64', "a step needs rows of V as wide as K's, not 64"),
        (
            'op = "step"\nlayers = 2\nwindow = 64\nkept = 4',
            "layers of a step keep only the tokens of",
        ),
    ],
)
def test_what_is_left_out(sweep, axes, detail):
    reason, told = why(sweep(axes))
    assert reason == INVALID and told.startswith(detail)


def test_what_no_scale_shares_is_by_token(sweep):
    (point,) = sweep('dtype = "f16"\nk_scale = ["token", "channel"]\nv_dim = [0, 128]').points
    assert (point.k_scale, point.shape.v_dim) == ("token", 0)


def test_kept_tokens_are_read_and_scores_take_no_memory():
    windowed = scored(window=100)
    one, more = (needs(scored(windowed, kept=kept), MIB).slice_walked for kept in (0, 28))
    assert more / one == pytest.approx(1.28, rel=1e-3)
    plain, capped = DECODE, scored(sinks="heads", softcap=50.0, alibi=8.0)
    assert needs(plain, MIB) == needs(capped, MIB) and room(plain, 3) == room(capped, 3)
    assert room(windowed, 3) == room(scored(windowed, kept=4), 3) != room(plain, 3)

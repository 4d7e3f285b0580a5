"""Suites of repack, transpose and logits: their points, and the sizes of these."""

from kvbench.plan.expansion import CPUS, INVALID, NO_KERNEL
from kvbench.plan.needs import needs
from tests.plan.test_expansion import why


def test_moves_have_what_their_kernels_have(sweep):
    """A repack runs on one thread, in layouts with full heads. Matrices have no layout and no
    number format.
    """
    found = sweep('op = "repack"\nlayout = "all"\ndtype = ["f32", "e4m3"]\ncontext = 1024')
    assert {(p.layout, p.dtype) for p in found.points} == {
        ("head", "f32"),
        ("head", "e4m3"),
        ("blockt", "f32"),
        ("block16", "e4m3"),
    }
    assert {p.cpus for p in found.points} == {(0,)} and not found.skips
    assert {p.shape.capacity for p in found.points} == {2048}
    found = sweep('op = ["transpose", "logits"]\nlayout = "all"\ndtype = "all"\ncontext = 64')
    assert [p.kernel.rpartition(".")[0] for p in found.points] == [
        "transpose.-.-.-",
        "logits.-.-.-",
    ]
    assert {p.cpus for p in found.points} == {(0, 1)}


def test_a_repack_that_cannot_be_is_left_out_with_the_reason(sweep):
    grown = 'op = "repack"\ndtype = "f16"\ncontext = 1024\n'
    assert why(sweep(grown + "threads = 2")) == (
        CPUS,
        "repack runs on one thread, but 2 are asked for",
    )
    assert why(sweep(grown + 'layout = "paged"'))[0] == NO_KERNEL
    assert why(sweep(grown + "capacity = 1024"))[0] == INVALID
    part = sweep(grown.replace("1024", "40") + 'layout = "blockt"\ncapacity = 48')
    assert why(part) == (INVALID, "a cache of 40 tokens does not grow to 48")


def test_logits_are_as_many_as_the_model_has(sweep, tmp_path):
    (point,) = sweep('op = "logits"\ncontext = 64').points
    assert point.shape.vocabulary == 32_000 and ".vocabulary32000/" in point.name
    (point,) = sweep('op = "logits"\ncontext = 64\nmodel = "qwen3-0.6b"').points
    assert point.shape.vocabulary == 151_936
    (point,) = sweep('op = "logits"\ncontext = 64\nvocabulary = 100\nbatch = 3').points
    found = needs(point, 0)
    assert (found.slice_bytes, found.slice_walked) == (3 * 64 * 400, 3 * 65 * 400)
    (point,) = sweep("vocabulary = 100").points
    assert point.shape.vocabulary == 0 and "vocabulary" not in point.name
    (point,) = sweep('op = "transpose"\ncontext = 64\nbatch = 3').points
    found = needs(point, 0)
    assert found.slice_bytes == found.source_bytes == 2 * 3 * 64 * 8 * 128 * 4
    assert found.slice_walked == 2 * found.slice_bytes
    assert why(sweep('op = "logits"\ncontext = "0.5xL3"'))[0] == INVALID

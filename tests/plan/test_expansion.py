"""Suites expanded on made-up machines: which points there are, what is left out and why."""

import re
from dataclasses import replace

import pytest

from kvbench.errors import BadArgument
from kvbench.model import DEFAULTS, DataCache
from kvbench.native import Cache, default_library
from kvbench.plan import expand, forecast
from kvbench.plan.expansion import CPUS, MEMORY, NO_KERNEL, NO_PAGES, NO_TIER
from kvbench.plan.needs import PROCESS, needs, slice_of
from kvbench.plan.shapes import CLOSED, INVALID, UNKNOWN
from kvbench.regime import far_bytes
from kvbench.suite import Relative, load
from tests.plan.made_sweep import site
from tests.plan.test_plan import BARE, DIES, GIB, MIB, TWO, made

SMALL_L3 = made(16, l2=2 * MIB, l3=24 * MIB)  # as servers are: L3 smaller than all L2 together
HEADS = (8, 128)


def contexts(found):
    return [point.shape.context for point in found.points]


def reasons(found):
    return {skip.reason for skip in found.skips}


def why(found):
    (reason,) = {(skip.reason, skip.detail) for skip in found.skips}
    return reason


# ---- points --------------------------------------------------------------------------------------


def test_axes_are_crossed(sweep):
    found = sweep("context = [1024, 2048]\nbatch = [1, 2, 4]")
    assert [(p.shape.batch, p.shape.context) for p in found.points] == [
        (batch, context) for batch in (1, 2, 4) for context in (1024, 2048)
    ]
    assert not found.skips
    assert found.varying() == {"context": (1024, 2048), "batch": (1, 2, 4)}


def test_what_is_not_asked_for_is_the_default(sweep):
    (point,) = sweep("").points
    for axis in ("op", "dtype", "layout", "residency", "scale", "pad", "deterministic"):
        assert getattr(point, axis) == DEFAULTS[axis]
    assert point.schedule == "auto"
    assert point.variant == default_library().kernels()[0].variant
    assert point.shape.capacity == point.shape.context == DEFAULTS["context"]
    assert point.cpus == (0, 1) and point.order is None


def test_a_model_gives_heads_and_its_window_where_asked(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(
        'question = "?"\n[axes]\nmodel = ["gemma-3-4b", "gpt-2"]\nwindow = [0, "model"]'
    )
    shapes = [point.shape for point in expand(load(path), site()).points]
    assert [(s.q_heads, s.kv_heads, s.head_dim, s.window) for s in shapes] == [
        (8, 4, 256, 0),
        (8, 4, 256, 1024),
        (12, 12, 64, 0),
    ], "a model without a window stands once"


def test_heads_override_the_model(sweep):
    assert sweep('model = "gpt-2"').points[0].shape.head_dim == 128


def test_all_is_what_has_a_kernel_of_the_op(sweep):
    library = default_library()
    for op in ("decode", "append", "bulk"):
        found = sweep(f'op = "{op}"\nvariant = "all"\nlayout = "all"\ndtype = "all"')
        kernels = {k.id for k in library.kernels() if k.op == op and k.isa == "scalar"}
        assert {point.kernel for point in found.points} == kernels and not found.skips


@pytest.mark.parametrize(
    ("axes", "count"),
    [
        ('layout = ["head", "paged"]\nblock_tokens = [16, 32]\ninner = "all"', 1 + 4),
        ('layout = ["head", "paged"]\norder = "all"', 1 + 2),
        ('dtype = ["f16", "i8"]\nscale = "all"', 1 + 2),
        (
            (
                'op = ["decode", "append"]\nschedule = ["off", "cross", "auto"]\ndeterministic ='
                " [false, true]"
            ),
            6 + 1,
        ),
        ('threads = [2, "domain", "all"]', 1),
    ],
)
def test_what_does_not_matter_makes_no_second_point(sweep, axes, count):
    assert len(sweep(axes).points) == count


def test_the_schedule_that_was_asked_for_is_the_point_s(sweep):
    own = default_library().schedule("auto")
    found = sweep(f'schedule = ["off", "auto", "{own}"]\n[[skip]]\nschedule = "off"')
    assert [p.schedule for p in found.points] == ["auto", own]
    assert not sweep('schedule = "auto"\n[[skip]]\nschedule = "auto"').points


def test_constraints_leave_points_out(sweep):
    found = sweep(
        'layout = "all"\ndtype = ["f16", "i8"]\ncontext = [1024, "0.5xL3"]\nresidency ='
        ' "hot"\n[[skip]]\nlayout = "paged"\ndtype = "i8"\n[[skip]]\nlayout = "position"\ncontext ='
        ' "0.5xL3"\n'
    )
    left = {(p.layout, p.dtype) for p in found.points}
    assert ("paged", "i8") not in left and ("paged", "f16") in left and ("head", "i8") in left
    assert {p.shape.context for p in found.points if p.layout == "position"} == {1024}
    assert not found.skips, "the suite does not want them"


def test_grids_with_common_points_share_them(sweep):
    found = sweep("[[grid]]\ncontext = [1024, 2048]\n[[grid]]\ncontext = [2048, 4096]")
    assert contexts(found) == [1024, 2048, 4096]


def test_too_many_points_are_refused_with_their_number(sweep):
    with pytest.raises(BadArgument, match="1000000 points") as caught:
        sweep(f"batch = {list(range(1, 1001))}\ncontext = {list(range(1, 1001))}")
    assert "100000" in caught.value.hint
    with pytest.raises(BadArgument, match="far too many points"):
        many = ("batch", "context", "capacity", "block_tokens", "pad", "layers")
        sweep("\n".join(f"{axis} = {list(range(1, 4000))}" for axis in many))


def test_a_geometry_is_needed(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(
        'question = "?"\n[axes]\nq_heads = 8\n[[grid]]\nmodel = "gpt-2"\n[[grid]]\nkv_heads = 8'
    )
    with pytest.raises(BadArgument, match="x.toml: a geometry lacks head_dim"):
        expand(load(path), site())


# ---- sizes relative to caches --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        (layout, dtype)
        for layout in default_library().words("layout")
        for dtype in default_library().dtypes(layout)
    ],
)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_relative_size_is_hit_within_a_token(sweep, dtype, layout, batch):
    axes = (
        f'dtype = "{dtype}"\nlayout = "{layout}"\nbatch = {batch}\nresidency = "hot"\nblock_tokens'
        " = 1\n"
    )
    found = sweep(axes + 'context = ["0.5xL2", "0.25xL3", "4xL3"]', DIES)
    assert len(found.points) == 3
    for point, wanted in zip(
        found.points, (16 * MIB / 2, 2 * 32 * MIB / 4, 4 * 2 * 32 * MIB), strict=True
    ):
        facts = {"batch": batch, "layout": layout, "dtype": dtype, "block_tokens": 1}
        fewer = point.shape.context - (wanted > 2 * 32 * MIB)
        assert (
            Cache.size_of(*HEADS, fewer, **facts)
            <= wanted
            <= Cache.size_of(*HEADS, fewer + 1, **facts)
        )
        assert point.shape.capacity == point.shape.context


def test_blocks_are_whole(sweep):
    found = sweep(
        'layout = "paged"\nblock_tokens = [16, 64]\ncontext = "0.5xL3"\nresidency = "hot"'
    )
    assert [p.shape.context % p.block_tokens for p in found.points] == [0, 0]


def test_only_caches_in_use_count(sweep):
    """Half of L2 means half of each thread's L2. One domain has one L3."""
    found = sweep(
        'threads = [1, 4, "domain", "all"]\ncontext = ["0.5xL2", "0.5xL3"]\nresidency = "hot"', DIES
    )
    by_size = {(len(p.cpus), f.get("context")): slice_of(p) for p, f in found.asked.items()}
    l2, l3 = Relative(0.5, 2), Relative(0.5, 3)
    assert by_size[4, l2] == pytest.approx(4 * by_size[1, l2], rel=0.05)
    assert by_size[8, l3] == pytest.approx(16 * MIB, rel=0.01)
    assert by_size[16, l3] == pytest.approx(32 * MIB, rel=0.01)


# ---- what is left out ----------------------------------------------------------------------------


def test_no_such_kernel(sweep):
    found = sweep('op = ["decode", "bulk"]\nvariant = "nt"')
    assert [p.op for p in found.points] == ["bulk"]
    assert why(found) == (NO_KERNEL, "decode.nt.head.f16.scalar")


def test_a_variant_that_has_not_every_dtype(sweep):
    """If the suite names the variant, its missing dtypes are reported. Under "all" it appears where
    it has a kernel. A tier that no kernel has is reported.
    """
    found = sweep('variant = ["flash", "round16"]\ndtype = ["f32", "f16"]')
    assert [(p.variant, p.dtype) for p in found.points] == [
        ("flash", "f32"),
        ("flash", "f16"),
        ("round16", "f32"),
    ]
    assert why(found) == (NO_KERNEL, "decode.round16.head.f16.scalar")
    found = sweep('variant = "all"\ndtype = ["f16", "f32"]')
    assert [p.dtype for p in found.points if p.variant == "round16"] == ["f32"] and not found.skips
    found = sweep('variant = "round16"\ndtype = "all"')
    assert [p.dtype for p in found.points] == ["f32"] and not found.skips
    built = {kernel.isa for kernel in default_library().kernels()}
    absent = next(isa for isa in default_library().words("isa") if isa not in built)
    found = expand(sweep('variant = "all"').suite.with_axes({"isa": (absent,)}), site())
    assert not found.points and reasons(found) == {NO_KERNEL}


def test_no_such_tier(sweep):
    found = sweep("").suite.with_axes({"isa": default_library().words("isa")})
    found = expand(found, site())
    runs = set(default_library().isas())
    assert {p.isa for p in found.points} == runs
    assert {s.facts["isa"] for s in found.skips} == set(default_library().words("isa")) - runs
    assert reasons(found) <= {NO_TIER, NO_KERNEL}


def test_pages_that_are_not_given(sweep):
    found = sweep("", pages=("thp",))
    assert not found.points
    assert why(found) == (NO_PAGES, "base; the system gives: thp")


@pytest.mark.parametrize(
    ("axes", "reason", "detail"),
    [
        ("q_heads", INVALID, "30 query heads do not divide into 8 KV heads"),
        ("window = 8192\ncontext = 4096", INVALID, "window 8192 is more than capacity 4096"),
        ("capacity = 1024\ncontext = 4096", INVALID, "context 4096 is more than capacity 1024"),
        ('residency = "hot"\nlayers = 4', INVALID, "hot walks one slice, not 4 layers"),
        ("pad = 63", INVALID, "pad is 63"),
        ("threads = 3", CPUS, "3 threads on 2 CPUs"),
        ('cpus = "9"', CPUS, "--cpus: CPU 9 is not online"),
        ('cpus = "node"\nthreads = "domain"', CPUS, "threads = domain already says which CPUs"),
        ('context = "0.00001xL1"', INVALID, "1e-05xL1 of 64 KiB is less than one token"),
    ],
)
def test_reasons(sweep, axes, reason, detail):
    found = (
        expand(sweep("").suite.with_axes({"q_heads": (30,)}), site())
        if axes == "q_heads"
        else sweep(axes)
    )
    assert not found.points and len(found.skips) == 1
    assert found.skips[0].reason == reason and found.skips[0].detail.startswith(detail)


def test_unknown_caches(sweep):
    found = sweep('context = [4096, "0.5xL3"]', BARE)
    assert contexts(found) == [4096]
    assert why(found) == (UNKNOWN, "no L3 is known for these CPUs")
    apart = replace(
        DIES, caches=tuple(c for c in DIES.caches if c.level < 3) + (DataCache(3, 32 * MIB, (0,)),)
    )
    some = sweep('context = "0.5xL3"', apart)
    assert why(some)[0] == UNKNOWN, "an L3 of some of the CPUs is not theirs"
    assert why(some)[1].startswith("no L3 is known for CPUs 1")


def test_no_domain_without_caches(sweep):
    found = sweep('threads = ["domain", "all"]', BARE)
    assert len(found.points) == 1 and reasons(found) == {UNKNOWN}


def test_an_l3_window_that_is_not_open(sweep):
    """16 threads with 2 MiB of L2 each need an L3 of at least 48 MiB, but it has 24."""
    axes = 'residency = "{}"\nthreads = [1, "all"]\ncontext = ["0.5xL3", "4xL3", 4096]'
    found = sweep(axes.format("hot"), SMALL_L3)
    assert {(len(p.cpus), str(f["context"])) for p, f in found.asked.items()} == {
        (1, "0.5xL3"),
        (1, "4xL3"),
        (1, "4096"),
        (16, "4xL3"),
        (16, "4096"),
    }
    reason, detail = why(found)
    assert reason == CLOSED and detail.startswith(
        "not testable at 16 threads; try --axis threads=5"
    )
    assert not sweep(axes.format("rotate"), SMALL_L3).skips, (
        "many slices are not meant to lie in L3"
    )
    assert not sweep(axes.format("evicted"), SMALL_L3).skips


def test_slices_that_together_fit_l3_want_its_window(sweep):
    found = sweep('threads = "all"\ncontext = "0.125xL3"\nlayers = [1, 4, 8]', SMALL_L3)
    assert [p.shape.layers for p in found.points] == [8]
    assert reasons(found) == {CLOSED}


def test_memory(sweep):
    found = sweep("context = [1024, 262144]", memory=1 * GIB)
    assert contexts(found) == [1024]
    reason, detail = why(found)
    assert reason == MEMORY
    assert re.fullmatch(r"it needs [\d.]+ GiB, but 1 GiB is available", detail)


def test_needs_of_a_point(sweep):
    """The memory of a visit: slices and their objects, the scores and decoded rows of the check,
    and the sweep of caches.
    """
    far = far_bytes(TWO, TWO.allowed)
    found = sweep('op = ["decode", "bulk"]\nlayers = 3\ncontext = 1024\ndtype = "f16"')
    decode, bulk = (found.needs[point] for point in found.points)
    row = 1024 * 8 * 128
    slice_bytes = 2 * 8 * (1024 * 256 + 320)
    check = 3 * 32 * 1024 * 8 + 5 * 4 * row
    objects, ends = 12288 + 256 * 8, 2 * 32 * 128 * 4
    assert decode.slice_bytes == bulk.slice_bytes == slice_bytes
    assert decode.memory == 3 * (slice_bytes + objects + ends) + check + far
    assert bulk.memory == 3 * (slice_bytes + objects) + check + far + 2 * 3 * row * 4


def test_slices_in_rotation(sweep):
    """So many slices that their rows alone, without padding, exceed the caches."""
    far = far_bytes(TWO, TWO.allowed)
    found = sweep('residency = "all"\ncontext = 4096\ncapacity = [4096, 16384]\nwindow = [0, 1024]')
    for point in found.points:
        seen = needs(point, far)
        tokens = point.shape.window or 4096
        assert seen.slice_walked == seen.slice_bytes * tokens // point.shape.capacity
        if point.residency != "rotate":
            assert seen.slices == 1
        else:
            rows = 2 * 8 * tokens * 256
            assert (seen.slices - 1) * rows < far <= seen.slices * rows


@pytest.mark.parametrize("context", [1000, 3001, 4097, 5000, 70001])
def test_a_footprint_is_never_less_than_what_no_cache_helps_with(sweep, context):
    """Sizes that do not divide evenly: by hand, the fewest slices whose rows reach the far
    footprint.
    """
    far = far_bytes(TWO, TWO.allowed)
    (point,) = sweep(f'dtype = "f16"\ncontext = {context}').points
    seen, rows = needs(point, far), 2 * 8 * context * 128 * 2
    assert far % rows, "or the test shows nothing"
    assert (seen.slices - 1) * rows < far <= seen.slices * rows
    assert seen.walked >= far


@pytest.mark.parametrize("context", [100, 300, 513, 1000])
def test_whole_sets_of_a_model_reach_as_far(sweep, context):
    """By hand, the fewest sets of Llama's 32 layers whose rows reach the far footprint."""
    far = far_bytes(TWO, TWO.allowed)
    (point,) = sweep(
        f'model = "llama-3-8b"\nlayers = "model"\ndtype = "f16"\ncontext = {context}'
    ).points
    one_set = 32 * 2 * 8 * context * 128 * 2
    assert far % one_set and far > one_set, "or the test shows nothing"
    assert point.shape.layers == 32 * -(-far // one_set)
    assert needs(point, far).walked >= far


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_the_check_s_memory_is_for_all_sequences(sweep, batch):
    """Scores in float64 of each sequence, and of two more; K and V of each sequence decoded to
    float32 in blocks.
    """
    far = far_bytes(TWO, TWO.allowed)
    (seen,) = sweep(f'layers = 1\ncontext = 1024\nbatch = {batch}\ndtype = "f16"').needs.values()
    scores, decoded = (batch + 2) * 32 * 1024 * 8, 5 * batch * 1024 * 8 * 128 * 4
    held = 12288 + 256 * 8 * batch + 2 * batch * 32 * 128 * 4
    assert seen.beside == far + scores + decoded + held


def test_what_a_store_walks(sweep):
    """A prompt: its rows and their float32 sources. Single tokens: all of the cache, from the same
    sources.
    """
    bulk, append = sweep(
        'op = ["bulk", "append"]\ncontext = 1024\nlayers = 4\npad = 0'
    ).needs.values()
    assert bulk.slice_walked == 2 * 8 * 1024 * (256 + 512)
    assert append.slice_walked == 2 * 8 * (1024 * 256 + 512)
    assert append.slice_bytes == 2 * 8 * 1024 * 256 and append.arena == 4 * (
        append.slice_bytes + 2 * 8 * 512
    )


def test_many_small_slices_take_what_is_held_for_each(sweep):
    """With one token each, the slices' objects, queries and outputs are larger than their rows."""
    few, many = (
        next(iter(sweep(f"context = 1\nlayers = {layers}").needs.values())) for layers in (1, 1001)
    )
    ends = 1000 * 2 * 32 * 128 * 4
    assert many.beside - few.beside > ends + 1000 * 8192


def test_points_that_fit_only_one_by_one(sweep):
    """The memory of one point stays while another is checked. The largest point is left out; the
    suite is not refused.
    """
    text = (
        "context = [256, 65536]\nbatch = [1, 64]\nlayers = 1\n[[skip]]\ncontext = 65536\nbatch = 64"
    )
    everything = sweep(text).needs.values()
    together = max(n.arena for n in everything) + max(n.beside for n in everything) + PROCESS
    assert together > max(n.memory for n in everything) + PROCESS
    assert len(sweep(text, memory=together).points) == 3
    found = sweep(text, memory=together - 1)
    assert len(found.points) == 2 and reasons(found) == {MEMORY}
    assert forecast(found).memory < together

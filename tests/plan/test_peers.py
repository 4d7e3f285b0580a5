"""A peer with a paged cache, such as vLLM: which of our points it is timed beside, and which
combinations are refused.
"""

import pytest

from kvbench.model import OURS
from kvbench.peers.known import Known
from kvbench.peers.vllm import Vllm
from kvbench.plan.expansion import NO_FORMAT
from kvbench.plan.shapes import INVALID
from kvbench.plan.witnesses import peer_lines
from tests.plan.test_expansion import why

OURS_AND_THEIRS = """engine = "kvbench"
[[grid]]
dtype = ["f16", "e4m3"]
[[grid]]
engine = "vllm"
layout = "paged"
"""


@pytest.fixture
def blocks(sweep, monkeypatch):
    monkeypatch.setattr("kvbench.plan.site.known", lambda word, *how: Known(word, Vllm))
    return lambda axes: sweep(OURS_AND_THEIRS + axes)


def test_it_is_timed_beside_ours_though_those_have_no_blocks(blocks):
    found = blocks('dtype = ["f16", "e4m3"]\nblock_tokens = [32, 128]\norder = "sequential"')
    lines = peer_lines(found.points)
    assert [line.dtype for line in lines] == ["f16", "e4m3"]
    for line, points in lines.items():
        assert [(p.engine, p.layout, p.block_tokens) for p in points] == [
            (OURS, "head", line.block_tokens),
            ("vllm", "paged", 32),
            ("vllm", "paged", 128),
        ]
        assert points[0] == line


def test_ours_in_another_layout_are_apart(blocks):
    """They have memory of their own, so they share no rounds."""
    found = blocks('block_tokens = 32\norder = "sequential"\n[[grid]]\nlayout = "position"')
    (points,) = peer_lines(found.points).values()
    assert [(p.engine, p.layout) for p in points] == [(OURS, "head"), ("vllm", "paged")]
    assert "position" in [point.layout for point in found.points]


@pytest.mark.parametrize(
    "axes, reason, said",
    [
        ("block_tokens = 16", INVALID, "vllm: blocks of 16 tokens: use a multiple of 32"),
        (
            'block_tokens = 32\ndtype = "e4m3"\nhead_dim = 80',
            INVALID,
            "vllm: e4m3 rows of 80 elements: it takes multiples of 32",
        ),
        ('block_tokens = 32\ndtype = "i8"', NO_FORMAT, "vllm has no paged i8"),
        (
            'block_tokens = 32\norder = "shuffled"',
            INVALID,
            "peers keep blocks in ascending order: ask for order=sequential",
        ),
        (
            'block_tokens = 32\nq_len = 4\nmask = "tree"',
            INVALID,
            "vllm: peers have one mask only: ask for mask=chain",
        ),
    ],
)
def test_what_it_cannot_do_is_left_out(blocks, axes, reason, said):
    order = "" if "order" in axes else '\norder = "sequential"'
    assert why(blocks(axes + order)) == (reason, said)


def test_several_queries_are_of_the_same_rounds_and_for_those_who_take_them(blocks, monkeypatch):
    axes = 'block_tokens = 32\norder = "sequential"\nq_len = [1, 4]'
    ((line, points),) = peer_lines(blocks(axes).points).items()
    assert line.shape.q_len == 1
    assert [(p.engine, p.shape.q_len) for p in points] == [(OURS, 1), ("vllm", 1), ("vllm", 4)]
    monkeypatch.setattr(Vllm, "takes", "")
    assert why(blocks(axes)) == (INVALID, "vllm: it decodes one query a step")


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ('dtype = "f16+f32"', "vllm: its K and V have one dtype"),
        ("window = 64\nkept = 4", "vllm: it keeps no first tokens beside a window"),
        ("v_dim = 64", "vllm: its rows of V are as wide as those of K"),
    ],
)
def test_what_is_done_to_scores_is_asked_of_those_who_take_it(blocks, axes, said):
    paged = '\nblock_tokens = 32\norder = "sequential"'
    assert why(blocks(axes + paged)) == (INVALID, said)


def test_points_with_sinks_and_caps_are_of_rounds_of_their_own(blocks):
    axes = 'block_tokens = 32\norder = "sequential"\nsinks = "all"\nsoftcap = [0, 50]\nalibi = 8'
    lines = peer_lines(blocks(axes).points)
    done = {(line.shape.sinks, line.shape.softcap) for line in lines}
    assert done == {("none", 0), ("heads", 0), ("none", 50), ("heads", 50)}
    for line, points in lines.items():
        assert [(point.engine, point.shape) for point in points] == [("vllm", line.shape)]

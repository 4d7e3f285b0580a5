"""Lengths of a batch's sequences: how they are written, drawn, named and refused; and their
bytes.
"""

import hashlib
import random
import tomllib
from dataclasses import replace

import pytest

from kvbench.analysis.measured.columns import facts
from kvbench.errors import BadArgument
from kvbench.model import Shape
from kvbench.model.contrast import Contrast
from kvbench.model.shape import lengths_word
from kvbench.plan.needs import needs
from kvbench.plan.shapes import INVALID
from kvbench.store.values import read
from kvbench.suite import read_axis
from kvbench.suite.traces import drawn
from tests.made_run import DECODE
from tests.raw import ROOT

LENGTHS = (300, 17, 4096)
TEXT = "listed:300,17,4096"
SHAPE = replace(DECODE.shape, batch=3, context=4096, capacity=4096)


@pytest.fixture
def listed(tmp_path):
    path = tmp_path / "users.txt"
    path.write_text("300\n17, 4096\n")
    return path


# ---- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["300\n17\n4096", "300,17,4096", " 300 , 17\r\n4096,", "300 17 04096"]
)
def test_a_file_stands_for_what_it_holds(tmp_path, text):
    path = tmp_path / "users.txt"
    path.write_text(text)
    assert read_axis("--lengths", "lengths", str(path)) == (TEXT,)
    asked = ["even", "ragged:5", str(path)]
    assert read_axis("--lengths", "lengths", asked) == ("even", "ragged:5", TEXT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds 'nothing'"),
        ("12\n-3", "holds '-3'"),
        ("0", "holds '0'"),
        ("12 1.5", "holds '1.5'"),
        ("9999999999", "lists 1 lengths up to 9,999,999,999"),
        ("1\n" * 4097, "lists 4,097 lengths up to 1"),
    ],
)
def test_a_file_of_no_lengths_is_refused(tmp_path, text, said):
    path = tmp_path / "users.txt"
    path.write_text(text)
    with pytest.raises(BadArgument, match=f"--lengths: .*{said}"):
        read_axis("--lengths", "lengths", str(path))


@pytest.mark.parametrize(
    "value",
    ["ragged", "ragged:x", "trace", "trace-mean:x", "trace-least:1", "Even", "", 5, True, None],
)
def test_what_is_neither_a_word_nor_a_file_is_refused(value):
    with pytest.raises(BadArgument, match="--lengths") as caught:
        read_axis("--lengths", "lengths", value)
    assert "even, ragged:SEED" in caught.value.hint and "trace:SEED" in caught.value.hint


@pytest.mark.parametrize("lengths", ["ragged:", "listed:", "listed:1,,2", "listed:0", "x", "even "])
def test_a_record_with_other_lengths_is_refused(lengths):
    with pytest.raises(ValueError, match="lengths"):
        read(Shape, {"batch": 1, "q_heads": 8, "kv_heads": 2, "head_dim": 64, "context": 8,
                     "capacity": 8, "window": 0, "layers": 0, "lengths": lengths})  # fmt: skip


# ---- what they are -------------------------------------------------------------------------------


def test_lengths_are_drawn_from_one_to_the_context_and_the_first_is_the_longest():
    """By Python's generator, whose numbers do not change between versions."""
    shape = replace(SHAPE, batch=6, context=1000, capacity=1000, lengths="ragged:7")
    drawn = random.Random(7)
    assert shape.held == (1000, *(1 + int(1000 * drawn.random()) for _ in range(5)))
    assert shape.held == (1000, 324, 151, 651, 73, 536)
    many = replace(shape, batch=5000).held
    assert min(many) == 1 and max(many) == many[0] == 1000 and 480 < sum(many) / 5000 < 520
    assert replace(shape, lengths="ragged:8").held != shape.held
    assert replace(SHAPE, lengths="even").held == (4096, 4096, 4096)
    assert replace(SHAPE, lengths=TEXT).held == LENGTHS


def test_a_name_has_a_digest_of_a_file_s_lengths():
    point = replace(DECODE, shape=replace(SHAPE, lengths=TEXT))
    digest = hashlib.sha256(b"300,17,4096").hexdigest()[:12]
    assert f".layers0.lengthslisted:{digest}/" in point.name
    assert facts(point)["lengths"] == lengths_word(TEXT) == f"listed:{digest}"
    ragged = replace(DECODE, shape=replace(SHAPE, lengths="ragged:7"))
    assert ".layers0.lengthsragged:7/" in ragged.name
    assert "lengths" not in DECODE.name, "names of older runs stay"


# ---- points --------------------------------------------------------------------------------------


def test_points_of_several_lengths(sweep, listed):
    found = sweep(f'batch = 3\nlengths = ["even", "ragged:1", "{listed}"]')
    assert [p.shape.lengths for p in found.points] == ["even", "ragged:1", TEXT]
    assert not found.skips
    assert found.varying() == {"lengths": ("even", "ragged:1", TEXT)}


def test_what_is_even_is_no_second_point(sweep, tmp_path):
    (tmp_path / "alike").write_text("4096 4096")
    lengths = f'lengths = ["even", "ragged:1", "{tmp_path / "alike"}"]'
    assert [p.shape.lengths for p in sweep(f"batch = 2\n{lengths}").points] == ["even", "ragged:1"]
    (point,) = sweep('lengths = ["even", "ragged:1", "ragged:2"]').points
    assert point.shape.lengths == "even", "one sequence is as long as the context"
    for op in ("append", "bulk", "repack", "transpose", "logits"):
        (point,) = sweep(
            f'op = "{op}"\nbatch = 2\ncontext = 64\nlengths = ["even", "ragged:1"]'
        ).points
        assert point.shape.lengths == "even"


def test_lengths_that_do_not_fit_the_batch_are_left_out(sweep, listed):
    for axes, why in (
        ("batch = 2", "3 lengths are listed for a batch of 2: ask for batch 3"),
        (
            "batch = 3\ncontext = 4000",
            "a length of 4096 is more than the context 4000: ask for context 4096",
        ),
    ):
        (skip,) = sweep(f'{axes}\nlengths = "{listed}"').skips
        assert (skip.reason, skip.detail) == (INVALID, why)


@pytest.mark.parametrize("window", [0, 1000])
def test_bytes_that_are_walked_are_those_of_the_lengths(window):
    """In a slice with room for all: K and V with 64 elements of 2 bytes and two heads."""
    shape = replace(SHAPE, lengths=TEXT, window=window)
    point = replace(DECODE, shape=shape, pad=0)
    tokens = sum(min(window or held, held) for held in LENGTHS)
    found = needs(point, 1 << 30)
    assert found.slice_bytes == 3 * 4096 * 2 * 2 * 128
    assert found.slice_walked == tokens * 2 * 2 * 128
    assert found.slices == -(-(1 << 30) // found.slice_walked)
    whole = needs(replace(point, shape=replace(shape, lengths="even")), 1 << 30)
    assert whole.slice_bytes == found.slice_bytes and whole.slice_walked > found.slice_walked


# ---- of real requests ----------------------------------------------------------------------------

TABLE = tomllib.loads((ROOT / "suites/traces/azure-chat-2023.toml").read_text())["tokens"]
SEED = 25


def by_hand(batch):
    numbers = random.Random(SEED)
    return [TABLE[int(100 * numbers.random())] for _ in range(batch)]


def test_the_table_has_a_hundred_lengths_from_short_to_long():
    assert len(TABLE) == 100 and sorted(TABLE) == TABLE and TABLE[0] > 0


def test_a_draw_is_of_the_table_and_a_larger_batch_begins_with_it():
    assert drawn(SEED, 4) == (1167, 1648, 1473, 937) == tuple(by_hand(4))
    assert drawn(SEED, 16)[:4] == drawn(SEED, 4) and drawn(SEED + 1, 4) != drawn(SEED, 4)


def test_a_trace_is_listed_or_even_and_decides_the_context(sweep):
    """The mean of 1,167, 1,648, 1,473 and 937 tokens is 1,306.25."""
    kinds = ("trace", "trace-mean", "trace-longest")
    lengths = ", ".join(f'"{kind}:{SEED}"' for kind in kinds)
    found = sweep(f"batch = 4\ncontext = [64, 100000]\nlengths = [{lengths}]")
    shapes = [(p.shape.lengths, p.shape.context, p.shape.capacity) for p in found.points]
    assert shapes == [
        ("listed:1167,1648,1473,937", 1648, 1648),
        ("even", 1306, 1306),
        ("even", 1648, 1648),
    ]
    assert found.varying()["lengths"] == tuple(f"{kind}:{SEED}" for kind in kinds)


def test_a_mean_is_to_the_nearest_token(sweep):
    for batch in range(1, 17):
        (point,) = sweep(f'batch = {batch}\nlengths = "trace-mean:{SEED}"').points
        assert abs(point.shape.context - sum(by_hand(batch)) / batch) <= 0.5


def test_one_request_is_one_point(sweep):
    lengths = '["trace:25", "trace-mean:25", "trace-longest:25"]'
    (point,) = sweep(f"lengths = {lengths}").points
    assert (point.shape.lengths, point.shape.context) == ("even", by_hand(1)[0])


def test_real_requests_stand_beside_even_ones(sweep):
    """One set for each batch and layout: even with as many tokens, the real lengths, and padded."""
    lengths = '["trace:25", "trace-mean:25", "trace-longest:25"]'
    found = sweep(f'batch = [1, 4, 16]\nlayout = ["head", "paged"]\nlengths = {lengths}')
    sets = [each for each in found.plan.points if isinstance(each, Contrast)]
    sets = [each.points for each in sets if each.factor == "lengths"]
    assert sorted((p[0].shape.batch, p[0].layout) for p in sets) == [
        (4, "head"), (4, "paged"), (16, "head"), (16, "paged"),
    ]  # fmt: skip
    for points in sets:
        held = by_hand(points[0].shape.batch)
        even, ragged, padded = (point.shape.held for point in points)
        assert ragged == tuple(held) and set(padded) == {max(held)}
        assert len(set(even)) == 1 and abs(sum(even) - sum(held)) <= len(held) / 2
        assert len({replace(point, shape=SHAPE) for point in points}) == 1


def test_contexts_alone_are_no_lengths(sweep):
    found = sweep('batch = 8\ncontext = [512, 1024, 2048]\nlengths = ["even", "ragged:1"]')
    sets = [each for each in found.plan.points if isinstance(each, Contrast)]
    pairs = [
        sorted((p.shape.context, p.shape.lengths) for p in each.points)
        for each in sets
        if each.factor == "lengths"
    ]
    assert pairs == [[(context, "even"), (context, "ragged:1")] for context in (512, 1024, 2048)]

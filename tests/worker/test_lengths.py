"""Sequences of several lengths on the bench: each attends to its own tokens. Answers equal float64
NumPy on these tokens.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from kvbench.errors import WrongAnswer
from kvbench.native import default_library
from kvbench.worker.answers import Answers
from tests.cli.test_cli import call
from tests.cli.test_profile import SHORT, SMALL
from tests.made_job import bench
from tests.worker.test_bench import DECODE, SHAPE

LIBRARY = default_library()
LENGTHS = (9, 40, 1)
RAGGED = replace(
    DECODE, shape=replace(SHAPE, batch=3, lengths=f"listed:{','.join(map(str, LENGTHS))}")
)


def by_hand(k, v, q):
    """Attention over all rows of one sequence: [heads][dim]."""
    group = len(q) // k.shape[1]
    found = []
    for head, query in enumerate(q.astype(float)):
        own_k, own_v = k[:, head // group].astype(float), v[:, head // group].astype(float)
        weights = np.exp(own_k @ query / np.sqrt(len(query)))
        found.append(weights @ own_v / weights.sum())
    return np.array(found)


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        (layout, dtype)
        for layout in LIBRARY.words("layout")
        for dtype in ("f32", "f16", "i8")
        if dtype in LIBRARY.dtypes(layout)
    ],
)
def test_each_sequence_attends_to_its_own_tokens(layout, dtype):
    order = 1 if layout == "paged" else None
    with bench(replace(RAGGED, layout=layout, dtype=dtype, order=order)) as found:
        assert found.verify() < 1e-4
        cache, right = found.room.caches[0], found.queries.right()
        assert tuple(cache.lengths) == LENGTHS
        k, v = cache.numpy()
        for sequence, held in enumerate(LENGTHS):
            want = by_hand(k[sequence, :held], v[sequence, :held], found.queries.asked[sequence])
            assert np.abs(right.out[sequence] - want).max() < 1e-9


@pytest.mark.parametrize("window", [0, 16])
def test_traffic_is_of_the_tokens_attended_to(window):
    """K and V of two heads of 32 elements of 2 bytes; and queries and answers."""
    with bench(replace(RAGGED, shape=replace(RAGGED.shape, window=window))) as found:
        tokens = sum(min(window or held, held) for held in LENGTHS)
        moved = found.own.traffic()
        assert moved.bytes_kv == tokens * 2 * 2 * 32 * 2
        assert moved.bytes_compulsory == moved.bytes_kv + 2 * 3 * 4 * 32 * 4
        assert found.plainest.traffic().bytes_kv == moved.bytes_kv
        assert found.window[0] <= 40 and found.room.needs.slice_walked < found.room.slice_bytes
        samples, error = found.measured(found.programs, 2, 1e-4)
        assert error < 1e-5 and {"core", "twin"} <= {sample.program for sample in samples}


def test_an_answer_over_the_longest_sequence_s_tokens_is_wrong():
    """Like a kernel that pads, and attends to rows without a token."""
    with bench(RAGGED) as found:
        found.queries.right()
        for cache in found.room.caches:
            cache.lengths[:] = 40
        with pytest.raises(WrongAnswer, match="off by"):
            found.verify()


def test_answers_of_other_lengths_are_not_taken(tmp_path):
    answers = Answers(str(tmp_path))
    other = replace(RAGGED.shape, lengths="listed:40,9,1")
    with bench(RAGGED) as found:
        own = answers.of(RAGGED, found.room.caches[0], found.queries.asked)
        found.room.caches[0].lengths[:] = (40, 9, 1)
        changed = answers.of(
            replace(RAGGED, shape=other), found.room.caches[0], found.queries.asked
        )
    assert not np.array_equal(own.out, changed.out)


def test_the_profile_of_a_file_s_lengths(tmp_path, capsys):
    (tmp_path / "users").write_text("96\n7, 30")
    asked = [*SMALL, *SHORT]
    named = ["--lengths", str(tmp_path / "users")]
    assert call("profile", "decode", *asked, *named, "--batch", "3", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["point"]["shape"]["lengths"] == "listed:96,7,30"
    assert facts["bytes_kv"] == (96 + 7 + 30) * 2 * 2 * 32 * 2
    assert call("profile", "decode", *asked, *named, "--batch", "3") == 0
    assert "  3 sequences of 133 tokens (listed:" in capsys.readouterr().out
    assert call("profile", "decode", *asked, *named) == 2
    assert "3 lengths are listed for a batch of 1: ask for batch 3" in capsys.readouterr().err

"""Two builds in one process share nothing."""

import shutil

import numpy as np

from tests import cases, trial
from tests.raw import Bound, Raw, decode_args


def test_side_by_side(bench, raw, tmp_path):
    copy = Raw(shutil.copy(raw.path, tmp_path / "other.so"))
    other = trial.Bench(copy)
    for index in range(25):
        case = cases.make(bench.words, 31, index)
        for each in (bench, other, bench):
            assert trial.failures(each, case, raw.tiers()) == []
    other.close()


def test_messages_are_their_own(raw, tmp_path):
    copy = Raw(shutil.copy(raw.path, tmp_path / "other.so"))
    assert copy.lib.kvb_reset != raw.lib.kvb_reset
    assert raw.lib.kvb_team_open(raw.ffi.NULL, 0, raw.ffi.new("kvb_team **")) != 0
    assert copy.lib.kvb_reset(copy.ffi.NULL) != 0
    assert "threads" in raw.message() and "cache" in copy.message()


def test_one_cache_two_libraries(bench, raw, tmp_path):
    """The gate's way: base and head decode the same buffers."""
    other = trial.Bench(Raw(shutil.copy(raw.path, tmp_path / "other.so")))
    case = cases.make(bench.words, 32, 0)
    outs = []
    with Bound(raw, case.shape, case.lengths, case.table) as bound:
        bound.put(case.planes)
        for each in (bench, other):
            out = np.empty_like(case.q)
            args = decode_args(each.raw, bound, case.q, out, raw.tiers()[-1], window=case.window)
            each.team(2).do("decode", args)
            outs.append(out.tobytes())
    assert outs[0] == outs[1]
    other.close()

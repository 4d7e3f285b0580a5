"""What points say of models: rates and contexts worked out by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kvbench.analysis.limits.frames import points
from kvbench.analysis.means.models import FITS, NOT_TESTED, TOKENS, Geometry, Note, fits, tokens
from kvbench.analysis.measured.columns import short_names
from tests.made_run import DECODE, MACHINE, MIB, STORE, failed, probe, traffic, visit

SMALL = Geometry("small", 24, 8, 2, 64, 4096)
TWIN = replace(SMALL, name="another small", max_context=1024)
DEEP = replace(SMALL, name="deep", layers=48)
WIDE = replace(SMALL, name="wide", kv_heads=8)
# of 24 layers, 4 attend to everything
SLIDING = replace(SMALL, name="sliding", window=256, window_every=6)
BLIND = replace(SMALL, name="blind", window=256)

KV = 2 * 2 * 64 * 2  # bytes of a token: K and V of two heads of 64 f16 elements
BESIDE = 2 * 8 * 64 * 4  # queries and outputs of eight heads, in f32


def at(context, point=DECODE, **changes):
    return replace(point, shape=replace(point.shape, context=context, capacity=context, **changes))


def timed(point, seconds, launch=0):
    """From memory: 16 slices of 16 MiB. The rates do not matter here, the seconds do."""
    return visit(launch, {"point": [16 * MIB / seconds / 1e9]}, point)


def table(records):
    found = points(records, MACHINE)
    return found.assign(short=short_names(found))


def rates(records, *models):
    return tokens(table(records), models)


# ---- tokens per second ---------------------------------------------------------------------------


def test_a_step_walks_all_layers():
    """1 ms a layer: 24 layers are 24 ms, 48 are 48; the slowest and the fastest launch enclose
    it.
    """
    records = [timed(DECODE, seconds, n) for n, seconds in enumerate((0.001, 0.0008, 0.0012))]
    found = rates(records, SMALL, DEEP, WIDE)
    assert list(found["model"]) == ["small", "deep"] and list(found["layers"]) == [24, 48]
    assert list(found["tokens_per_second"]) == pytest.approx([1 / 0.024, 1 / 0.048])
    assert list(found["tokens_per_second_low"]) == pytest.approx([1 / 0.0288, 1 / 0.0576])
    assert list(found["tokens_per_second_high"]) == pytest.approx([1 / 0.0192, 1 / 0.0384])
    assert list(found["residency"]) == ["rotate"] * 2 and list(found["name"]) == [DECODE.name] * 2
    assert list(found["note"]) == ["", ""]


def test_models_of_one_shape_share_a_row_as_far_as_they_go():
    found = rates([timed(at(1024), 0.001), timed(at(2048), 0.002)], SMALL, TWIN)
    assert found[["context", "model", "note"]].to_dict("split")["data"] == [
        [1024, "another small, small", ""],
        [2048, "small", ""],
        [2048, "another small", Note.BEYOND],
    ]
    assert rates([timed(at(8192), 0.001)], SMALL)["note"][0] == Note.BEYOND


def test_every_sequence_of_a_batch_gets_a_token():
    assert rates([timed(at(1024, batch=4), 0.002)], SMALL)["tokens_per_second"][0] == pytest.approx(
        4 / 0.048
    )


def test_layers_with_a_window_are_timed_with_one():
    """4 layers at 1 ms and 20 at 0.3 ms are 10 ms; without a layer that attends to everything, 24
    at 0.3 ms.
    """
    records = [timed(at(1024), 0.001), timed(at(1024, window=256), 0.0003)]
    found = rates(records, SLIDING, BLIND).set_index("model")
    assert found["tokens_per_second"]["sliding"] == pytest.approx(1 / 0.010)
    assert found["tokens_per_second"]["blind"] == pytest.approx(1 / 0.0072)
    assert (
        found["name"]["sliding"] == at(1024).name
        and found["name"]["blind"] == at(1024, window=256).name
    )


def test_without_a_point_of_that_window_there_is_no_number():
    (row,) = rates([timed(at(1024), 0.001)], SLIDING).to_dict("records")
    assert np.isnan(row["tokens_per_second"])
    assert (row["note"], row["lacks"]) == (Note.LACKING, 256)
    (row,) = rates([timed(at(1024, window=256), 0.001)], SLIDING).to_dict("records")
    assert (row["note"], row["lacks"]) == (Note.LACKING, 0)


def test_what_caches_serve_says_nothing_of_a_model():
    hot = visit(0, {"point": [9.0]}, replace(DECODE, residency="hot"), walked=MIB, layers=1)
    found = rates([hot, visit(0, {"point": [9.0]}, STORE), probe(0, 20.0)], SMALL)
    assert found.empty and list(found.columns) == list(TOKENS)


# ---- what fits L3 --------------------------------------------------------------------------------


def slice_of(context, rate=50.0, launch=0, of=KV, **changes):
    """One slice again and again: as many bytes as this context has."""
    point = replace(at(context), residency="hot", **changes)
    moved = float(of * context + BESIDE)
    rates = {"point": [rate], "core": [90.0], "slice": [60.0], "memory": [20.0]}
    record = visit(launch, rates, point, walked=moved, layers=1)
    return replace(
        record, traffic=record.traffic | {"point": replace(traffic(moved), bytes_kv=of * context)}
    )


def fit(records, *models, machine=MACHINE):
    cpus = {record.point.name: record.point.cpus for record in records}
    return fits(table(records), machine, models, cpus)


def test_contexts_of_a_layer_in_l3():
    """2 threads, 1 MiB of L2 each, 32 MiB of L3: from 2 x 1.5 MiB to 0.7 x 32 MiB, at 512 bytes a
    token.
    """
    (row,) = fit([slice_of(1024)], replace(SMALL, max_context=10**6)).to_dict("records")
    assert row["bytes_per_token"] == pytest.approx(KV)
    assert (row["l3_low_context"], row["l3_high_context"]) == (
        3 * MIB // KV,
        int(0.7 * 32 * MIB / KV),
    )
    assert (row["dtype"], row["threads"], row["cpus"]) == ("f16", 2, "0-1")
    assert (row["l3"], row["example"]) == (NOT_TESTED, "")


def test_the_verdict_is_that_of_most_points_in_l3():
    """12,288 tokens are 6 MiB. Seven launches beside reads of memory at 20 GB/s: 50 are faster, 10
    are not.
    """
    rated = {8192: 50.0, 12288: 60.0, 16384: 10.0}
    records = [slice_of(context, rate, n) for context, rate in rated.items() for n in range(7)]
    (row,) = fit(records, replace(SMALL, max_context=16384)).to_dict("records")
    assert (row["l3"], row["example"]) == ("confirmed", "head f16 t=12288")
    assert "the decode at 3.00 times" in row["reason"] and row["reason"].endswith("; 1 refuted")


def test_where_l3_never_feeds_a_thread_it_is_said():
    large = tuple(
        replace(cache, size=24 * MIB) if cache.level == 2 else cache for cache in MACHINE.caches
    )
    (row,) = fit([slice_of(1024)], SMALL, machine=replace(MACHINE, caches=large)).to_dict("records")
    assert "not testable at 2 threads" in row["reason"] and pd.isna(row["l3_high_context"])
    (row,) = fit([slice_of(1024)], SMALL, machine=replace(MACHINE, caches=())).to_dict("records")
    assert row["reason"] == "not testable: no L3 is known for these CPUs"


@pytest.mark.parametrize(
    "records", [[], [probe(0, 20.0)], [failed(0)], [visit(0, {"point": [9.0]}, STORE)]]
)
def test_nothing_measured_is_an_empty_table(records):
    assert fit(records, SMALL).empty and list(fit(records, SMALL).columns) == list(FITS)
    assert rates(records, SMALL).empty and fit([slice_of(1024)]).empty

"""What points mean for models: rates and contexts computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.limits.frames import points
from kvbench.analysis.means.models import TOKENS, Geometry, Note, tokens
from kvbench.analysis.measured.columns import short_names
from tests.made_run import DECODE, MACHINE, MIB, STORE, failed, probe, visit

SMALL = Geometry("small", 24, 8, 2, 64, 4096)
TWIN = replace(SMALL, name="another small", max_context=1024)
DEEP = replace(SMALL, name="deep", layers=48)
WIDE = replace(SMALL, name="wide", kv_heads=8)
# of 24 layers, 4 attend to everything
SLIDING = replace(SMALL, name="sliding", window=256, window_every=6)
BLIND = replace(SMALL, name="blind", window=256)


def at(context, point=DECODE, **changes):
    return replace(point, shape=replace(point.shape, context=context, capacity=context, **changes))


def timed(point, seconds, launch=0):
    """A point from memory: 16 slices of 16 MiB. Only the seconds matter here."""
    return visit(launch, {"point": [16 * MIB / seconds / 1e9]}, point)


def table(records):
    found = points(records, MACHINE)
    return found.assign(short=short_names(found))


def rates(records, *models):
    return tokens(table(records), models)


# ---- tokens per second ---------------------------------------------------------------------------


def test_a_step_walks_all_layers():
    """1 ms per layer: 24 ms for 24 layers, 48 ms for 48. The slowest and the fastest launch are the
    interval.
    """
    records = [timed(DECODE, seconds, n) for n, seconds in enumerate((0.001, 0.0008, 0.0012))]
    found = rates(records, SMALL, DEEP, WIDE)
    assert list(found["model"]) == ["small", "deep"] and list(found["layers"]) == [24, 48]
    assert list(found["tokens_per_second"]) == pytest.approx([1 / 0.024, 1 / 0.048])
    assert list(found["tokens_per_second_low"]) == pytest.approx([1 / 0.0288, 1 / 0.0576])
    assert list(found["tokens_per_second_high"]) == pytest.approx([1 / 0.0192, 1 / 0.0384])
    assert list(found["residency"]) == ["rotate"] * 2 and list(found["name"]) == [DECODE.name] * 2
    assert list(found["note"]) == ["", ""]


def test_a_model_has_its_own_sinks_and_cap():
    """If the run has only plain points, these stand for the model, as in older runs."""
    capped = replace(SMALL, name="capped", softcap=50.0, sinks="heads")
    plain, own = timed(DECODE, 0.001), timed(at(1024, softcap=50.0, sinks="heads"), 0.002)
    found = rates([plain, own], SMALL, capped)
    both = dict(zip(found["model"], found["tokens_per_second"], strict=True))
    assert both == pytest.approx({"small": 1 / 0.024, "capped": 1 / 0.048})
    assert list(rates([plain], SMALL, capped)["model"]) == ["capped, small"]
    assert list(rates([own], SMALL)["model"]) == []
    assert list(rates([timed(at(1024, alibi=8.0), 0.001)], SMALL)["model"]) == []


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
    """4 layers at 1 ms and 20 at 0.3 ms take 10 ms; without layers that attend to everything, 24 at
    0.3 ms.
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


@pytest.mark.parametrize(
    "records", [[], [probe(0, 20.0)], [failed(0)], [visit(0, {"point": [9.0]}, STORE)]]
)
def test_nothing_measured_is_an_empty_table(records):
    assert rates(records, SMALL).empty

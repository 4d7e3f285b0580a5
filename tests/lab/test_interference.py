"""Weights between layers: which slices take turns, sentences of planted rates, one small real run."""

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kvbench.errors import Refused
from kvbench.lab.experiment import Setup
from kvbench.lab.experiments import interference as lab
from kvbench.model import Cpu, DataCache, Fact, Machine
from kvbench.native import default_library
from tests.made_run import MACHINE

KIB, MIB = 1 << 10, 1 << 20
WEIGHTS = (0, MIB, 4 * MIB, 16 * MIB)


def setup(machine, cpus, tmp_path="."):
    library = default_library()
    return Setup(machine, library, cpus, library.isa(), 1, tmp_path)


def scene(cpus=(0, 1), machine=MACHINE):
    return lab._scene(setup(machine, cpus), "qwen3-0.6b", "f32")


# ---- which slices ----------------------------------------------------------------------------------------------------


def test_slices_live_in_l3():
    """Two threads with 1 MiB of L2 each: a slice is beyond 1.5 times that; all that take turns within 0.7 x 32 MiB."""
    found = scene()
    assert 3 * MIB <= found.slice_bytes < 3.1 * MIB
    assert found.layers == 7 and found.layers * found.slice_bytes <= 0.7 * 32 * MIB
    assert found.rotations() == {"one": 1, "all": 7, "memory": found.point.shape.layers - 7}
    assert found.rotations()["memory"] * found.slice_bytes >= 256 * MIB
    assert found.point.shape.context * 8 * 128 * 4 * 2 <= found.slice_bytes


def test_no_slice_from_memory_is_one_that_fits():
    found = scene((0,))
    assert found.rotations() == {"one": 1, "some": 3, "all": 14, "memory": found.point.shape.layers - 14}
    assert set(found.slices("one")) == {0} and len(found.slices("one")) == 14
    assert found.slices("some") == [0, 1, 2] * 5
    assert found.slices("all") == list(range(14))
    assert found.slices("memory") == range(14, found.point.shape.layers)


def test_no_more_layers_than_the_model_has():
    caches = tuple(replace(each, size=400 * MIB) if each.level == 3 else each for each in MACHINE.caches)
    assert scene(machine=replace(MACHINE, caches=caches)).layers == 28


@pytest.mark.parametrize(
    ("caches", "message"),
    [
        ((), "no L3 is known"),
        (tuple(each for each in MACHINE.caches if each.level < 3), "no L3 is known"),
        (tuple(replace(each, size=4 * MIB) if each.level == 3 else each for each in MACHINE.caches), "at 2 threads"),
    ],
)
def test_refused_where_no_slice_lives_in_l3(caches, message):
    with pytest.raises(Refused, match=message) as caught:
        scene(machine=replace(MACHINE, caches=caches))
    assert caught.value.hint


def test_weights_of_a_layer():
    """q and out 1024 x 2048, k and v 1024 x 1024, and three matrices of 1024 x 3072."""
    matrices = [(1024, 2048), (2048, 1024), (1024, 1024), (1024, 1024), *[(1024, 3072)] * 3]
    assert lab._layer_parameters("qwen3-0.6b") == sum(rows * columns for rows, columns in matrices)


# ---- what is said ----------------------------------------------------------------------------------------------------


def planted(one, every, memory=20.0, spread=0.01, rounds=17):
    """`one`, `every`: GB/s by bytes between; the rounds differ by a common factor, and by `spread` among themselves."""
    draw, rows = np.random.default_rng(1), []
    for number in range(rounds):
        for rotation, rates in {"one": one, "all": every, "memory": [memory] * len(WEIGHTS)}.items():
            for count, rate in zip(WEIGHTS, rates, strict=True):
                gbps = rate * (1 + number / 10) * (1 + spread * draw.uniform(-1, 1))
                rows.append(
                    {"rotation": rotation, "weights": count, "round": number, "gbps": gbps, "weights_gbps": 9.0}
                )
    return lab._table(pd.DataFrame(rows), scene())


def said(*rates, served=4 * MIB, **more):
    return lab._sentence(planted(*rates, **more), "qwen3-0.6b", served)


def test_rates_are_compared_within_a_round():
    found = planted([60, 60, 50, 20], [40, 30, 20, 20], spread=0.0).set_index(["rotation", "weights"])
    assert found.loc[("one", MIB), ["over", "over_low", "over_high"]].tolist() == pytest.approx([3.0] * 3)
    assert found.loc[("all", 4 * MIB), "over"] == pytest.approx(1.0)
    assert found.loc[("one", 0), "gbps"] == pytest.approx(60 * 1.8)
    assert found["over"].isna().sum() == len(WEIGHTS)


def test_gone_from_some_weights_on():
    text = said([60, 60, 50, 20], [40, 30, 20, 19], spread=0.0)
    assert "weights read between leave 1 slice with 2.50 times memory's rate (2.50..2.50)" in text
    assert "at 4 MiB of them and with nothing beyond noise from 16 MiB on" in text
    assert "7 in turn (21" in text and "at 1 MiB of them and with nothing beyond noise from 4 MiB on" in text
    assert "; the 4 MiB of a layer of qwen3-0.6b leave 7 in turn" in text and "at 1.00 times memory's rate" in text


@pytest.mark.parametrize(
    ("rates", "facts", "words"),
    [
        (([60, 60, 50, 20], [40, 20, 20, 20]), {}, "where there are none and with nothing beyond noise from 1 MiB on"),
        (([60, 60, 50, 20], [20] * 4), {}, "MiB) with nothing beyond noise, even where there are none;"),
        (([60, 60, 50, 20], [15] * 4), {}, "MiB) with nothing beyond noise, even where there are none;"),
        (([60, 60, 50, 40], [40, 40, 40, 30]), {}, "even at 16 MiB of them, the most that was tried"),
        (([20] * 4, [20] * 4), {}, "no more than noise apart, so that L3 brings nothing"),
        (([15] * 4, [15] * 4), {"spread": 0.001}, ": slower, beyond noise: 0.75 times memory's rate (0.7"),
        (([20.5] * 4, [20] * 4), {"spread": 0.5}, "no more than noise apart"),
    ],
)
def test_where_the_advantage_ends(rates, facts, words):
    text = said(*rates, **facts)
    assert words in text
    assert ("nothing" in text) is ("most that was tried" not in words) and ("noise apart" in text) is ("apart" in words)


# ---- a real one ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small():
    """One thread of this machine, with caches that are made up."""
    cpu = min(os.sched_getaffinity(0))
    caches = (DataCache(1, 32 * KIB, (cpu,)), DataCache(2, 256 * KIB, (cpu,)), DataCache(3, 8 * MIB, (cpu,)))
    doubt = {"l3": Fact(8 * MIB, "made up", "low", "nobody knows")}
    return Machine((Cpu(cpu, cpu, 0, 0, 0),), (cpu,), caches, (), doubt, (), "", "")


def test_the_experiment(small, monkeypatch, tmp_path):
    """A layer's weights of this model are more than the memory that they are read from: it is read twice."""
    monkeypatch.setattr(lab, "_ROUNDS", 2)
    monkeypatch.setattr(lab, "_TIMED", 2)
    monkeypatch.setattr(lab, "_WEIGHTS", (0, MIB))
    served = 2 * lab._layer_parameters("llama-3-8b")
    assert served > 256 * MIB
    found = lab.experiment(setup(small, small.allowed, tmp_path), "llama-3-8b", "f16")
    table = found.table
    assert set(table["rotation"]) == {"one", "some", "all", "memory"} and set(table["weights"]) == {0, MIB, served}
    assert (table["gbps"] > 0).all() and (table.loc[table["weights"] > 0, "weights_gbps"] > 0).all()
    assert table["over"].notna().sum() == 3 * 3
    assert any("L3 is in doubt: nobody knows" in note for note in found.notes)
    assert not any("nan" in text for text in (found.sentence, *found.notes))
    assert {column.name for column in found.columns} <= set(table)


def test_fewer_rounds_where_one_takes_long(small, monkeypatch, tmp_path):
    monkeypatch.setattr(lab, "_ROUNDS", 3)
    monkeypatch.setattr(lab, "_TIMED", 2)
    monkeypatch.setattr(lab, "_WEIGHTS", (0,))
    monkeypatch.setattr(lab, "_LEAST", 2)
    monkeypatch.setattr(lab, "_SECONDS", 0.0)
    notes = lab.experiment(setup(small, small.allowed, tmp_path), "qwen3-0.6b", "f16").notes
    assert any("intervals over 2 rounds" in note for note in notes)
    assert any(note.startswith("2 rounds in place of 3: one takes too long") for note in notes)


def test_memory_is_looked_for_first(small, monkeypatch):
    monkeypatch.setattr("kvbench.lab.experiment.available_memory", lambda: 300 * MIB)
    monkeypatch.setattr(lab, "Ground", lambda *_: pytest.fail("it was measured"))
    with pytest.raises(Refused, match="of memory, 300 MiB are free") as caught:
        lab.experiment(setup(small, small.allowed))
    assert "--model" in caught.value.hint

"""kvbench explain --engine: predictions of a planted run, by hand; and the program that writes a
model and runs an engine on it.
"""

import importlib.util
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from kvbench.analysis.measured.machines import profile
from kvbench.checkpoint import find
from kvbench.model import Sample
from kvbench.model.explained import Attention
from kvbench.sizing.engine import Timed, between, line
from kvbench.sizing.known import known
from kvbench.store import plain
from results import engine
from tests.cli.test_cli import output_of, refused
from tests.made_run import DECODE, GIGA, MACHINE, READ, probe, traffic, visit
from tests.raw import ROOT
from tests.report.made import directory

SIZES = engine.Sizes(2, 256, 512, 4, 2, 64, 16384)
READS = 20.0  # GB/s of memory
START, EACH = 100e-6, 1e-6  # seconds of a layer of the file, and of it for each token
NORMS, MATRICES = (2 * 2 + 1) * 256, 2 * (256 * (256 + 128 + 128 + 256) + 3 * 256 * 512)
WEIGHTS = 4 * NORMS + 2 * MATRICES + 2 * 259 * 256  # bytes: with the logits', and no embedding
EMBEDDED = 2 * 256  # of one token


def timed(launch, context, dtype="f16", start=START, each=EACH, v_dtype="", **shape):
    """A visit of ggml with a cache by positions."""
    heads = {"q_heads": 4, "kv_heads": 2, "head_dim": 64} | shape
    shape = replace(DECODE.shape, context=context, capacity=context, **heads)
    point = replace(DECODE, engine="ggml", layout="position", dtype=dtype, shape=shape)
    point = replace(point, v_dtype=v_dtype)
    seconds = start + each * context
    samples = tuple(Sample("point", n, 1, seconds, (), 0.0, 0, 0) for n in range(3))
    moved = {"point": traffic(2.0 * shape.kv_heads * context * 64 * 2)}
    found = visit(launch, {"point": [1.0]}, point, layers=64)
    return replace(found, samples=samples, traffic=moved)


def ours(launch, context, dtype="f16"):
    shape = replace(DECODE.shape, context=context, capacity=context)
    return visit(launch, {"point": [10.0]}, replace(DECODE, shape=shape, dtype=dtype))


def run(path, *visits, contexts=(512, 2048, 8192)):
    """Two launches: of ours, of reads of memory, and of the visits."""
    records = []
    for launch in range(2):
        records += [visit(launch) for visit in visits] + [ours(launch, c) for c in contexts]
        records.append(replace(probe(launch, READS, READ), steps=1))
    points = list(dict.fromkeys(record.point for record in records))
    directory(path, records, points, launches=2)
    (path / "machine.json").write_text(json.dumps(plain(profile(MACHINE, (), records))))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    engine.write(path, SIZES)
    return path


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """f16 as planted; q8_0 of twice as many KV heads, and half as fast."""
    visits = [lambda launch, c=c: timed(launch, c) for c in (512, 2048, 8192)]
    wide = dict(dtype="q8_0", start=2 * START, each=4 * EACH, q_heads=8, kv_heads=4)
    visits += [lambda launch, c=c: timed(launch, c, **wide) for c in (512, 8192)]
    return run(tmp_path_factory.mktemp("planted") / "run", *visits)


def predicted(capsys, model, run, *options):
    text = output_of(
        capsys, "explain", model, "--machine", run, "--engine", "ggml", "--json", *options
    )
    return json.loads(text)["engine"]


def step(context, start=START, each=EACH):
    return (WEIGHTS + EMBEDDED) / (READS * GIGA) + SIZES.layers * (start + each * context)


def test_the_file_is_a_llama(model):
    name, found, why = find(str(model))
    assert (name, why, found.max_context) == ("tiny", "", 16384)
    assert (found.layers, found.q_heads, found.kv_heads, found.head_dim) == (2, 4, 2, 64)
    assert found.weights.read(1) == WEIGHTS + EMBEDDED


def test_the_kept_shapes_are_those_of_the_file_that_is_written():
    """results/engine-at-8k.md explains them in the place of the file. There, norms are f32."""
    _, found, why = find(str(ROOT / "results" / "zen4-kvm-2" / "llama-4-layers"))
    sizes, shapes = engine.Sizes(), engine.Sizes().tensors()
    heads = (found.layers, found.q_heads, found.kv_heads, found.head_dim, found.max_context)
    assert heads == (4, sizes.q_heads, sizes.kv_heads, sizes.head_dim, sizes.context) and not why
    stored = 2 * sum(math.prod(shape) for shape in shapes.values())
    table = 2 * math.prod(shapes["token_embd.weight"])
    assert found.weights.read(1) == stored - table + 2 * sizes.hidden


def test_a_prediction_is_weights_and_attention(model, planted, capsys):
    found = predicted(capsys, model, planted, "--context", "0,1k,2k,16k", "--dtype", "f16")
    (own,) = found["attention"]
    assert own["contexts"] == [512, 2048, 8192] and own["scale"] == 1
    assert own["seconds"] == pytest.approx([START + EACH * t for t in own["contexts"]])
    assert (own["start"], own["slope"]) == pytest.approx((START, 1000 * EACH))
    assert own["off"] < 1e-6
    rows = found["rows"]
    assert [row["context"] for row in rows] == [0, 1024, 2048, 16384]
    for row in rows:
        assert row["tokens"] == pytest.approx(1 / step(row["context"]))
        assert row["outside"] == (row["context"] in (0, 16384)) and row["held"] is None


def test_a_pair_is_another_cache(model, tmp_path, capsys):
    """Its points with slopes stand for nothing."""
    pair = dict(dtype="q8_0", v_dtype="q4_0")
    visits = [lambda launch, c=c: timed(launch, c, **pair, each=3 * EACH) for c in (512, 8192)]
    visits += [lambda launch: timed(launch, 2048, **pair, each=9 * EACH, alibi=8.0)]
    planted = run(tmp_path / "run", *visits)
    assert set(known(planted).peers["dtype"]) == {"q8_0+q4_0"}
    found = predicted(capsys, model, planted, "--dtype", "q8_0+q4_0")
    assert [row["context"] for row in found["rows"]] == [512, 8192]
    for row in found["rows"]:
        assert row["tokens"] == pytest.approx(1 / step(row["context"], START, 3 * EACH))


def test_other_heads_count_by_their_bytes(model, planted, capsys):
    """Twice the KV heads were timed: a layer of the file has half the bytes."""
    found = predicted(capsys, model, planted, "--dtype", "q8_0")
    assert found["attention"][0]["heads"] == [8, 4, 64]
    assert found["attention"][0]["scale"] == pytest.approx(0.5)
    assert [row["context"] for row in found["rows"]] == [512, 8192], "those that were timed"
    for row in found["rows"]:
        assert row["tokens"] == pytest.approx(1 / step(row["context"], START, 2 * EACH))


def measured(steps):
    return [word for t, s in steps.items() for word in ("--measured", f"{1 / s:.9f}@{t}")]


def test_what_is_missing(model, planted, capsys):
    """Steps that are longer by a half millisecond, wherever they are."""
    steps = {t: step(t) + 500e-6 for t in (512, 8192)}
    found = predicted(capsys, model, planted, "--dtype", "f16", *measured(steps))
    (apart,) = found["apart"]
    assert apart["stays"] == pytest.approx(500e-6, rel=1e-3) and abs(apart["grows"]) < 1e-8
    for row in found["rows"]:
        held, own = row["held"], steps[row["context"]]
        assert held["left"] == pytest.approx(500e-6, rel=1e-3)
        assert held["weights"] + held["attention"] + held["rest"] == pytest.approx(1)
        assert held["rest"] == pytest.approx(500e-6 / own, rel=1e-3)
        assert held["off"] == pytest.approx(own / step(row["context"]) - 1, rel=1e-3)
        assert held["far"] == (held["off"] > 0.15) and held["part"] == "other"
    assert [row["held"]["far"] for row in found["rows"]] == [True, False]


@pytest.mark.parametrize(
    ("longer", "word", "said"),
    [
        (lambda t: step(t) + t * EACH, "attention", "attention takes longer in a step than alone"),
        (lambda t: step(t) - t * EACH, "attention", "attention is faster in a step than alone"),
        (lambda t: step(t) - 220e-6, "other", "for example from L3"),
        (lambda t: step(t) + 5e-3, "other", "other operations, waiting"),
    ],
)
def test_which_part_is_off(longer, word, said, model, planted, capsys):
    options = "--dtype", "f16", *measured({t: longer(t) for t in (512, 4096, 8192)})
    found = predicted(capsys, model, planted, *options)
    far = [row["held"] for row in found["rows"] if row["held"]["far"]]
    assert far and {held["part"] for held in far} == {word}
    text = output_of(capsys, "explain", model, "--machine", planted, "--engine", "ggml", *options)
    assert said in " ".join(text.split())


def test_one_context_does_not_tell_them_apart(model, planted, capsys):
    options = "--dtype", "f16", *measured({2048: 2 * step(2048)})
    found = predicted(capsys, model, planted, *options)
    assert found["apart"] == [] and found["rows"][0]["held"]["part"] == ""
    page = output_of(
        capsys, "explain", model, "--machine", planted, "--engine", "ggml", "--markdown", *options
    )
    assert "measure at another context" in page and page.count("```") == 4


def test_times_lie_between_those_of_the_neighbours():
    contexts, seconds = [512, 2048, 8192], [1e-3, 2e-3, 9e-3]
    for context in (512, 700, 2048, 5000, 8192):
        assert between(context, contexts, seconds) == pytest.approx(
            np.interp(context, contexts, seconds)
        )
    assert between(14336, contexts, seconds) == pytest.approx(16e-3)
    assert between(0, contexts, seconds) == pytest.approx(1e-3 - 1e-3 / 3)
    assert between(256, contexts, [1e-3, 9e-3, 30e-3]) == pytest.approx(0.5e-3), "its share"
    assert between(90000, contexts, [9e-3, 8e-3, 7e-3]) == 7e-3, "not below the last"
    assert between(1024, [4096], [2.0]) == 0.5, "proportional"


def test_the_ends_lie_around_the_median_far_outside():
    """Lines through the ends alone would cross: at 131,072 tokens the low end is above the high."""
    ends = [1.1, 3.6, 12.0], [1.0, 3.0, 11.8], [1.2, 4.6, 12.2]
    own = Attention(
        "f16", "position", "thp", (512, 2048, 8192), (4, 2, 64), 1.0, tuple(ends[0]), 0, 1, 0
    )
    found = Timed(own, tuple(map(tuple, ends)))
    for context in (1, 511, 512, 1000, 8192, 8193, 131072):
        middle, low, high = found.of_a_layer(context)
        assert low < middle < high
    middle, low, high = found.of_a_layer(131072)
    assert (low / middle, high / middle) == pytest.approx((11.8 / 12, 12.2 / 12))


def test_a_line_of_one_context_goes_through_the_origin():
    assert line([4096], [2.0]) == pytest.approx((0.0, 2.0 / 4096))
    assert line([10, 20], [3.0, 5.0]) == pytest.approx((1.0, 0.2))
    assert line([10, 20], [1.0, 3.0])[0] == 0, "no time is below nothing"


BAD = [
    ("--context 1k", "--engine"),
    ("--measured 1@1k --measured 2@2k", "--engine"),
    ("--measured 1@0", "0 tokens"),
    ("--engine onnxruntime", "no decode of onnxruntime", "kvbench peers"),
    ("--engine ggml --dtype bf16", "no decode of ggml (bf16, position)"),
    ("--engine ggml --measured 5@1k", "f16, q8_0", "--dtype"),
    ("--engine ggml --context 32k", "32768", "16384"),
    ("--engine ggml --context much", "much", "0,2k,8k"),
    ("--engine ggml --users 2", "one sequence"),
]


@pytest.mark.parametrize("case", BAD, ids=[case[0] for case in BAD])
def test_nonsense(case, model, planted, capsys):
    refused(capsys, "explain", model, "--machine", planted, *case[0].split(), words=case[1:])


def test_it_needs_a_run(model, capsys):
    refused(capsys, "explain", model, "--engine", "ggml", words=("--machine",))


def test_the_engine_runs_the_file(model):
    if not importlib.util.find_spec("xllamacpp"):
        pytest.skip("xllamacpp is not installed")
    for dtype in ("f16", "q8_0"):
        found = engine.rates(model, dtype, (0, 64), threads=1, rounds=2)
        assert found.keys() == {0, 64}
        assert all(len(each) == 2 and min(each) > 0 for each in found.values())

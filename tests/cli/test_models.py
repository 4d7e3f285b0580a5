"""Commands that take a model take the same things: a name, a config.json or its folder, and a .gguf
file.
"""

import json

import pytest

import kvbench
from tests.checkpoint.made import KINDS, config, folder, gguf_file, shape
from tests.cli.test_cli import CPU, call, output_of
from tests.cli.test_exit_codes import BRIEF, played
from tests.sizing.calculator import Case

LAYERS, Q_HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 3, 6, 2, 32, 96
HEADS = {"q_heads": Q_HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM}
FORMS = ["config.json", "folder", "gguf"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One model in each form: name, config.json, folder and .gguf."""
    place = tmp_path_factory.mktemp("models")
    own = folder(
        place / "mine",
        config(**shape(LAYERS, Q_HEADS, KV_HEADS, HEAD_DIM, Q_HEADS * HEAD_DIM, 64, 1000)),
    )
    facts = {
        "block_count": LAYERS,
        "embedding_length": Q_HEADS * HEAD_DIM,
        "attention.head_count": Q_HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.key_length": HEAD_DIM,
        "attention.value_length": HEAD_DIM,
        "context_length": 131072,
    }
    tensors = {"token_embd.weight": ((1000, Q_HEADS * HEAD_DIM), KINDS.F16)}
    gguf = gguf_file(place / "mine.gguf", "llama", facts, tensors)
    return {"config.json": str(own / "config.json"), "folder": str(own), "gguf": str(gguf)}


@pytest.mark.parametrize("form", FORMS)
def test_size(files, form, capsys):
    found = json.loads(output_of(capsys, "size", files[form], "--context", CONTEXT, "--json"))
    assert found["bytes"] == Case(LAYERS, Q_HEADS, KV_HEADS, HEAD_DIM, CONTEXT).bytes()
    assert (
        json.loads(output_of(capsys, "size", files[form], "--json"))["decoder"]["context"] == 131072
    )


@pytest.mark.parametrize("form", FORMS)
def test_profile(files, form, capsys):
    asked = [
        "--model",
        files[form],
        "--context",
        CONTEXT,
        "--residency",
        "hot",
        "--cpus",
        CPU,
        "--threads",
        1,
    ]
    found = json.loads(output_of(capsys, "profile", "decode", *asked, *BRIEF.split(), "--json"))[
        "point"
    ]["shape"]
    assert {name: found[name] for name in HEADS} == HEADS and found["context"] == CONTEXT


def test_an_option_overrides_what_the_file_says(files, capsys):
    asked = [
        "--model",
        files["config.json"],
        "--q-heads",
        4,
        "--context",
        CONTEXT,
        "--residency",
        "hot",
    ]
    assert (
        json.loads(
            output_of(
                capsys,
                "profile",
                "decode",
                *asked,
                "--cpus",
                CPU,
                "--threads",
                1,
                *BRIEF.split(),
                "--json",
            )
        )["point"]["shape"]["q_heads"]
        == 4
    )


@pytest.mark.parametrize("form", FORMS)
def test_peers(files, form, tmp_path, monkeypatch):
    played(monkeypatch, tmp_path)
    asked = [
        "--model",
        files[form],
        "--context",
        "64",
        "--dtype",
        "f32",
        "--threads",
        "1",
        "--peers",
        "numpy",
    ]
    assert call("peers", *asked, "--launches", "1", "--out", tmp_path / "run") == 0
    points = kvbench.load(tmp_path / "run").points
    assert {tuple(row) for row in points[list(HEADS)].to_numpy().tolist()} == {
        tuple(HEADS.values())
    }


@pytest.mark.parametrize("form", FORMS)
def test_explain(files, form, capsys):
    assert json.loads(
        output_of(capsys, "explain", files[form], "--machine", "results/zen4-kvm-2/quick", "--json")
    )["lines"]


@pytest.mark.parametrize(
    "line", ["size --help", "profile --help", "explain --help", "peers --help"]
)
def test_help_says_what_they_take(line, capsys):
    call(*line.split())
    said = " ".join(capsys.readouterr().out.split())
    assert all(word in said for word in ("suites/models.toml", "config.json", "folder", ".gguf"))


def test_a_suite_that_nobody_names_is_quick(capsys):
    assert json.loads(output_of(capsys, "sweep", "--dry-run", "--json"))["suite"] == "quick"

"""kvbench size as it is called."""

import json
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from kvbench.cli._types import BYTES
from kvbench.native import default_library
from kvbench.report.figures.sizes import sizes
from kvbench.sizing.sized import sweep
from tests.cli.test_cli import errors_of, output_of, refused
from tests.sizing.calculator import Case
from tests.sizing.made import GIB, decoder, of_model, sized

RUN = Path(__file__).resolve().parents[2] / "results" / "zen3-kvm-2" / "quick"


def said(capsys, *arguments):
    return output_of(capsys, "size", *arguments)


def facts(capsys, *arguments):
    return json.loads(said(capsys, *arguments, "--json"))


def test_text(capsys):
    text = said(
        capsys,
        "qwen3-0.6b",
        "--context",
        "1024",
        "--dtype",
        "f32",
        "--users",
        "64",
        "--replicas",
        "2",
    )
    for part in (
        "2 (K, V) x 28 layers x 8 KV heads x 1,024 tokens x 128 elements x 4 bytes",
        "= 15,032,385,536 bytes (14 GiB): 15.0324 GB, 14 GiB",
        "229,376 bytes (224 KiB) in all layers",
        "536,870,912 bytes (512 MiB); its K or its V 268,435,456 bytes (256 MiB)",
        "2 G / b = 1 FLOP for each byte: G = 2 query heads per KV head, b = 4 bytes per element",
        "fleet: 64 users x 224 MiB = 15,032,385,536 bytes (14 GiB)",
        "2 replicas: 30,064,771,072 bytes (28 GiB)",
        (
            "64 sequences a step K and V alone unknown: nothing was measured: name a run with"
            " --machine"
        ),
    ):
        assert part in " ".join(text.split()), text
    assert max(map(len, text.splitlines())) <= 120
    marked = [line for line in text.splitlines() if "this model" in line]
    assert len(marked) == 1 and marked[0].split()[:2] == ["GQA", "8"]


def test_text_on_a_measured_machine(capsys):
    asked = (
        "gemma-3-4b --context 16384 --layout paged --dtype i8 --scale f16 --ephemeral 2 --weights"
        " 3GB --budget 40GiB"
    )
    arguments = [*asked.split(), "--machine", str(RUN), "--lengths", "uniform:1-8192"]
    text = said(capsys, *arguments)
    reads = [
        c
        for c in json.loads((RUN / "machine.json").read_text())["ceilings"]
        if c["op"] == "read" and c["threads"] == 2
    ]
    best = max(c["median"] for c in reads if c["level"] == "DRAM")
    streamed = 2 * 4 * 258 * (5 * 16384 + 27 * 1024)
    assert f"with the weights at most {best * 1e9 / (streamed + 3e9):,.4g} (" in " ".join(
        text.split()
    )
    for part in (
        "scales          +0.78125 % of the rows",
        "with window",
        "full windows grow no further",
        "ephemeral       0 bytes in 2 layers",
        "blocks          1,024 in a layer",
    ):
        assert part in text, text
    assert max(map(len, text.splitlines())) <= 120


def test_the_context_is_the_model_s_longest_by_default(capsys):
    found = facts(capsys, "llama-3-8b")
    assert found["decoder"]["context"] == 8192 and found["notes"] == []
    assert "8,192" in facts(capsys, "llama-3-8b", "--context", "8193")["notes"][0]


def test_a_geometry_of_one_s_own(capsys):
    own = "--layers 4 --q-heads 4 --kv-heads 4 --head-dim 16 --context 32 --dtype f32"
    assert facts(capsys, *own.split())["bytes"] == 64 << 10


def test_the_map(capsys):
    arguments = ["qwen3-0.6b", "--context", "1024", "--dtype", "f32", "--map"]
    assert "kv_cache" in said(capsys, *arguments)
    found = facts(capsys, *arguments)
    (cache,) = (each for each in found["map"]["buffers"] if each["name"] == "kv_cache")
    assert cache["size"] == found["bytes"] == 234_881_024
    assert "map" not in facts(capsys, *arguments[:-1])
    found = facts(capsys, *arguments, "--canaries", "--align", "4096")["map"]
    assert found["align"] == 4096 and all(each["canary"] >= 64 for each in found["buffers"])


ENCODER = (
    "--layers 4 --q-heads 4 --kv-heads 4 --head-dim 64 --context 32 --ephemeral 4 --budget 1GiB"
    " --lengths fixed:32"
)


def test_nothing_that_stays(capsys):
    text = said(capsys, *ENCODER.split())
    assert "no layer keeps K and V" in text and " 0 B are" not in text
    assert facts(capsys, *ENCODER.split())["fit"]["word"] == ""


def test_the_capacity_ends_a_sequence(capsys):
    asked = "llama-3-8b --context 4096 --capacity 5000 --budget 40GiB --lengths fixed:5000"
    text = " ".join(said(capsys, *asked.split()).split())
    assert (
        "40 GiB hold 5,000 tokens, the capacity, by the formula; 65 whole sequences of 4,096 as"
        " allocated" in text
    )
    assert "room for 5,000 tokens" in text


OVERRIDDEN = ["--kv-heads 16", "--layout paged", "--batch 2", "--window 512"]
REFUSED = [  # of llama-3-8b; then whole lines
    ("--head-dim 0", "--head-dim is 0"),
    ("--kv-heads 64", "cannot be shared evenly by 64"),
    ("--kv-heads 7", "cannot be shared evenly"),
    ("--q-heads 0", "--q-heads is 0"),
    ("--kv-heads -8", "--kv-heads is -8"),
    ("--layers -1", "--layers is -1"),
    ("--layers 0", "--layers is 0"),
    ("--context 0", "--context is 0"),
    ("--context -4", "--context is -4"),
    ("--context 99999999999999999999999999", "--context is"),
    ("--context 2147483647 --batch 1048576 --head-dim 32768", "head_dim is"),
    ("--context 2147483647 --batch 1048576", "overflows"),
    ("--context 2147483647 --batch 9999 --layers 2147483647 --head-dim 512", "the caches take"),
    ("--users 9999999999999999", "--users is 9999999999999999"),
    ("--batch 0", "--users is 0"),
    ("--window -1", "--window is -1"),
    ("--window-every -1", "--window-every is -1"),
    ("--capacity 0", "--capacity is 0"),
    ("--capacity 4095 --context 4096", "less than the 4096 tokens"),
    ("--ephemeral 33", "--ephemeral is 33"),
    ("--block-tokens 0", "--block-tokens is 0"),
    ("--pad -64", "--pad is -64"),
    ("--pad 3", "pad is 3"),
    ("--dtype f17", "'f17'"),
    ("--layout diagonal", "'diagonal'"),
    ("--scale f64", "'f64'"),
    ("--inner out", "'out'"),
    ("--users 0", "--users"),
    ("--replicas -1", "--replicas"),
    ("--weights heavy", "'heavy'"),
    ("--budget 0", "'0'"),
    ("--budget 1kB", "--budget is 1000 B"),
    ("--lengths uniform:9-3", "--lengths"),
    ("--lengths fixed:9000", "longer than --context 8192"),
    ("--lengths fixed:9000 --capacity 8999", "longer than --capacity 8999"),
    ("--machine /nowhere", "/nowhere"),
    ("--plot /nowhere/x.png", "/nowhere"),
    ("--plot x.pdf", "x.pdf"),
]
LINES = [
    *((f"llama-3-8b {line}", (named,)) for line, named in REFUSED),
    *(
        (f"qwen3-0.6b --context 1024 --map {line}", ("--map shows", line.split()[0]))
        for line in OVERRIDDEN
    ),
    ("qwen3-0.6b --canaries", ("--canaries",)),
    ("qwen3-0.6b --align 128", ("--align",)),
    ("qwen3-0.6b --align 0", ("--align",)),
    ("qwen3-0.6b --map --align 0", ("align is 0",)),
    ("qwen3-0.6b --map --canaries --align 96", ("align is 96",)),
    *((line, ()) for line in ("", "nonsense", "--map --layers 2", "--layers 2 --context 4")),
]


@pytest.mark.parametrize(("line", "words"), LINES)
def test_nonsense(line, words, capsys):
    refused(capsys, "size", *line.split(), words=words)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096),
        ("1B", 1),
        ("2kB", 2000),
        ("1.5KiB", 1536),
        ("16GB", 16 * 10**9),
        ("1 TiB", 1 << 40),
    ],
)
def test_numbers_of_bytes(text, count):
    assert BYTES.convert(text, None, None) == count


# ---- the figure ----------------------------------------------------------------------------------


def test_sweep():
    case = of_model("gemma-3-4b", context=300, batch=2, dtype="f32", scale="f16", capacity=400)
    table = sweep(decoder(case), 5000)
    assert set(table["dtype"]) == set(default_library().words("dtype"))
    assert sorted(set(table["context"])) == [128, 256, 512, 1024, 2048, 4096, 5000]
    for row in table.itertuples():
        other = Case(**{**vars(case), "context": row.context, "dtype": row.dtype, "capacity": None})
        assert row.bytes == other.bytes()
    assert sorted(set(sweep(decoder(case), 100)["context"])) == [100]


def test_dtypes_of_one_size_share_a_line():
    case = Case(28, 16, 8, 128, 1024)
    figure = sizes(sweep(decoder(case), 1024), decoder(case), sized(case).fit, 16 * GIB)
    assert list(figure.table["dtype"].unique()) == [
        "f32",
        "f16, bf16",
        "i8",
        "e4m3, e5m2",
        "q8_0",
        "q4_0",
    ]
    assert len(figure.table) == 6 * figure.table["context"].nunique()


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_plot(kind, tmp_path, capsys):
    path = tmp_path / f"sizes.{kind}"
    assert (
        errors_of(capsys, "size", "qwen3-0.6b", "--machine", str(RUN), "--plot", str(path), code=0)
        == f"plot: {path}\n"
    )
    if kind == "svg":
        words = {
            element.text for element in Xml.parse(path).iter("{http://www.w3.org/2000/svg}text")
        }
        assert {"i8", "f32", "L3, 32 MiB", "MiB of K, V and scales"} <= words
    else:
        assert path.read_bytes().startswith(b"\x89PNG")

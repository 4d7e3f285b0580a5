"""kvbench explain: what it finds for made-up machines, and what it says."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from kvbench.model import Fact
from kvbench.model.weights import Weights
from kvbench.report.explain import explain_text, lines
from kvbench.results import load
from kvbench.sizing.explained import explain
from kvbench.sizing.halves import beside_halves, shown
from kvbench.sizing.known import known
from kvbench.sizing.served import serve
from kvbench.suite import model
from tests.checkpoint.made import config, folder
from tests.checkpoint.test_known_answers import LLAMA
from tests.cli.test_cli import call, output_of, refused
from tests.cli.test_exit_codes import played
from tests.sizing.made import GIB, MEASURED, NOWHERE

RUN = Path(__file__).resolve().parents[2] / "results" / "zen4-kvm-2" / "quick"
ENDS = ("", "_low", "_high")
CORE = 0.5  # of core speed
RATES = {"f16": 20.0, "bf16": 19.9, "i8": 16.0, "q4_0": 5.0}  # GB/s, where plain reads give 20
LLAMA_8B = replace(model("llama-3-8b"), max_context=131072, weights=Weights(16 * GIB, 15 * GIB))


def machine(rates=RATES, group=4, memory=64 * GIB):
    rows = [(dtype, group, 128, 4096, "DRAM", rate, dtype) for dtype, rate in rates.items()]
    names = ("dtype", "group", "head_dim", "context", "regime", "gbps", "short")
    found = pd.DataFrame(rows, columns=names)
    facts = MEASURED.machine.facts | {"memory": Fact(memory, "made up", "high")}
    ends = {f"{name}{end}": found["gbps"] for name in ("gbps", "kv_gbps") for end in ENDS}
    decodes = found.assign(**ends, answer=False, core_fraction=CORE)
    return replace(
        MEASURED, machine=replace(MEASURED.machine, facts=facts), decodes=decodes, gflops=100.0
    )


def explained(shape=LLAMA_8B, known=None, batch=1, why="", given=None, asked=None):
    return explain("it", shape, known or machine(), batch, why, given, asked)


def test_the_wall_and_the_decodes():
    found = explained()
    assert [row.context for row in found.rows] == [512 << octave for octave in range(9)]
    row = next(row for row in found.rows if row.context == 8192)
    cell, small = row.of("f16"), row.of("i8")
    assert (cell.bytes, small.bytes) == (GIB, 2 * 32 * 8 * 8192 * 132)
    assert cell.most == pytest.approx(20e9 / (16 * GIB)) and cell.tokens == pytest.approx(cell.most)
    assert small.tokens == pytest.approx(1 / (15 * GIB / 20e9 + small.bytes / 16e9))
    assert cell.users == 48 and small.users == 48 * GIB // small.bytes
    assert row.of("e4m3").tokens == pytest.approx(row.of("e4m3").most), "not measured: at most"


def test_where_the_cache_overtakes_and_a_format_pays():
    found = {each.dtype: each for each in explained().formats}
    assert found["f16"].overtakes == 15 * 8192 and found["q4_0"].overtakes is None
    assert found["i8"].pays == 32768, "3.5 of 15 + 4 GiB are spared there"
    assert found["q4_0"].pays is None and found["f16"].pays is None
    assert found["e5m2"].decode == "" and found["i8"].group == 4
    assert explained().rows[-1].best == "i8" and explained().rows[0].best == "f16"


def test_batches_meet_more_experts():
    moe = replace(LLAMA_8B, weights=Weights(16 * GIB, GIB, routed=12 * GIB, experts=4, chosen=1))
    assert [explained(moe, batch=batch).read for batch in (1, 2)] == [
        4 * GIB,
        GIB + 12 * GIB * 7 // 16,
    ]
    assert explained(moe, batch=2).rows[-1].of("f16").bytes == 2 * 16 * GIB


def test_a_rate_that_was_measured():
    """A step of 1 s, of which plain reads of 16 GiB take 0.86 s."""
    found, each = explained(asked=(1.0, 8192)).measured, GIB / 20e9
    small = 2 * 32 * 8 * 8192 * 132 / 16e9
    assert (found.share, found.missing, found.cache) == pytest.approx(
        (16 * each, 1 - 16 * each, each)
    )
    assert found.dtype == "i8" and found.high == pytest.approx(1 / (15 * each + small))
    assert found.low == pytest.approx(1 / (1 - each + small))
    assert explained(asked=(2.0, 8192)).measured.share > 1


def served(cores, bandwidth, shape=LLAMA_8B):
    """The cell of f16, and that of i8, at 8,192 tokens."""
    found = serve(explained(shape), machine(), cores, bandwidth)
    cells = {(cell.context, cell.dtype): cell for cell in found.server.cells}
    return (cells[8192, "f16"], cells[8192, "i8"]), found


def test_on_a_server_the_slower_of_memory_and_cores():
    """Two threads decode f16 at 20 GB/s, half of core speed: 20 a core; and i8 at 16 a core."""
    (half, byte), found = served(10, 100.0)
    small = 2 * 32 * 8 * 8192 * 132  # bytes of i8
    assert (half.limit, byte.limit) == ("memory", "memory")
    assert (half.cache, byte.cache) == pytest.approx((100e9 / GIB, 100e9 / small))
    assert half.tokens == pytest.approx(100e9 / (16 * GIB))
    (half, byte), found = served(10, 180.0)
    assert (half.limit, byte.limit) == ("memory", "core")
    assert byte.cache == pytest.approx(160e9 / small)
    assert byte.tokens == pytest.approx(1 / (small / 160e9 + 15 * GIB / 180e9))
    assert "e4m3" in found.server.lacking and "f16" not in found.server.lacking
    (half, _), _ = served(10, 180.0, replace(LLAMA_8B, weights=None))
    assert half.tokens == half.cache


def test_the_page_and_explain_say_the_same_of_a_server():
    """Where memory limits, and where cores do: tokens/s of the cache alone, of 96 cores."""
    lines, rates = load(RUN).findings().answers.servers.lines, known(RUN)
    found = explain("llama-3-8b", model("llama-3-8b"), rates, 1, "", None, None)
    for line in lines:
        for bandwidth in (0.5 * line.knee, 2 * line.knee):
            cells = serve(found, rates, 96, 96 * bandwidth).server.cells
            own = next(c for c in cells if (c.context, c.dtype) == (4096, line.dtype))
            assert own.cache == pytest.approx(96 * line.at(bandwidth))


def test_a_pair_beside_its_halves():
    """At 8,192 tokens a step reads 2^21 rows of 136 bytes, of 72, or of one each."""
    pair, rates = "q8_0+q4_0", {"f16": 20.0, "q8_0": 15.0, "q4_0": 5.0, "q8_0+q4_0": 12.0}
    dtypes = shown([pair], among_all=False)
    assert dtypes == ("f16", "q4_0", "q8_0", pair)
    found = explain("it", LLAMA_8B, machine(rates), 1, "", None, None, dtypes)
    ((k, v, both),) = (each.formats for each in beside_halves(found, 8192))
    assert [each.dtype for each in (k, v, both)] == ["q8_0", "q4_0", pair]
    assert [each.bytes_per_token for each in (k, v, both)] == [256 * n for n in (272, 144, 208)]
    for each, gbps in ((k, 15e9), (v, 5e9), (both, 12e9)):
        assert each.alone == pytest.approx(gbps / (8192 * each.bytes_per_token))
        weights = 15 * GIB / 20e9
        assert each.tokens == pytest.approx(1 / (weights + 1 / each.alone))
    assert k.error < 0.01 < both.error < v.error and both.error_heavy < 0.5 * v.error_heavy
    table = "\n".join(explain_text(replace(found, pairs=beside_halves(found, 8192))))
    assert "q8_0+q4_0 beside its halves, at 8,192 tokens" in table and "52 KiB" in table


LATENT = replace(LLAMA_8B, q_heads=16, kv_heads=1, head_dim=576, latent=512)
SAID = [  # shape and machine, and what each of the five lines holds
    (
        {},
        [
            "8,192 tokens, reading the weights is the limit",
            "131,072 tokens, reading the weights and reading the KV cache take about equally long",
            "KV format: i8",
            "48 users of 8,192 tokens in f16",
            "20 GB/s",
        ],
    ),
    (
        {"shape": replace(LLAMA_8B, weights=Weights(GIB, GIB))},
        ["about equally", "KV cache is the limit", "i8", "63 users", ""],
    ),
    (
        {"shape": replace(LLAMA_8B, max_context=8192)},
        ["", "8,192 tokens are the longest", "+2% tokens/s at 8,192 tokens. Its", "", ""],
    ),
    (
        {"known": machine({"f16": 20.0, "i8": 8.0})},
        ["", "From 122,880 tokens", "f16. No smaller", "in q4_0", ""],
    ),
    (
        {"shape": replace(LLAMA_8B, weights=None), "why": "no index"},
        ["(no index)", "alone allows", "i8", "no index", ""],
    ),
    ({"known": machine(memory=8 * GIB)}, ["", "", "", "no user", ""]),
    (
        {"known": machine(group=8)},
        ["", "", "", "", "8 query heads on a KV head, this model has 4"],
    ),
    (
        {"shape": LATENT},
        ["the weights is the limit", "the core's arithmetic", "no kernel here", "", ""],
    ),
    (
        {"known": NOWHERE},
        [
            "no reads of memory are known",
            "",
            "not measured",
            "the machine's memory is",
            "--machine",
        ],
    ),
]


@pytest.mark.parametrize(("facts", "words"), SAID)
def test_five_lines(facts, words):
    found = lines(explained(**facts))
    assert len(found) == 5
    for line, word in zip(found, words, strict=True):
        assert word in line and "None" not in line and "nan" not in line, line


# ---- as it is called -----------------------------------------------------------------------------


def test_text_ends_with_the_lines(capsys):
    text = output_of(capsys, "explain", "gemma-3-4b", "--machine", RUN)
    assert (
        max(map(len, text.splitlines())) <= 120
        and " 7.228 GiB stored" in text
        and "131,072" in text
    )
    five = json.loads(output_of(capsys, "explain", "gemma-3-4b", "--machine", RUN, "--json"))[
        "lines"
    ]
    assert " ".join(text.split()).endswith(" ".join(" ".join(five).split())) and len(five) == 5
    server = ("--cores", "96", "--bandwidth", "460")
    text = output_of(capsys, "explain", "gemma-3-4b", "--machine", RUN, *server)
    assert "A model, not a measurement: tokens/s on 96 cores with 460 GB/s" in text
    assert max(map(len, text.splitlines())) <= 120
    page = output_of(
        capsys, "explain", "gemma-3-4b", "--machine", RUN, "--markdown", "--measured", "2@8k"
    )
    assert page.startswith("### gemma-3-4b") and page.count("\n- ") == 6 and page.count("```") == 2


def test_the_figure(tmp_path, capsys):
    assert (
        call(
            "explain", "gpt-2", "--machine", RUN, "--weights", "500MB", "--plot", tmp_path / "x.svg"
        )
        == 0
    )
    assert "tokens per second" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize("name", ["llama-3-8b", "deepseek-v2-lite"])
def test_what_is_not_known_is_measured(name, tmp_path, monkeypatch, capsys):
    """Exactly as many queries as a draft needs."""
    played(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    draft = ("--draft", "2", "--accept", ".5")
    found = json.loads(output_of(capsys, "explain", name, *draft, "--json"))
    assert Path(found["machine"]).parent.name == "runs"
    shapes = [
        point["shape"]
        for point in json.loads((tmp_path / found["machine"] / "manifest.json").read_text())[
            "plan"
        ]["points"]
        if "shape" in point
    ]
    walked = name == "llama-3-8b"  # no kernel walks latent rows
    assert {shape["q_heads"] for shape in shapes} == {32}
    assert {shape.get("q_len", 1) for shape in shapes} == ({1, 3} if walked else {1})
    assert any(each["decode"] for each in found["formats"]) == walked


BAD = [
    ("nonsense", "not a known model", "llama-3-8b"),
    ("lama-3-8b", "did you mean llama-3-8b"),
    ("gpt-2 --measured 5@1k", "--weights"),
    ("llama-3-8b --measured 5@9k", "9216 tokens"),
    *(
        (f"llama-3-8b --measured {text}", "5.2@8192")
        for text in ("5", "5@", "@5", "0@512", "5@0", "fast@8k")
    ),
    ("llama-3-8b --cores 96", "--bandwidth", "go together"),
    ("llama-3-8b --bandwidth 460", "--cores", "go together"),
    ("llama-3-8b --cores 96 --bandwidth 0", "--bandwidth is 0"),
    ("llama-3-8b --cores 0 --bandwidth 9", "0"),
    ("llama-3-8b --cores 96 --bandwidth nan", "nan"),
    ("deepseek-v3 --cores 96 --bandwidth 460", "kvbench has no kernel for the rows"),
    ("llama-3-8b --batch 0", "0"),
    ("llama-3-8b --batch 99999999999", "99999999999"),
    ("llama-3-8b --weights much", "16GB"),
]


@pytest.mark.parametrize("case", BAD, ids=[case[0] for case in BAD])
def test_nonsense(case, capsys):
    refused(capsys, "explain", *case[0].split(), "--machine", RUN, words=case[1:])


def test_what_no_kernel_walks_is_neither_sized_nor_swept(capsys):
    refused(capsys, "size", "deepseek-v3", words=("one row", "kvbench explain"))
    refused(
        capsys, "sweep", "--dry-run", "smoke", "--axis", "model=deepseek-v3", words=("deepseek-v3",)
    )


def test_a_folder_without_weights_is_explained(tmp_path, capsys):
    assert (
        "mine: 32 layers"
        in (
            text := output_of(
                capsys, "explain", folder(tmp_path / "mine", config(**LLAMA)), "--machine", RUN
            )
        )
        and "weights: unknown, its folder has no" in text
    )

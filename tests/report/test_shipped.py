"""What the shipped pages and READMEs quote of a run is what that run says.

Text that a command prints (`PRINTED`) is found in its file by a pattern. Parts between marks are
compared by tests/repo/test_outputs.py, and numbers in sentences by tests/repo/test_numbers.py.
"""

import re
import shlex

import numpy as np
import pytest

import kvbench
from kvbench.report.words import paragraphs
from tests.cli.test_cli import output_of
from tests.raw import ROOT
from tests.report.texts import plain_text

RESULTS = ROOT / "results"
QUICK = "results/zen4-kvm-2/quick"
PAGES = sorted(RESULTS.glob("*/*/report/index.html"))
# A file; what stands around the block that it quotes; the command that prints all of it, or
# none: the report. `...` leaves something out.
PRINTED = (
    ("README.md", r"The last lines, from.*?:\n\n(.*?)\n\n(?=\S)", ""),
    (
        "kvbench/cli/README.md",
        r"\n\n(      2 \(K, V\) x .*?)\n\n(?=\S)",
        "kvbench size llama-3-8b --context 4096 --budget 40GiB --lengths uniform:1-4096"
        f" --machine {QUICK}",
    ),
    (
        "kvbench/cli/README.md",
        r"\n\nends with\n\n(.*?)\n\n(?=\S)",
        f"kvbench explain gpt-oss-20b --machine {QUICK} --measured 5.2@32k",
    ),
)

ENGINES = r"\nThe page says of them:\n\n(.*?)\n\n(?=\S)"


def flat(text):
    return " ".join(text.split())


def quoted(file, pattern):
    found = re.search(pattern, (ROOT / file).read_text(), re.DOTALL)
    assert found, f"{file} quotes no run there any more: {pattern}"
    return found[1]


@pytest.mark.parametrize(("file", "pattern", "command"), PRINTED)
def test_what_a_readme_says_that_a_command_prints(
    file, pattern, command, shipped, monkeypatch, capsys
):
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)[1:]
    said = output_of(capsys, *words) if words else (shipped / "terminal.txt").read_text()
    for part in re.split(r"^ *\.\.\.$", quoted(file, pattern), flags=re.MULTILINE):
        assert flat(part) in flat(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parts[-4])
def test_a_shipped_page_is_that_of_its_run(page, shown):
    made = shown(page.parts[-4])
    assert plain_text((made / "index.html").read_text()) == plain_text(page.read_text())
    for figure in page.parent.glob("figures/*.csv"):
        assert rounded((made / "figures" / figure.name).read_text()) == rounded(figure.read_text())


def rounded(text):
    """To 12 digits: the last ones of a sum differ with the CPU that added it up."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.12g}", text)


# ---- computed ------------------------------------------------------------------------------------


BITS = {"i8": "8 bits", "q8_0": "8 bits", "q4_0": "4 bits"}
ROWS = {
    "ggml, position-major": "ggml position",
    "ggml, head-major": "ggml head",
    "ik_llama.cpp, position-major": "ik_llama position",
    "ik_llama.cpp, head-major": "ik_llama head",
    "vLLM": "vllm",
    "ONNX Runtime": "onnxruntime",
    "OpenVINO": "openvino",
    "PyTorch, two products": "torch_bmm",
    "PyTorch, scaled dot product attention": "torch_sdpa",
    "NumPy": "numpy",
}


@pytest.fixture(scope="module")
def beside():
    return kvbench.load(RESULTS / "zen5-kvm-2" / "peers").findings()


def test_the_table_of_engines(beside):
    """Times of the fastest of ours that each engine takes, by format: geometric mean of the
    cells.
    """
    found = beside.peers
    found = found[~found["engine"].isin(["kvbench", "again"]) & found["times"].notna()]
    layout = found["layout"].where(found["engine"].isin(["ggml", "ik_llama"]), "")
    logs = np.log(found["times"].astype(float)).groupby(
        [(found["engine"] + " " + layout).str.strip(), found["dtype"].replace(BITS)]
    )
    means = np.exp(logs.mean())
    text = (ROOT / "suites" / "README.md").read_text()
    table = re.search(r"(\| engine \| f32 .*?\n)\n", text, re.DOTALL)[1]
    (_, *formats), _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    )
    assert {row for row, *_ in rows} == {*ROWS}
    for row, *cells in rows:
        for bits, cell in zip(formats, cells, strict=True):
            known = means.get((ROWS[row], bits))
            assert cell == (
                "-" if known is None else f"{known:.0f}" if known >= 10 else f"{known:.1f}"
            ), (row, bits)


def test_the_words_on_engines(beside):
    """Each line is of the page's own summary."""
    page = flat(" ".join(paragraphs("peers", "summary", beside.beside)))
    _, *lines = re.split(r"^- ", quoted("suites/README.md", ENGINES), flags=re.MULTILINE)
    assert lines and all(flat(line) in page for line in lines)

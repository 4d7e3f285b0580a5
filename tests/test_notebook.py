"""The notebooks run cell by cell, are stored without outputs, and make true claims."""

import json
import math
import os
import re
import sys
from contextlib import redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from kvbench.apart import apart

SUITES = Path(__file__).resolve().parents[1] / "suites"


def cells(name):
    """The code of each cell, which must have been saved without output."""
    for cell in json.loads((SUITES / name).read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"] and cell["execution_count"] is None
            yield "".join(cell["source"])


def run(name, codes):
    """The plain values that the cells leave, their output, and the number of their figures."""
    os.chdir(SUITES)
    sys.path.insert(0, str(SUITES))
    plt.switch_backend("agg")
    scope, said = {}, StringIO()
    with redirect_stdout(said):
        for code in codes:
            exec(compile(code, name, "exec"), scope)  # noqa: S102
    for number in plt.get_fignums():
        plt.figure(number).savefig(BytesIO())
    kept = {key: value for key, value in scope.items() if is_plain(value) and key[0] != "_"}
    return kept | {"said": said.getvalue().splitlines(), "figures": len(plt.get_fignums())}


def is_plain(value):
    """Whether the value is made only of numbers, texts and short arrays."""
    if isinstance(value, dict):
        return all(map(is_plain, (*value, *value.values())))
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, np.ndarray):
        return value.size < 1000
    return isinstance(value, (int, float, str, np.generic))


def test_a_run_is_read(monkeypatch):
    monkeypatch.chdir(SUITES)
    scope, codes = {}, list(cells("notebook.ipynb"))
    for code in codes:
        exec(compile(code, "notebook.ipynb", "exec"), scope)  # noqa: S102
    assert len(codes) >= 5 and set(scope["best"]["dtype"]) >= {"f16", "f32"}
    assert len(scope["reads"]) and len(scope["pairs"]) and len(scope["decodes"])


# ---- experiments ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    """The values from a process with one thread for NumPy: several threads wait for each other on a
    busy machine.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OMP", "OPENBLAS", "MKL"):
            patch.setenv(f"{name}_NUM_THREADS", "1")
        patch.setenv("PYTHONPATH", str(SUITES.parent), prepend=os.pathsep)
        return apart(run, "experiments.ipynb", list(cells("experiments.ipynb")))


def test_each_has_a_figure_and_a_sentence(found):
    titles = [
        "".join(cell["source"]).splitlines()[0]
        for cell in json.loads((SUITES / "experiments.ipynb").read_text())["cells"]
        if cell["cell_type"] == "markdown"
    ]
    assert [title[:5] for title in titles[1:]] == [f"## {number}." for number in range(1, 8)]
    assert found["figures"] == 7
    assert len(found["said"]) == 8 and all(each.endswith(".") for each in found["said"])


def test_a_cache_saves_work_and_changes_nothing(found):
    assert found["same_tokens"] == found["steps"] and found["logits_off"] < 1e-5
    work = {
        way: dict(zip(found["contexts"], own, strict=True)) for way, own in found["work"].items()
    }
    for context in found["contexts"]:  # weights times tokens; keys and values of all pairs
        pairs = context * (context + 1) // 2
        assert work["without"][context] == 126_976 * context + 384 * pairs
        assert work["with a cache"][context] == 126_976 + 384 * context
    assert min(map(min, found["times"].values())) > 0


def test_a_wrong_cache_does_not_recover(found):
    assert found["first_other"] == {"one wrong key": 52, "one slot written late": 88}
    assert max(found["same_after"].values()) < 0.05
    begin = found["at"] - found["numbers"][0]
    for name, off in found["off"].items():
        assert off[:begin].max() < 1e-5
        assert off[begin:].max() < 1e-5 if name == "right" else off[begin:].min() > 5e-4


def test_a_shared_prefix_is_held_once(found):
    own, layers = -(-(128 + found["own"]) // 16), 3
    assert found["held"]["alone"] == [layers * own * count for count in range(1, 9)]
    assert found["held"]["shared"] == [layers * (own + (own - 8) * more) for more in range(8)]
    assert found["says"]["shared"] == found["says"]["alone"]
    assert len(set(map(tuple, found["says"]["alone"]))) == 8


def test_a_window_is_near_where_attention_is_local(found):
    lengths, off = found["lengths"], found["window_off"]
    for data, within in (("random", 1e-6), ("local", 1e-6)):
        assert all(e < within for n, e in zip(lengths, off[data], strict=True) if n <= 128)
    assert off["random"][-1] > 3 and off["random"] == sorted(off["random"])
    assert all(math.exp(-8) < error < 1e-2 for error in off["local"][2:])


def test_formats_are_off_by_their_bits_and_most_on_heavy_keys(found):
    off, sizes = found["format_off"], found["size_of"]
    assert {dtype for _, dtype in off} == set(sizes) and sizes["f32"] == 2 * 2 * 1024 * 128 * 4
    for dtype in sizes:
        normal, heavy = off["normal", dtype], off["heavy", dtype]
        assert normal == heavy == 0 if dtype == "f32" else 0 < 2 * normal < heavy
    order = [off["normal", dtype] for dtype in ("f32", "f16", "bf16", "i8", "e4m3", "e5m2")]
    assert (
        order == sorted(order)
        and max(off["normal", each] for each in sizes) == off["normal", "q4_0"]
    )
    for (_, _, variant), error in found["kernel_off"].items():
        assert 0 < error < (1e-5 if variant == "flash" else 0.05)


def test_pages_come_back_and_when_that_pays(found):
    assert found["came_back"] and found["page_bytes"] == 5 << 20 and found["page_tokens"] == 1280
    weights = 4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14336  # q and out, k and v; feed-forward
    assert found["page_flops"] == 2 * weights * 1280
    assert found["even_rate"] == pytest.approx(found["flops"] * (5 << 20) / found["page_flops"])
    assert found["even_flops"] / found["flops"] == pytest.approx(
        found["copy_rate"] / found["even_rate"]
    )
    assert str(round(found["even_flops"] / 1e12)) in found["said"][6].replace(",", "")


def test_a_padded_batch_reads_what_nobody_asked_for(found):
    ragged, even, padded = (found["batches"][name] for name in ("ragged", "even", "padded"))
    assert len(set(ragged)) == 8 and abs(int(ragged.sum()) - int(even.sum())) < 8
    assert set(padded) == {2048} == {max(ragged)}
    assert (
        found["padded_tokens"] == pytest.approx(8 * 2048 / ragged.sum())
        and found["ragged_off"] < 1e-5
    )
    assert min(found["decoding"].values()) > 0


# ---- the page of suites --------------------------------------------------------------------------


def test_the_page_has_numbers_of_the_experiments(found):
    page = (SUITES / "README.md").read_text().partition("\n## Experiments\n")[2]
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", page, re.MULTILINE))
    work, window, formats = found["work"], found["window_off"], found["format_off"]
    times = work["without"][0] / work["with a cache"][0]
    wrong, late = found["first_other"].values()
    share = found["size_of"]["i8"] / found["size_of"]["f32"]
    held = {way: blocks[-1] for way, blocks in found["held"].items()}
    known = {
        "naive against cached": [f"{times:.0f} times the products at {found['contexts'][0]} "],
        "break it": [f"at token {found['at']} ", f"from token {wrong} on", f"from token {late} on"],
        "prefix reuse": [f"hold {held['shared']} blocks, not {held['alone']}"],
        "window": [f"by {window['random'][-1]:.1f} times", f"by {shown(window['local'][-1], 1)}"],
        "formats": [f"{share:.0%}", *(shown(formats[kind, "i8"]) for kind in ("normal", "heavy"))],
        "ragged batch": [f"{found['padded_tokens']:.2f} times the rows"],
    }
    for row, texts in known.items():
        assert all(text in rows[row] for text in texts), (row, texts)
    most = dict(re.findall(r"`(\w+)` kernels (?:add at most )?(\S+e-\d)", rows["formats"]))
    for (*_, variant), error in found["kernel_off"].items():
        assert error < 1.5 * float(most[variant]), variant


def shown(error, digits=0):
    return f"{error:.{digits}e}".replace("e-0", "e-")

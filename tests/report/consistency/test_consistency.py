"""No two places of a report disagree; and where some do, that is found."""

import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.conftest import RUNS
from tests.report.consistency.reading import Report, read
from tests.report.consistency.rules import conflicts

OLD = Path(__file__).with_name("zen4-kvm-2-745fd4b.tar.gz")

# By rule: kinds of the table in __init__, and a value in what is found.
KEPT = {
    "dtype_ratio": ("a b", "i8 is 1.03x e5m2 (page) | the bars: 1.62"),
    "L3 gain": ("c", "1.09 (page) | ('f16', 4), L3 gain: 1.3"),
    "up_to": ("e", "up to 40.2 GB/s from memory (page) | decode blockt f32 t=4096"),
    "every_value": ("f", "dot is 1.63x flash (page) | points: 1.47, 1.40"),
    "fastest": ("g", "blockt is the fastest layout (page) | dtypes: i8: head, q4_0: head"),
    "only_one": ("h", "fastest dtype at 512 tokens (page) | measured there: f16"),
    "limit": ("i", "i8, limit: memory (dtypes) | i8, limit: neither (terminal)"),
    "limit_word": ("j", "decode position f32 t=4096 rotate 2 threads: unknown | memory 94%"),
    "enough_launches": ("l", "needs about 15 launches (page)"),
    "peak": ("m", "decode dot head i8 t=4096 rotate 2 threads: 376 GFLOP/s"),
    "tile_quotient": ("n", "5.3x (4.4 to 5.4) | 195 / 34.1 = 5.72"),
    "share of a copy": ("o", "0.564294 (stores.csv) | bulk f16 paged, share of a copy: 0.59"),
    "point_named": ("p", "saturation.csv, 512 tokens: 31.8"),
    "above a limit": ("q", "5 (page) | run, above a limit: 2 (crosses of the roofline)"),
    "memory read": ("r", "34.1 (tile) | memory, memory read: 34.2497 (roofline.csv)"),
    "varied": ("s", "varied by 13% (page) | half of the intervals are wider than 12.4%"),
    "error_named": ("t", "largest error of e5m2 | 2e-07"),
    "share beside it": ("u", "1.18 (page)"),
    "side by side": ("w", "no (page) | threads, side by side: yes (contrasts)"),
    "pairs": ("x", "bulk f16 head: 1.013 (0.975 to 1.022) | points: 0.914"),
    "launches": ("z", "14 (page) | run, launches: 7"),
    "share": ("bb", "core speed: 0.78 (every point)"),
    "nameless": ("dd", "4.3x (3.4 to 4.5): partly; f32 without grouped heads 4.3x"),
    "helps": ("dd", "decode blockt f16 t=4080 hot 2 threads, L3 helps: core-bound | 1.27 times"),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(OLD) as archive:
        archive.extractall(folder)  # ours: Python 3.11.2 knows no filter
    return conflicts(read(folder))


def test_the_kept_page_has_these_kinds_alone(kept):
    assert {conflict.rule for conflict in kept} == set(KEPT)


@pytest.mark.parametrize("rule", KEPT)
def test_the_kept_page(rule, kept):
    said = [str(conflict) for conflict in kept if conflict.rule == rule]
    assert any(KEPT[rule][1] in each for each in said), said


@pytest.mark.parametrize("name", RUNS)
def test_a_shipped_run_has_none(name, shown):
    assert not [str(conflict) for conflict in conflicts(read(shown(name)))]


# ---- planted -------------------------------------------------------------------------------------


def table(*rows):
    """Heads first, each row with ` | ` between cells."""
    lines = ["".join(f"<td>{cell.strip()}</td>" for cell in row.split("|")) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def tile(title, value, detail):
    return f'<div class="tile"><h2>{title}</h2><p class="value">{value}</p><p>{detail}</p></div>'


POINT = "decode head f16 t=4096 rotate 2 threads"
POINTS = "point | level | tokens/s | GB/s | interval | time of a pass | % of best read"
ONE_POINT = table(POINTS, f"{POINT} | DRAM | 62.8 | 33.8 | 33.1 to 38.1 | 498 µs | 99%")
CHOICES = "what differs | base | other | op | level | side by side | verdict"
PROGRESS = "decode.flash.head.f16.avx512, context 4096, 2 threads: 33.8 GB/s, {}% of reads of {}"
CORE = "probe | level | rate | interval | launches"
SCORE = "16 bits: 52.1 tokens/s (50 to 53), 28 GB/s; f16 head; untuned {}"
FITS = "model | dtype | threads | to context"

# Kind, rule; what stands there; the same without the contradiction.
PLANTED = {
    "d": (
        "progress",
        Report(ONE_POINT, terminal=PROGRESS.format(10, "1024 KiB")),
        Report(ONE_POINT, terminal=PROGRESS.format(98, "256 MiB")),
    ),
    "k": (
        "pays_back",
        Report(
            "<p>No layout saves or costs more than the noise.</p>"
            + table(CHOICES, "layout | blockt | head | append | DRAM | yes | faster")
        ),
        Report(
            "<p>No layout saves or costs more than the noise.</p>"
            + table(CHOICES, "layout | blockt | head | append | DRAM | yes | same within noise")
        ),
    ),
    "v": (
        "tokens/s",
        Report(
            ONE_POINT,
            terminal="K and V alone 63.9 (61.57..71.04): 512 MiB a step at 33.8 GB/s, as the"
            " measured decode head f16 t=4096 rotate",
        ),
        Report(
            ONE_POINT,
            terminal="K and V alone 62.8 (61.57..71.04): 512 MiB a step at 33.8 GB/s, as the"
            " measured decode head f16 t=4096 rotate",
        ),
    ),
    "y": (
        "left_out",
        Report("<p>50 visits were slow; 45 of these are left out, for too few others remain.</p>"),
        Report("<p>50 visits were slow; 45 of these are left out; too few others remain of 5.</p>"),
    ),
    "aa": (
        "core_rate",
        Report(table(CORE, "dot8 | core | 876 | 445 to 904 | 7")),
        Report(
            table(CORE, "dot8 | core | 876 | 860 to 904 | 7", "read | DRAM | 30 | 25 to 55 | 7")
        ),
    ),
    "cc": (
        "fits_named",
        Report(
            table(FITS, "llama-3-8b | f32 | 2 | 2867"),
            terminal="L3 holds the KV of one layer up to 5,734 tokens.",
        ),
        Report(
            table(FITS, "llama-3-8b | f32 | 2 | 2867"),
            terminal="L3 holds one layer of f32 up to 2,867 tokens.",
        ),
    ),
    "ee": (
        "untuned",
        Report(terminal=SCORE.format("53.4")),
        Report(terminal=SCORE.format("51.4")),
    ),
    "q": (
        "suspects",
        Report(
            "<p>4 points above a ceiling without an explanation.</p><p>5 of 58 points are faster"
            " than what should limit them, 3 for no known reason.</p>"
        ),
        Report(
            "<p>3 points above a ceiling without an explanation.</p><p>5 of 58 points are faster"
            " than what should limit them, 3 for no known reason.</p>"
        ),
    ),
    "r": (
        "memory read",
        Report(tile("Memory", "34.1 GB/s", "plain read"), terminal="plain reads of memory 31 GB/s"),
        Report(tile("Memory", "34.1 GB/s", "plain read"), terminal="plain reads of memory 34 GB/s"),
    ),
}

BARS = "dtype,layout,variant,point,tokens_per_second,gbps,lead,lead_low,lead_high"


def bars(lead):
    """A chart of two dtypes, of which the second has this lead."""
    rows = ("i8,head,dot,,90,25,1,1,1", f"f16,head,flash,,60,32,{lead},{lead - 0.02},{lead + 0.02}")
    heads = BARS.split(",")
    return [dict(zip(heads, row.split(","), strict=True)) for row in rows]


def dtypes(*speeds):
    rows = (f"{dtype} | {kernel} | {speed}" for dtype, kernel, speed in speeds)
    return table("dtype | kernel | tokens/s", *rows)


I8, F16 = ("i8", "dot, head", 90), ("f16", "flash, head", 60)
FIRST = (
    "Fastest decode",
    "90 tokens/s",
    "i8 (dot, head): a clear lead over all others, side by side",
)
TRUST = {"launches": 7, "fewest": 7, "unstable": 0, "noise": 0.13, "suspects": []}


def answered(scatter):
    """The JSON of a run that answers nothing but how far its launches scatter."""
    none = {"figure": None}
    reads = {"memory": none, "l3": none, "l3_rate": none, "visits": 0}
    return {
        "answers": {
            "decodes": {"rows": []},
            "reads": reads,
            "factors": {"threads": none, "choices": []},
            "storing": {"share": none},
            "l3": {"gains": [], "fits": []},
            "trust": TRUST | {"scatter": scatter},
            "workload": {"threads": 2},
        }
    }


PAIRS = (
    "what differs | base | other | op | dtype | layout | context | level | times as fast as base"
)
PAIRS += " | interval"
PAIR = "residency | memory | L3 | decode | f16 | {} | 4096 | L3 | {}"
ONE_MORE = "1.10 | 0.97 to 1.23"
SERVERS = [
    {"kind": "line", "dtype": dtype, "bandwidth": str(at), "tokens_per_second": str(rate * at)}
    for dtype, rate in (("i8", 3.6), ("f16", 1.8))
    for at in (1, 40)
]


def stairs(fastest):
    rows = (("memory", 34.7), ("read", fastest))
    return [{"kind": kind, "regime": "DRAM", "gbps": str(rate)} for kind, rate in rows]


# The same of what no page of the audit had.
NEW = {
    "scatter": (
        "scatter",
        Report("<p>Launches scatter by 9% of a point's time.</p>", json=answered(0.081)),
        Report("<p>Launches scatter by 8% of a point's time.</p>", json=answered(0.081)),
    ),
    "no answer": (
        "orphan",
        Report('<p class="badge">The other 17% of a time.</p>', json=answered(0.081)),
        Report('<p class="badge">The other 13% of a time.</p>', json=answered(0.081)),
    ),
    "lead": (
        "bar_ratio",
        Report(figures={"hero": bars(0.8)}),
        Report(figures={"hero": bars(0.66)}),
    ),
    "fastest": (
        "fastest_tile",
        Report(tile(*FIRST) + dtypes(I8, ("f16", "flash, head", 95))),
        Report(tile(*FIRST) + dtypes(I8, F16)),
    ),
    "kernel": (
        "kernel",
        Report(tile(*FIRST) + dtypes(("i8", "flash, head", 90), F16)),
        Report(tile(*FIRST) + dtypes(I8, F16)),
    ),
    "rate": (
        "tokens/s",
        Report(dtypes(I8, ("f16", "flash, head", 61)), {"hero": bars(0.66)}),
        Report(dtypes(I8, F16), {"hero": bars(0.66)}),
    ),
    "step": (
        "step",
        Report(
            tile(*FIRST) + "<p>Storing one token takes 30 µs (29 µs to 31 µs) in all layers (append"
            " head f16). That is 0.2% of a decode step.</p>"
        ),
        Report(
            tile(*FIRST) + "<p>Storing one token takes 30 µs (29 µs to 31 µs) in all layers (append"
            " head f16). That is 0.2% of a step of f16 (flash, head).</p>"
        ),
    ),
    "same row": (
        "same_row",
        Report(
            table(PAIRS, PAIR.format("head", "1.05 | 0.9 to 1.18"), PAIR.format("head", ONE_MORE))
        ),
        Report(
            table(PAIRS, PAIR.format("head", "1.05 | 0.9 to 1.18"), PAIR.format("paged", ONE_MORE))
        ),
    ),
    "fastest read": (
        "best_read",
        Report(figures={"staircase": stairs(34.2)}),
        Report(figures={"staircase": stairs(34.8)}),
    ),
    "servers": (
        "servers",
        Report("<p>f16 is fastest from 1 to 12 GB/s a core.</p>", {"servers": SERVERS}),
        Report("<p>i8 is fastest from 1 to 12 GB/s a core.</p>", {"servers": SERVERS}),
    ),
    "no whole": (
        "nameless",
        Report("<p>f16 gains 1.31x (1.26 to 1.40).</p>"),
        Report("<p>From L3 over the same from memory, f16 gains 1.31x (1.26 to 1.40).</p>"),
    ),
}


@pytest.mark.parametrize("kind", PLANTED | NEW)
def test_planted(kind):
    rule, wrong, mended = (PLANTED | NEW)[kind]
    assert {conflict.rule for conflict in conflicts(wrong)} == {rule}
    assert not conflicts(mended)


SHOWN = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(?=x\b|%| GB/s| tokens/s| µs)")


def altered(text):
    """The text with one number after another that is shown with its unit, a third higher."""
    for found in SHOWN.finditer(text):
        value = f"{float(found[1]) * 4 / 3:.3g}"
        yield found[0], text[: found.start()] + value + text[found.end() :]


def test_any_number_of_the_first_screen_that_is_another_one_is_found(shown):
    report = read(shown("zen4-kvm-2"))
    known = set(map(str, conflicts(report)))
    begin, end = report.page.index('<div class="tiles">'), report.page.index("<figure")
    pages = [
        replace(report, page=report.page[:begin] + part + report.page[end:])
        for _, part in altered(report.page[begin:end])
    ]
    first = report.terminal.split("\n\n  ")[0]
    texts = [
        replace(report, terminal=report.terminal.replace(first, part)) for _, part in altered(first)
    ]
    assert len(pages) > 8
    for other in (*pages, *texts):
        assert set(map(str, conflicts(other))) - known


def test_every_kind_of_the_audit_is_found():
    found = {kind for kinds, _ in KEPT.values() for kind in kinds.split()} | set(PLANTED)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    assert found == {*letters, "aa", "bb", "cc", "dd", "ee"}

"""What a KV scan costs its neighbours, as a page shows it: of latency that was never
measured.
"""

from dataclasses import replace

import pytest

from kvbench.analysis.answers.answer import Answer, Reason, State, Unit
from kvbench.analysis.answers.latency import Latency
from kvbench.analysis.means.findings import findings
from kvbench.report import page
from kvbench.report.ending import short
from kvbench.report.figures import every
from kvbench.report.figures.hero import hero
from kvbench.report.figures.latency import latency
from kvbench.report.figures.look import Look
from kvbench.report.latency import chases, idle, loaded
from kvbench.report.words import said
from kvbench.report.words.first import tiles
from kvbench.texts import table_csv
from tests.analysis.answers import chasing as planted
from tests.made_run import DECODE, MACHINE, RUN, STORE
from tests.report import chasing, made
from tests.report.drawn import drawn, found_in, parts, strange_colours
from tests.report.texts import blocks, plain_text, tables, unnamed, unnamed_cells
from tests.store.made import manifest

POINTS = [
    replace(DECODE, chase="node"),
    replace(DECODE, dtype="i8", chase="node"),
    replace(STORE, op="append", chase="node"),
]
TOLD = "Latency of memory is 2.07x idle at 90% of its read bandwidth; a decode of f16 slows"
UNTESTED = Answer.untested("latency", Reason.TOO_FEW)


def with_(own, **changes):
    """Of the first place."""
    first, *others = own.places
    return replace(own, places=(replace(first, **changes), *others))


@pytest.fixture(scope="module")
def found():
    plain = found_in(made.whole(POINTS, 3))
    own = chasing.found(15, [point.name for point in POINTS])
    return replace(plain, answers=replace(plain.answers, latency=own))


def test_the_first_tile_is_the_answer(found):
    tile = tiles(found.answers)[0]
    assert (tile.title, tile.value) == ("Loaded latency", "2.07x idle")
    assert tile.detail == (
        "latency of memory is 2.07x (2.05 to 2.09) the idle 108 ns at 90% of its read bandwidth. A"
        " decode of f16 slows its neighbours as much as plain reads of the same rate: latency is"
        " 1.00x (0.99 to 1.01) as long. 15 threads, llama-3-8b, 4,096 tokens"
    )


@pytest.mark.parametrize(
    ("state", "value", "title", "sentence"),
    [
        (State.LEVEL, 1.0, "; a decode of f16 slows neighbours as much as plain reads",
         ". A decode of f16"
         " slows its neighbours as much as plain reads of the same rate: latency is 1.00x (0.98 to"
         " 1.02) as long;"),
        (State.DECIDED, 1.2, "; a decode of f16 slows neighbours more than plain reads",
         ". A decode of f16"
         " slows its neighbours more than plain reads of the same rate: latency is 1.20x (1.18 to"
         " 1.22) as long;"),
        (State.DECIDED, 0.8, "; a decode of f16 slows neighbours less than plain reads",
         ". A decode of f16"
         " slows its neighbours less than plain reads of the same rate: latency is 0.80x (0.78 to"
         " 0.82) as long;"),
        (State.OPEN, 1.1, "2.07x idle at 90% of its read bandwidth", ". It is not clear"
         " whether a decode of f16 slows its neighbours more than plain reads of the same rate:"
         " latency is 1.10x (1.08 to 1.12) as long;"),
    ],
)  # fmt: skip
def test_what_a_scan_costs_has_words_for_each_state(found, state, value, title, sentence):
    alike = chasing.answered("alike", value, Unit.LENGTH, "", state)
    own = with_(found.answers.latency, alike=alike)
    assert said("latency", "title", own).endswith(title)
    assert sentence in said("latency", "sentence", own, False)
    first = chases(replace(found.answers, latency=own)).rows[0]
    words = {1.0: "as much", 1.2: "more", 0.8: "less", 1.1: "not clear"}
    assert first[4].text == words[value]


@pytest.mark.parametrize(
    ("busy", "value", "title", "words", "end"),
    [
        (chasing.answered("busy", 1.01, Unit.LENGTH, "", State.LEVEL), "1.01x idle", "is 1.01x",
         "level with the idle 108 ns, 1.01x (0.99 to 1.03),", ""),
        (chasing.answered("busy", 1.1, Unit.LENGTH, "", State.OPEN), "not decided", "by the GB/s",
         "1.10x (1.08 to 1.12) the idle 108 ns", "; whether that is longer is not decided"),
        (chasing.answered("busy", 1.1, Unit.LENGTH).because(State.DECIDED, Reason.DRIFTS),
         "1.10x idle", "is 1.10x", "1.10x (1.08 to 1.12) the idle 108 ns",
         ", but the idle latency drifts"),
        (UNTESTED, "not decided", "by the GB/s", "108 ns idle; it is not known",
         ": too few launches"),
    ],
)  # fmt: skip
def test_whether_latency_rises_has_words_for_each_state(found, busy, value, title, words, end):
    own = with_(found.answers.latency, busy=busy)
    assert said("latency", "title", own).startswith(f"Latency of memory {title}")
    assert tiles(replace(found.answers, latency=own))[0].value == value
    where = "(15 threads, llama-3-8b, 4,096 tokens)"
    assert said("latency", "sentence", own, False).startswith(
        f"Latency of memory is {words} at 90% of its read bandwidth {where}{end}."
    )


@pytest.mark.parametrize(
    ("state", "value", "words"),
    [
        (State.LEVEL, 1.0, "100% of its rate (98 to 102% of it): no slowdown shows."),
        (State.DECIDED, 0.9, "90% of its rate (88 to 92% of it)."),
        (State.OPEN, 0.95, "95% of its rate (93 to 97% of it): not decided whether the chase"),
    ],
)
def test_what_the_chase_costs_the_scan(found, state, value, words):
    slowed = chasing.answered("slowed", value, Unit.SHARE, "", state)
    own = with_(found.answers.latency, slowed=slowed)
    told = f"Beside the chase a decode of f16 has {words}"
    assert told in said("latency", "sentence", own, False)
    own = with_(own, slowed=UNTESTED, alike=UNTESTED)
    text = said("latency", "sentence", own, False)
    assert ". A decode of f16 is not compared with plain reads (too few launches);" in text
    assert "Beside the chase" not in text


def test_few_cores_and_virtual_machines_are_told():
    own = chasing.found(1)
    assert said("latency", "title", own).startswith(
        "Latency of memory is 1.01x idle (beside one core, not saturated); a decode of f16 slows"
    )
    two = replace(own, places=tuple(replace(each, threads=2) for each in own.places))
    assert "bandwidth (beside 2 cores, not saturated; 2 threads, llama-3-8b" in said(
        "latency", "sentence", two, False
    )
    for name in ("about", "sentence"):
        texts = [said("latency", name, own, virtual) for virtual in (True, False)]
        assert ["steal and the traffic of other guests." in text for text in texts] == [True, False]
    assert "do not saturate memory" in said("latency", "about", own, False)


def test_other_places_of_the_chase_have_sentences_of_their_own():
    own = chasing.found()
    far = chasing.place("decode", "f16", 15, chase="remote", cost=1.4, state=State.DECIDED)
    others = far, replace(far, dtype="i8"), replace(far, chase="sibling", busy=UNTESTED)
    own = replace(own, places=(*own.places, *others))
    text = said("latency", "sentence", own, False)
    assert (
        " With the chase on another NUMA node, latency of memory is 2.07x (2.05 to 2.09) the idle"
        " 108 ns at 90% of its read bandwidth (15 threads, llama-3-8b, 4,096 tokens). A decode of"
        " f16 slows its neighbours more than plain reads of the same rate: latency is 1.20x (1.19"
        " to 1.21) as long; decode i8: more, 1.20x (1.19 to 1.21). With the chase on an SMT sibling"
        " of a core that works, latency of memory is 108 ns idle; it is not known at 90% of its"
        " read bandwidth (15 threads, llama-3-8b, 4,096 tokens): too few launches. A decode"
    ) in text
    heads = [said("latency", "beside", own, place, place.curves[n]) for n, place in
             ((0, far), (2, far), (2, own.places[1]), (1, own.first))]  # fmt: skip
    assert heads == [
        "plain reads, chase on another NUMA node",
        "decode f16, chase on another NUMA node",
        "decode i8",
        "plain copies",
    ]  # fmt: skip
    alone = replace(own, places=(far,))
    assert said("latency", "sentence", alone, False).startswith("With the chase on another NUMA")
    assert "bandwidth, chase on another NUMA node. A decode" in said("latency", "tile", alone)


def test_latency_that_falls_is_told():
    own = chasing.found()
    curves = own.first.curves
    own = with_(own, curves=(replace(curves[0], falls=(50, 75)), *curves[1:]))
    assert (
        "Latency beside plain reads falls although it should rise, at 50 and 75% of their rate"
        " (decode f16)."
    ) in said("latency", "sentence", own, False)


def test_places_are_told_apart():
    one, other, *_ = chasing.found().places
    like = replace(one, context=8192), replace(one, layout="paged"), replace(one, threads=7)
    own = replace(chasing.found(), places=(one, *like, other))
    assert [said("latency", "place", own, each) for each in own.places] == [
        "decode f16 head, 4,096 tokens, 15 threads",
        "decode f16 head, 8,192 tokens, 15 threads",
        "decode f16 paged, 4,096 tokens, 15 threads",
        "decode f16 head, 4,096 tokens, 7 threads",
        "decode i8",
    ]


def test_the_figure_has_a_panel_for_each_point(found):
    figure, text = drawn(latency, found)
    assert figure.title.startswith(TOLD)
    words = [each.partition("</text>")[0].rpartition(">")[2] for each in text.split("<text")]
    once = {"plain reads", "plain copies", "thin: 95% of the steps take no longer"}
    thrice = {
        "at 90% of plain reads: 2.07x idle",
        "idle 108 ns, others spin: 97.2",
        "L3, idle 14.2 ns",
    }
    twice = {"decode f16", "decode i8", "append f16"}  # a title, and in the legend
    for count, names in enumerate((once, twice, thrice), 1):
        assert {name: words.count(name) for name in names} == dict.fromkeys(names, count)
    assert {*parts(text)} == set(figure.table["row"]) and not strange_colours(text)
    own = figure.table[(figure.table["place"] == 0) & (figure.table["load"] == "copy")]
    assert list(own["share"]) == [25, 50, 75, 100]
    assert own["ns"].iloc[-1] == pytest.approx(108 * (1 + 1.3 * 1.6))
    assert own["gbps"].iloc[-1] == pytest.approx(0.9 * 252 + 64 / own["ns"].iloc[-1])


def test_names_lie_within_their_panel_and_not_on_each_other(found):
    canvas = drawn(latency, found)[0].canvas()
    canvas.draw_without_rendering()
    for axes in canvas.axes:
        boxes = [text.get_window_extent().padded(-1) for text in axes.texts]
        assert len(boxes) == 3
        assert not [1 for n, box in enumerate(boxes) for other in boxes[:n] if box.overlaps(other)]
        inside = axes.get_window_extent()
        assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)
        assert all(inside.y0 <= box.y0 and box.y1 <= inside.y1 for box in boxes)


def test_what_is_not_known_is_not_drawn(found):
    """Neither how many times idle, nor a spin that may be as long, nor an L3 without a probe."""
    own = found.answers.latency
    own = replace(with_(own, busy=UNTESTED, spin=own.first.idle, spins=False), idle=())
    own = replace(own, places=own.places[:1])
    _, text = drawn(latency, replace(found, answers=replace(found.answers, latency=own)))
    assert ">idle 108 ns<" in text and not [w for w in ("the reads", "spin", "L3") if w in text]


def test_only_a_run_with_a_chase_shows_it(found):
    other = replace(found, answers=replace(found.answers, latency=Latency()))
    assert "latency" not in [figure.name for figure in every(other)]
    tables_of = chases(other.answers), loaded(other.answers), idle(other.answers)
    assert [table.rows for table in tables_of] == [(), (), ()]
    assert tiles(other.answers)[0].title == "Fastest decode"


def test_tables(found):
    own = {name: [[cell.text for cell in row] for row in table(found.answers).rows]
           for name, table in (("chases", chases), ("loaded", loaded), ("idle", idle))}  # fmt: skip
    assert own["chases"][2][:6] == [
        "append f16", "108 (107-109)", "2.07 (2.05-2.09)", "1.20 (1.19-1.21)", "more",
        "99 (98-100)",
    ]  # fmt: skip
    assert len(own["loaded"]) == 3 * 3 * 4
    assert own["loaded"][3] == [
        "decode f16", "plain reads", "100", "252 (247-257)", "252 (247-257)", "281 (275-286)",
        "298 (292-304)", "2.60 (2.55-2.65)",
    ]  # fmt: skip
    assert own["idle"][1][:4] == ["L3", "15", "8 MiB", "14.2 (13.9-14.5)"]
    assert own["idle"][3] == [
        "memory, decode f16: others sleep", "15", "512 MiB", "108 (107-109)", "1.00 (0.98-1.02)",
    ]  # fmt: skip


def test_page_and_terminal_say_the_same(found):
    look = Look(found.points)
    figures = [
        page.Drawn(each, "<svg ></svg>", table_csv(each.table))
        for each in (hero(found, look), latency(found, look))
    ]
    text = page.page(found, manifest(POINTS, 3), figures)
    plain, printed = plain_text(text), " ".join(" ".join(short(found)).split())
    assert TOLD in plain and 'href="#latency">Latency<' in text
    order = ('id="answers"', 'id="chases"', 'id="latency"', 'id="hero"', 'id="loaded"', 'id="idle"')
    places = [text.index(each) for each in order]
    assert places == sorted(places) and [text.count(each) for each in order] == [1] * len(order)
    tile = tiles(found.answers)[0]
    assert f"{tile.title} {tile.value} {tile.detail}" in printed
    assert "append f16 123 at 63.5 144 at 126 196 at 189 350 at 252" in printed
    assert not [one for block in blocks(text) for one in unnamed(block) if "latency" in one]
    own = [each for each in tables(text) if "ns, p95" in each[0] or "idle, ns" in each[0]]
    assert [unnamed_cells(*each) for each in own] == [[], []]


def test_what_was_measured_stands_in_every_form():
    """Of planted records: ns at GB/s of load and chase together."""
    found = findings(RUN, planted.records(launches=7), MACHINE)
    table = latency(found, Look(found.points)).table
    ns = planted.STEEP(38.0)
    own = table[(table["load"] == "decode") & (table["share"] == 100)]
    (row,) = own[["ns", "gbps", "load_gbps"]].to_dict("records")
    assert row == pytest.approx({"ns": ns, "gbps": 38 + 64 / ns, "load_gbps": 38})
    cells = [cell.text for cell in loaded(found.answers).rows[-1]]
    assert cells[:3] == ["decode f16", "decode f16", "100"]
    assert cells[5].startswith(f"{ns:.0f} (") and cells[6].startswith(f"{1.5 * ns:.0f} (")
    line = next(line for line in short(found) if line.startswith("  decode f16 "))
    assert line.endswith(f"{ns:.0f} at {38 + 64 / ns:.1f}")
    share = chases(found.answers).rows[0][5].text
    assert share.startswith("95 (") and "95% of its rate" in said(
        "latency", "sentence", found.answers.latency, False
    )

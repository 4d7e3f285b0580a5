"""The page as text: in its order, complete, safe, and of the colours that the figures have."""

import base64
import re

import pandas as pd

import kvbench
from kvbench.report.figures.look import COLOURS, FAINT, GRID, INK, PAPER, SHADES
from kvbench.report.page import _NAMES, _text, themed
from tests.cli.test_cli import call
from tests.report import made
from tests.report.texts import plain_text, tables
from tests.store.made import manifest

ORDER = [
    "answers",
    "hero",
    "verdict",
    "roofline",
    "axes",
    "staircase",
    "stores",
    "tools",
    "points",
]
ORDER += ["tables", "ceilings", "machine", "provenance"]


def test_the_order(report):
    page = (report / "index.html").read_text()
    places = [page.index(f'id="{name}"') for name in ORDER]
    assert places == sorted(places)


def test_columns_are_sorted_by_numbers_and_words(report):
    """Not by the parts of a fact, such as Answer(question=...)."""
    orders = re.findall(r'data-order="([^"]*)"', (report / "index.html").read_text())
    assert len(orders) > 100 and not [each for each in orders if "(" in each and "=" in each]


def test_it_needs_nothing_else(report):
    page = (report / "index.html").read_text()
    assert not re.search(r"""(?:src|href)=["'](?!#|data:text/csv)""", page)
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/)", page)
    assert "default-src 'none'" in page


def test_provenance_and_every_skip(tmp_path):
    run = made.directory(tmp_path / "run", [], [made.DECODE], 1, skips=manifest().skips)
    assert call("report", str(run)) == 0
    text, known = (
        plain_text((run / "report" / "index.html").read_text()),
        kvbench.load(run).manifest,
    )
    for word in (known.command, known.run, "f00d", "cafe", *known.identity.values()):
        assert word in text
    assert "does not fit memory" in text and "1 GiB of 2" in text and "context=5, dtype=f16" in text


def test_the_tables_numbers_are_those_of_the_frame(rich, report):
    points = kvbench.load(rich).frame("points")
    heads, rows = next(
        each
        for each in tables((report / "index.html").read_text())
        if each[0][:2] == ["point", "level"]
    )
    found = pd.DataFrame(rows, columns=heads)
    assert len(found) == len(points) and found["point"].is_unique
    rates = found["GB/s"].astype(float)
    assert (abs(rates / points["gbps"] - 1) < 0.006).all()
    shares = found["% of core speed"].str.rstrip("%")
    known = points["core_fraction"].notna()
    assert ((shares != "") == known).all()
    assert (abs(shares[known].astype(float) - 100 * points["core_fraction"][known]) <= 0.51).all()


def test_data_below_a_figure_is_that_of_its_file(report):
    page = (report / "index.html").read_text()
    links = dict(re.findall(r'<a download="([^"]+)" href="data:text/csv;base64,([^"]+)"', page))
    assert len(links) >= 4
    for name, data in links.items():
        assert base64.b64decode(data) == (report / "figures" / name).read_bytes()


def test_colours_of_figures_are_those_of_the_page():
    """Light as they are drawn; and each has another by dark."""
    assert set(_NAMES) == {INK, FAINT, GRID, PAPER, *COLOURS, *SHADES}
    light, *dark = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r"\{([^{}]*--ink: [^{}]*)\}", _text("style.css"))
    ]
    assert {name: light[name] for name in _NAMES.values()} == {
        name: colour for colour, name in _NAMES.items()
    }
    assert len(dark) == 2 and dark[0] == dark[1] and dark[0].keys() == light.keys()
    assert all(light[name] != dark[0][name] for name in light)


def test_a_figure_takes_the_pages_width_and_colours():
    svg = (
        '<svg xmlns="x" width="648pt" height="29.5pt" viewBox="0 0 648 29.5">\n'
        f' <metadata>a</metadata><path style="fill: {INK}"/></svg>'
    )
    mark = f'<use style="fill: {PAPER}; x: 1.25"/>'
    many = themed(f"<svg><style>a{{}}</style>{10 * mark}</svg>", "a,b")
    rule = "a{}.a-b-0{fill: var(--paper); x: 1.25}"
    assert many == f"<svg><style>{rule}</style>" + 10 * '<use class="a-b-0"/>' + "</svg>"
    assert (
        themed(svg, "x")
        == '<svg xmlns="x" viewBox="0 0 648 29.5"><path style="fill: var(--ink)"/></svg>'
    )

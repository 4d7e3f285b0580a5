"""The page in a real browser, from the disk and without a network: what it shows, and what its
scripts add.
"""

import re
from contextlib import contextmanager
from itertools import pairwise

import pytest

from tests.report.made import CONTEXTS

ROWS = "#points tbody tr"
MARK = "svg [data-point]"
TOLERATED = 2  # pixels by which boxes may touch

# Of every text of a figure its box as four corners, for a text may be turned; of letters, not of
# the line that has them.
BOXES = """svg => [...svg.querySelectorAll("text")].filter(t => t.textContent.trim()).map(t => {
  const box = t.getBBox(), to = t.getScreenCTM(), cut = box.height * 0.18;
  return {text: t.textContent.trim(), corners: [
    [box.x, box.y + cut], [box.x + box.width, box.y + cut],
    [box.x + box.width, box.y + box.height - cut], [box.x, box.y + box.height - cut],
  ].map(([x, y]) => [to.a * x + to.c * y + to.e, to.b * x + to.d * y + to.f])};
})"""


@contextmanager
def opened(browser, folder, width=1400, height=900, fragment="", **context):
    """The page, and what went wrong in it. Nothing but the file itself may be asked for."""
    seen, wrong = browser.new_context(viewport={"width": width, "height": height}, **context), []
    seen.set_offline(True)
    page, path = seen.new_page(), (folder / "index.html").as_uri()
    page.on(
        "request",
        lambda request: wrong.append(request.url) if request.url.split("#")[0] != path else None,
    )
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(path + fragment)
    try:
        yield page
        assert wrong == []
    finally:
        seen.close()


@pytest.fixture
def page(browser, report):
    with opened(browser, report) as found:
        yield found


def row(page, number):
    """Its cells by their heads."""
    heads = page.locator("#points thead th").all_inner_texts()
    cells = page.locator(f"#point-{number} td").all_inner_texts()
    return dict(zip(heads, cells, strict=True))


def mark(page):
    """The number of a point that has a ceiling, and where a mark of it lies on top of others."""
    page.locator("#staircase svg").scroll_into_view_if_needed()
    found = page.locator(f"#staircase {MARK}").evaluate_all("""marks => marks.map(mark => {
      const box = mark.getBoundingClientRect();
      const x = box.x + box.width / 2, y = box.y + box.height / 2;
      const top = document.elementFromPoint(x, y)?.closest("[data-point]");
      return top === mark ? [mark.dataset.point, {x, y}] : null; })""")
    return next(
        each for each in filter(None, found) if row(page, each[0])["% of core speed"].strip()
    )


def column(page, head, table="points"):
    place = page.locator(f"#{table} thead th").all_inner_texts().index(head)
    return page.locator(f"#{table} tbody tr td:nth-child({place + 1})").all_inner_texts()


# ---- what is there -------------------------------------------------------------------------------


def test_it_is_whole(page, report):
    names = {path.stem for path in (report / "figures").glob("*.svg")}
    assert len(names) >= 4 and page.locator("figure svg").count() == len(names)
    for name in names:
        assert (report / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (report / "figures" / f"{name}.csv").read_text().count("\n") > 1
    asked = page.locator("nav a").evaluate_all("links => links.map(link => link.hash.slice(1))")
    assert asked == page.evaluate(
        "names => names.filter(name => document.getElementById(name))", asked
    )


@pytest.mark.parametrize("width", [1400, 380])
@pytest.mark.parametrize("folder", ["report", "shipped", "both", "past", "beside"])
def test_nothing_overflows_overlaps_or_is_cut(browser, folder, width, request):
    with opened(browser, request.getfixturevalue(folder), width) as page:
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        out = """els => els
        .filter(e => !e.closest("svg, .scroll, #card") && e.getBoundingClientRect().width)
                          .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.outerHTML.slice(0, 90))"""
        assert page.locator("body *").evaluate_all(out) == []
        wide = (
            "cells => cells.filter(e => e.offsetWidth > e.closest('.scroll').clientWidth).map(e =>"
            " e.textContent)"
        )
        assert page.locator("td").evaluate_all(wide) == []
        assert (
            min(page.locator("li").evaluate_all("all => all.map(e => e.offsetWidth)")) > width / 3
        )
        for figure in page.locator("figure").all():
            svg = figure.locator("svg")
            frame, name = svg.bounding_box(), svg.get_attribute("aria-label")
            boxes = svg.evaluate(BOXES)
            assert boxes, name
            assert [box["text"] for box in boxes if cut(box["corners"], frame)] == [], name
            assert overlaps(boxes) == [], name


def test_the_first_screen(browser, shipped):
    """Machine, badge, six tiles and the chart in 1300 x 900; below it findings that lead to what
    shows them.
    """
    with opened(browser, shipped, width=1300, height=900) as page:
        for part in (*page.locator("h1, .badge, .tile, #hero svg").all(),):
            box = part.bounding_box()
            assert box["y"] + box["height"] <= 900 and box["x"] + box["width"] <= 1300
        assert page.locator(".tile").count() == 6 and page.locator(".findings li").count() > 8
        links = page.locator(".findings a").evaluate_all(
            "links => links.map(link => link.hash.slice(1))"
        )
        assert len(links) > 6 and links == page.evaluate(
            "all => all.filter(name => document.getElementById(name))", links
        )
        heads = page.locator("#dtypes thead th").all_inner_texts()
        assert {"tokens/s", "GB/s", "% of memory read", "% of core speed", "what limits"} <= set(
            heads
        )


def test_on_a_phone(browser, report):
    """Figures keep a size at which words can be read; what a link leads to is in sight."""
    with opened(browser, report, width=380, height=740) as page:
        figures = page.locator("figure .wide")
        assert min(figures.locator("svg").evaluate_all("all => all.map(e => e.clientWidth)")) >= 600
        assert min(figures.evaluate_all("all => all.map(e => e.scrollWidth - e.clientWidth)")) > 0
        assert all(cue.is_visible() for cue in page.locator("figure .cue").all())
        page.click('nav a[href="#points"]')
        assert page.locator("#points h2").evaluate("""head => {
          const box = head.getBoundingClientRect();
          return document.elementFromPoint(box.x + 5, box.y + box.height / 2) === head; }""")


def cut(corners, frame):
    left, top, right, bottom = bounds(corners)
    return (
        left < frame["x"] - TOLERATED
        or top < frame["y"] - TOLERATED
        or right > frame["x"] + frame["width"] + TOLERATED
        or bottom > frame["y"] + frame["height"] + TOLERATED
    )


def bounds(corners):
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def overlaps(boxes):
    return [
        (a["text"], b["text"])
        for place, a in enumerate(boxes)
        for b in boxes[place + 1 :]
        if not apart(a["corners"], b["corners"])
    ]


def apart(a, b):
    """Two boxes are, where a line along a side of one of them has all of both on different
    sides.
    """
    for corners in (a, b):
        for (x, y), (x2, y2) in pairwise(corners):
            length = ((x2 - x) ** 2 + (y2 - y) ** 2) ** 0.5 or 1.0
            along = [
                [(px * (x2 - x) + py * (y2 - y)) / length for px, py in each] for each in (a, b)
            ]
            if (
                max(along[0]) <= min(along[1]) + TOLERATED
                or max(along[1]) <= min(along[0]) + TOLERATED
            ):
                return True
    return False


def test_without_scripts(browser, report):
    """All figures, tables and sheets; no tool that would do nothing."""
    with opened(browser, report, java_script_enabled=False) as page:
        for shown in (page.locator("figure svg"), page.locator("table")):
            assert shown.count() > 1 and all(each.is_visible() for each in shown.all())
        assert page.locator(ROWS).count() > 50
        for hidden in ("#tools", "#card", "#theme"):
            assert not any(each.is_visible() for each in page.locator(hidden).all())


def test_it_prints(browser, report, tmp_path):
    """On paper it is light, and whole."""
    with opened(browser, report, color_scheme="dark") as page:
        printed = page.pdf(format="A4", path=tmp_path / "page.pdf")
        assert printed.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", printed)) >= 3
        page.emulate_media(media="print")
        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert all(sheet.is_visible() for sheet in page.locator("table").all())
        assert not page.locator("#tools").is_visible()
        clipped = (
            "all => all.filter(e => e.scrollHeight > e.clientHeight + 1 &&"
            " getComputedStyle(e).overflowY != 'visible').length"
        )
        assert page.locator(".scroll").evaluate_all(clipped) == 0
        page.set_viewport_size({"width": 718, "height": 1040})  # of A4
        assert max(page.locator("table").evaluate_all("all => all.map(e => e.offsetWidth)")) <= 718


# ---- what scripts add ----------------------------------------------------------------------------


def test_a_mark_shows_the_numbers_of_its_point(page):
    number, place = mark(page)
    assert not page.locator("#card").is_visible()
    page.mouse.move(**place)
    known = row(page, number)
    card = page.locator("#card")
    assert card.is_visible() and card.locator("strong").inner_text() == known["point"]
    told = dict(
        zip(card.locator("dt").all_inner_texts(), card.locator("dd").all_inner_texts(), strict=True)
    )
    assert told == {
        head: cell.strip() for head, cell in known.items() if head != "point" and cell.strip()
    }
    assert float(told["GB/s"]) > 0 and told["% of core speed"].endswith("%")
    page.mouse.move(1, 1)
    assert not card.is_visible()


def test_filters(page):
    every = page.locator(ROWS).count()
    assert page.locator("#count").inner_text() == f"{every} of {every} points"
    page.select_option("select[name=dtype]", "i8")
    page.select_option("select[name=threads]", "4")
    shown = page.locator(f"{ROWS}:visible")
    assert shown.count() == len(CONTEXTS) * 2 * 2  # layouts, residencies
    assert set(
        shown.evaluate_all("rows => rows.map(row => row.dataset.dtype + row.dataset.threads)")
    ) == {"i84"}
    assert page.locator("#count").inner_text() == f"{shown.count()} of {every} points"
    numbers = set(shown.evaluate_all("rows => rows.map(row => row.dataset.point)"))
    off = page.locator(f"{MARK}.off").evaluate_all("marks => marks.map(mark => mark.dataset.point)")
    on = page.locator(f"{MARK}:not(.off)").evaluate_all(
        "marks => marks.map(mark => mark.dataset.point)"
    )
    assert off and on and set(on) <= numbers and not set(off) & numbers
    page.fill("#search", "paged t=1024 hot")
    assert page.locator(f"{ROWS}:visible").count() == 1
    page.fill("#search", "")
    page.select_option("select[name=dtype]", "")
    page.select_option("select[name=threads]", "")
    assert (
        page.locator(f"{ROWS}:visible").count() == every
        and page.locator(f"{MARK}.off").count() == 0
    )


def test_sorting_is_by_number(page):
    head = page.locator("#points thead th", has_text=re.compile("^GB/s"))
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    rates = [float(text) for text in column(page, "GB/s") if text]
    assert rates == sorted(rates) and len({len(f"{rate:g}") for rate in rates}) > 1
    head.locator("button").click()
    rates = [float(text) for text in column(page, "GB/s") if text]
    assert (
        rates == sorted(rates, reverse=True) and page.locator("#points th[aria-sort]").count() == 1
    )
    footprint = page.locator("#ceilings thead th", has_text="working set")
    assert not page.locator("#ceilings table").is_visible()
    page.evaluate("location.hash = 'ceilings'")  # which opens what is folded
    footprint.locator("button").click()
    sizes = column(page, "working set", "ceilings")
    assert sizes[-1] == "" and sizes.index("512 KiB") < sizes.index("8 MiB") < sizes.index(
        "256 MiB"
    )


def test_a_click_highlights_and_can_be_linked_to(page, browser, report):
    number, place = mark(page)
    page.mouse.click(**place)
    assert page.evaluate("location.hash") == f"#point-{number}"
    lit = page.locator(".on")
    assert (
        set(lit.evaluate_all("all => all.map(each => each.dataset.point)")) == {number}
        and lit.count() > 1
    )
    assert "on" in page.locator(f"#point-{number}").get_attribute("class")
    page.locator(f"#point-{number}").focus()
    page.keyboard.press("Enter")
    assert lit.count() == 0 and page.evaluate("location.href").endswith("index.html")
    with opened(browser, report, fragment=f"#point-{number}") as linked:
        assert "on" in linked.locator(f"#point-{number}").get_attribute("class")
        assert linked.locator(f"#point-{number}").is_visible()


def test_a_figure_says_what_it_is(page, report):
    """To those who do not see it; and where it stands alone. On the page its title would hide the
    card of a mark.
    """
    names = page.locator("figure svg[role=img]").evaluate_all(
        "all => all.map(e => e.getAttribute('aria-label'))"
    )
    alone = [
        re.findall("<title>([^<]+)</title>", path.read_text())
        for path in (report / "figures").glob("*.svg")
    ]
    assert all(names) and sorted(map(list, zip(names, strict=True))) == sorted(alone)
    assert page.locator("svg title").count() == 0


def test_light_and_dark(browser, report):
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, report, color_scheme="dark") as page:
        dark, ink = (
            page.evaluate(ground),
            page.locator("figure svg text").first.evaluate("e => getComputedStyle(e).fill"),
        )
        page.click("#theme")
        assert page.evaluate(ground) == "rgb(255, 255, 255)" != dark
        assert (
            page.locator("figure svg text").first.evaluate("e => getComputedStyle(e).fill") != ink
        )
        page.click("#theme")
        assert page.evaluate(ground) == dark


def test_links_between_the_pages_of_two_runs(browser, both):
    with opened(browser, both) as page:
        links = page.locator(".findings a:not([href*='#'])").evaluate_all(
            "links => links.map(link => link.href)"
        )
        assert len(links) == 2
    for link in links:
        with opened(browser, both / link.split("/")[-2]) as page:
            assert page.locator("#points").count() == 1

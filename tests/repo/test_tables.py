"""The tables of README.md and results/: they are what the command makes of the runs, and their
numbers are those of the journals, which are read here by json alone.
"""

import itertools
import json
import re
import shutil
import tarfile
from collections import defaultdict
from functools import cache
from statistics import median

import pytest

import kvbench
from kvbench.report.ending import short
from tests.cli.test_cli import call
from tests.raw import ROOT
from tests.repo.journals import (
    ENGINES,
    RESULTS,
    at_speed,
    by_launch,
    expected,
    journal,
    points,
    read,
    shares,
    tokens,
)

MACHINES = sorted(path for path in RESULTS.iterdir() if any(path.glob("*/manifest.json")))
DTYPES = ("f16", "bf16", "q8_0", "q4_0")
PAGE = f"""\
<!-- kvbench: scores -->
<!-- end -->
<!-- kvbench: engines {ENGINES} {" ".join(DTYPES)} -->
<!-- end -->
<!-- kvbench: screen zen4-kvm-2/quick -->
<!-- end -->
<!-- kvbench: machines -->
<!-- end -->
"""
BRIEF = f"""\
<!-- kvbench: scores short -->
<!-- end -->
<!-- kvbench: engines {ENGINES} short f16 -->
<!-- end -->
<!-- kvbench: screen zen4-kvm-2/quick short -->
<!-- end -->
"""
WIDE = {"f16": 16, "bf16": 16, "i8": 8, "q8_0": 8, "e4m3": 8, "q4_0": 4}
NUMBER = r"[\d.]+"
WORKLOAD = re.compile(
    r"decode\.(?P<variant>\w+)\.(?P<layout>\w+)\.(?P<dtype>\w+)\.\w+/b1\.q32\.kv8\.d128/"
    r"ctx4096\.cap4096\.win0\.layers0/cpu0-1\.thp\.rotate/\w+\."
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the pages beside the runs, with one more page, after one call of the command."""
    root = tmp_path_factory.mktemp("tree")
    pages = [ROOT / "README.md", *RESULTS.glob("*.md"), *RESULTS.glob("*/README.md")]
    for machine in MACHINES:
        (root / "results" / machine.name).mkdir(parents=True)
        for path in machine.iterdir():
            if path.is_dir():
                (root / "results" / machine.name / path.name).symlink_to(path)
            elif path.suffix != ".md":
                shutil.copy(path, root / "results" / machine.name)
    for page in pages:
        shutil.copy(page, root / page.relative_to(ROOT))
    (root / "results" / "oracle.md").write_text(PAGE)
    (root / "results" / "brief.md").write_text(BRIEF)
    assert call("report", *sorted((root / "results").iterdir()), "--tables") == 0
    return root


def parts_of(page):
    """The marked parts of a page, by the first word of their marks."""
    found = re.findall(
        r"<!-- kvbench: (\w+)[^\n]*-->\n\n(.*?)\n\n<!-- end -->",
        page.read_text().replace("\\_", "_"),
        re.DOTALL,
    )
    return dict(found)


@pytest.fixture(scope="module")
def parts(tree):
    return parts_of(tree / "results" / "oracle.md")


@pytest.mark.parametrize("name", ["README.md", "results/*.md", "results/*/README.md"])
def test_pages_are_as_the_command_makes_them(tree, name):
    for page in tree.glob(name):
        if page.name not in ("oracle.md", "brief.md"):
            kept = ROOT / page.relative_to(tree)
            assert kept.exists() and page.read_text() == kept.read_text(), (
                f"{kept.relative_to(ROOT)} is out of date: kvbench report results/* --tables"
            )


def test_links_of_machine_pages_lead_somewhere(tree):
    for page in tree.glob("results/*/README.md"):
        links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
        assert links and all((page.parent / link).exists() for link in links), page


def test_links_of_marked_parts_lead_somewhere(tree, parts):
    for text in parts.values():
        links = re.findall(r"\]\(([^)#]+)\)", text)
        assert all((tree / "results" / link).exists() for link in links), links


# ---- what cells say -----------------------------------------------------------------------------


def shown(text):
    """The numbers at the beginning of a cell: a value and its interval."""
    return list(map(float, re.match(rf"({NUMBER}) \(({NUMBER}) to ({NUMBER})\)", text).groups()))


def rounded(values):
    """As cells have them, in three digits."""
    return [float(f"{each:.0f}" if each >= 100 else f"{each:.3g}") for each in values]


def rows(text):
    """Of all tables of a part: a list of cells for each row."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def standing(parts, origin):
    """By machine, the cells of 16, 8 and 4 bits of those that are there by a score or by quick."""
    found = {}
    for row in rows(parts["scores"]):
        if f"[{origin}" in row[-1]:
            name = re.match(r"\[([\w-]+)\]", row[-5])[1]
            found[name] = dict(zip((16, 8, 4), row[-4:-1], strict=True))
    return found


# ---- scores and sweeps ---------------------------------------------------------------------------


@cache
def kernels_of(machine):
    """By format, variant and layout of kernels, the seconds of the launches: of the fastest kernel
    of each format, in the rounds that have all of them; in older runs of every kernel, each by
    itself.
    """
    visits = at_speed(journal(f"{machine}/quick"))
    manifest = json.loads((RESULTS / machine / "quick" / "manifest.json").read_text())
    if line := manifest.get("line"):
        own = [each for each in visits if each["point"].startswith("contrast.kernel.")]
        words = ("dtype", "variant", "layout")
        names = [tuple(point[word] for word in words) for point in line["points"]]
        return {each: list(by_launch(own, each[0]).values()) for each in names}
    found = defaultdict(list)
    for visit in visits:
        if named := WORKLOAD.match(visit["point"]):
            found[tuple(named.group("dtype", "variant", "layout"))].append(visit)
    return {each: list(by_launch(own, "point").values()) for each, own in found.items()}


def test_sweeps_are_those_of_the_journals(parts):
    found = standing(parts, "quick")
    assert found
    for machine, cells in found.items():
        for bits, cell in cells.items():
            own = {
                (dtype, variant, layout): seconds
                for (dtype, variant, layout), seconds in kernels_of(machine).items()
                if WIDE.get(dtype) == bits and (bits < 16 or variant == "flash")
            }
            if not own:
                assert cell == ""
                continue
            fastest = min(own, key=lambda each: median(own[each]))
            assert "<sub>{} {}, {}</sub>".format(*fastest) in cell, (machine, own)
            assert shown(cell) == rounded(tokens(own[fastest])), (machine, cell)


def score_visits(machine):
    with tarfile.open(next((RESULTS / machine).glob("*.tar.gz"))) as archive:
        return read(archive.extractfile("journal.jsonl").read().decode().splitlines())


def test_scores_are_those_of_the_archives(parts):
    found = standing(parts, "score")
    assert found
    for machine, cells in found.items():
        visits = at_speed(score_visits(machine))
        for bits, cell in cells.items():
            dtype, variant, layout = re.search(r"<sub>(\w+) (\w+), (\w+)</sub>", cell).groups()
            name = rf"decode\.{variant}\.{layout}\.{dtype}\..*/auto\."
            own = [each for each in visits if re.match(name, each["point"])]
            assert WIDE[dtype] == bits
            assert shown(cell) == rounded(tokens(list(by_launch(own, "point").values())))
            rate = own[0]["traffic"]["point"]["bytes_compulsory"] / median(
                by_launch(own, "point").values()
            )
            share = f"{rate / plain_reads(visits):.0%}"
            assert re.search(r", (\d+%)<br>", cell)[1] == share, cell


def plain_reads(visits):
    """Bytes a second of the run's own plain reads of memory, by most CPUs."""
    probes = defaultdict(list)
    for visit in visits:
        if found := re.match(r"read\..*/bytes(\d+)/cpu([\d,-]+)", visit["point"]):
            probes[len(found[2]), int(found[1])].append(visit)
    own = probes[max(probes)]
    return own[0]["traffic"]["point"]["bytes_compulsory"] / median(by_launch(own, "point").values())


def test_ranks_are_of_scores_alone_and_rise(parts):
    """Two machines share a rank, or the intervals of 16 bits lie apart."""
    head, *_ = rows(parts["scores"])
    if head[0] != "rank":
        assert parts["scores"].count("[score") == 1
        return
    ranked = [(row[0], shown(row[2])) for row in rows(parts["scores"]) if "[score" in row[-1]]
    for (rank, own), (other, following) in itertools.pairwise(ranked):
        assert rank == other or own[1] > following[2] or int(other) == 1
    assert all(row[0] == "" for row in rows(parts["scores"]) if "[quick]" in row[-1])


def test_all_machines_are_listed(parts):
    for machine in MACHINES:
        assert f"[{machine.name}]({machine.name}/README.md)" in parts["machines"]
    assert parts["machines"].count("](") == len(MACHINES) + sum(
        len(list(machine.glob("*/manifest.json"))) + len(list(machine.glob("*.tar.gz")))
        for machine in MACHINES
    )


# ---- engines -------------------------------------------------------------------------------------


def test_engines_are_those_of_the_journal(parts):
    """Every cell of every engine, launch by launch."""
    heads, _, ours, *found = rows(parts["engines"])
    assert heads == ["engine", "layout", *DTYPES] and len(found) >= 8
    for dtype, cell in zip(DTYPES, ours[2:], strict=True):
        assert reached(cell) == pytest.approx(100 * shares("kvbench", "", dtype), abs=0.6), dtype
    compared = 0
    for engine, layout, *cells in found:
        for dtype, cell in zip(DTYPES, cells, strict=True):
            if cell:
                named = re.search(r", (i8|e4m3)<br>", cell)
                at = named[1] if named else dtype
                assert shown(cell) == rounded(expected(engine, layout, at)), (engine, dtype, cell)
                assert reached(cell) == pytest.approx(100 * shares(engine, layout, at), abs=0.6)
                compared += 1
            else:
                assert (engine, layout, dtype) not in {
                    (engine, layout, cell[2]) for cell, engine, layout in points().values()
                }
    assert compared >= 20


def reached(cell):
    """The per cent of a read that a cell states."""
    return int(re.search(r"<sub>(\d+)% of read speed</sub>$", cell)[1])


def test_the_table_of_engines_says_what_it_is_of(parts):
    text = " ".join(parts["engines"].split())
    manifest = json.loads((RESULTS / ENGINES / "manifest.json").read_text())
    assert manifest["created"][:10] in text and "6 launches" in text and "8 shapes" in text
    for engine in manifest["engines"]:
        shown = engine["name"] in [row[0] for row in rows(parts["engines"])]
        assert shown == (f"{engine['name']} {engine['version']}" in text), engine["name"]


def test_the_screen_is_what_that_run_prints(tree, parts):
    """The short form has the machine, the grade and the table, in their order."""
    said = "\n".join(short(kvbench.load(RESULTS / "zen4-kvm-2" / "quick").findings()))
    whole, brief = (
        "\n".join(line[4:] for line in each["screen"].splitlines())
        for each in (parts, parts_of(tree / "results" / "brief.md"))
    )
    assert whole == said
    kept = brief.split("\n\n")
    places = [said.index(part) for part in kept]
    assert places == sorted(places) and places[0] == 0 and len(kept) == 3
    assert "Fastest decode" not in brief and "\n  kernel " in brief


def test_short_forms_say_less(tree, parts):
    brief = parts_of(tree / "results" / "brief.md")
    assert rows(brief["scores"]) == rows(parts["scores"])
    assert len(brief["scores"]) < len(parts["scores"])
    assert "sha256" in parts["engines"] and "sha256" not in brief["engines"]
    assert rows(brief["engines"])[0] == ["engine", "layout", "f16"]

"""kvbench report MACHINE... --tables on planted folders: what it writes, and what it refuses."""

import contextlib
import io
import re
from dataclasses import replace

import pytest

from kvbench.model import AUTO, Fact
from tests.cli.test_cli import call, errors_of, output_of
from tests.made_run import KIB
from tests.report import made as runs
from tests.score import made as scores

SCORES = "<!-- kvbench: scores -->\n<!-- end -->\n"
PAGE = f"# Results\n\nkept  \n\n{SCORES}"
ONE_CPU = {
    "vendor": Fact("GenuineX", "", "high"),
    "l1d": Fact(32 * KIB, "", "high"),
    "l2": Fact(1024 * KIB, "", "high"),
}


def host(**facts):
    return replace(scores.MACHINE, facts=scores.MACHINE.facts | ONE_CPU | facts)


METAL = host(hypervisor=Fact("none", "", "high"))


def scored(folder, times=1.0, version="1.0.0", machine=None, **more):
    """A machine with a score. `times`: how much faster it is."""
    visits = list(scores.records(scores.points(), times=times))
    facts = {"versions": {"kvbench": version}, "run": f"run-{folder.name}"} | more
    return scores.run(folder / "score", visits=visits, machine=machine or host(), **facts)


def swept(folder, times=1.0, **more):
    """A machine with a run of quick, of the score's workload."""
    own = [each for each in scores.points() if each.schedule == AUTO]
    visits = list(scores.records(own, 7, times))
    facts = {"suite": "quick", "models": ("llama-3-8b",), "launches": 7, "machine": host()}
    return runs.directory(folder / "quick", visits, [*own, scores.READ], **facts | more)


def cells(text, name):
    """Of the row of a machine: what stands in its columns."""
    row = next(line for line in text.splitlines() if line.startswith("|") and f"[{name}]" in line)
    return [cell.strip() for cell in row.strip("|").split("|")]


def tables(folder, capsys):
    """What the command prints, and the page beside the machines."""
    found = output_of(capsys, "report", *sorted(map(str, folder.iterdir())), "--tables")
    return found, (folder / "README.md").read_text()


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Seven machines: a tie, an older version, bare metal, an invalid score beside a sweep, a
    sweep.
    """
    folder = tmp_path_factory.mktemp("planted") / "results"
    scored(folder / "fast", 1.5)
    scored(folder / "level", 1.501)
    scored(folder / "slow", 1.0)
    scored(folder / "old", 3.0, "0.9.0")
    scored(folder / "metal", 2.0, machine=METAL)
    scores.run(folder / "broken" / "score", own=list(scores.points())[:2], longer=False)
    swept(folder / "broken")
    swept(folder / "sweep", 4.0)
    (folder / "README.md").write_text(PAGE)
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("of mine")
    return folder


@pytest.fixture(scope="module")
def made(planted):
    """The same after one call of the command, with a page above; and what it printed."""
    (planted.parent / "README.md").write_text(SCORES)
    (planted / "more.md").write_text("<!-- kvbench: machines -->\r\n<!-- end -->\r\n")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert call("report", *sorted(map(str, planted.iterdir())), "--tables") == 0
    return planted, out.getvalue()


@pytest.fixture
def page(made):
    """The page beside the machines."""
    return (made[0] / "README.md").read_text()


@pytest.fixture
def results(tmp_path):
    """One machine with a sweep, and a page, which a test may change."""
    folder = tmp_path / "results"
    swept(folder / "sweep")
    (folder / "README.md").write_text(PAGE)
    (folder / "notes.txt").write_text("of mine")
    return folder


def test_ranks_ties_and_versions(page):
    assert {name: cells(page, name)[0] for name in ("fast", "level", "slow", "old")} == {
        "fast": "1",
        "level": "1",
        "slow": "3",
        "old": "1",
    }
    order = re.findall(r"(?m)^\| *\d? *\| \[(\w+)\]", page)
    assert order == ["level", "fast", "slow", "old", "broken", "sweep"]
    assert "Ranks start again for each version of kvbench" in " ".join(page.split())
    assert page.startswith("# Results\n\nkept  \n\n<!-- kvbench: scores -->\n")


def test_it_prints_a_line_for_each_page(made):
    folder, said = made
    assert f"{folder}/README.md: changed\n" in said and f"{folder}/fast/README.md: " in said
    assert "notes" not in said and "empty" not in said and said.count("\n") == 10


def test_a_machine_without_a_score_that_counts_stands_by_its_sweep(made, page):
    for name in ("broken", "sweep"):
        own = cells(page, name)
        assert own[0] == "" and "[quick]" in own[-1] and f"({name}/quick)" in own[-1]
    assert "only a score has rules" in " ".join(page.split())
    text = (made[0] / "broken" / "README.md").read_text()
    assert "INVALID" in text and "## quick" in text


def test_bare_metal_has_a_list_of_its_own(page):
    virtual, metal = page.split("**Bare metal.**")
    assert "[metal]" in metal and "[metal]" not in virtual and "[fast]" in virtual


def test_no_bare_metal_and_no_score_is_said(results, capsys):
    page = " ".join(tables(results, capsys)[1].split())
    assert "No machine has been measured on bare metal yet." in page
    assert "No machine has a score so far." in page and "The rank" not in page


def test_kinds_of_cpu_are_counted(results, page, capsys):
    """One kind; of two other machines, with another cache and of another vendor, there are two."""
    assert "1 kind of CPU has a score so far" in " ".join(page.split())
    scored(results / "other", machine=host(l2=Fact(512 * KIB, "", "high")))
    scored(results / "third", machine=host(vendor=Fact("GenuineY", "", "high")))
    assert "2 kinds of CPU have a score" in " ".join(tables(results, capsys)[1].split())


def test_one_score_has_no_rank(results, capsys):
    """Nor has the table a column for it."""
    scored(results / "alone", 2.0)
    page = tables(results, capsys)[1]
    assert "| machine | 16 bits |" in page and "| rank |" not in page and "The rank" not in page
    assert "without a rank" not in page and "stands in for a missing score" in page


def test_an_owner_names_a_cpu(results, capsys):
    (results / "sweep" / "name.txt").write_text("Zen 9 (a host's)\n")
    assert "<sub>Zen 9 (a host's); " in tables(results, capsys)[1]
    assert "Zen 9" in (results / "sweep" / "README.md").read_text()


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "x" * 61, "bell\a"])
def test_a_name_that_is_none_is_refused(results, capsys, text):
    (results / "sweep" / "name.txt").write_text(text)
    named = sorted(map(str, results.iterdir()))
    said = errors_of(capsys, "report", *named, "--tables")
    assert "name.txt is not a name (write one line" in said
    assert (results / "README.md").read_text() == PAGE


def test_a_machine_page_has_its_runs_and_its_score(made):
    page = (made[0] / "broken" / "README.md").read_text()
    assert page.startswith("<!-- Made by `kvbench report results/* --tables`.")
    assert "| [quick](quick) |" in page and "Fastest decode" in page
    page = (made[0] / "fast" / "README.md").read_text()
    assert "## Score" in page and " VALID: " in page and "[score](score)" in page


def test_what_is_as_it_was_is_left_alone(results, capsys):
    tables(results, capsys)
    pages = sorted(results.rglob("README.md"))
    times = [path.stat().st_mtime_ns for path in pages]
    said, _ = tables(results, capsys)
    assert [path.stat().st_mtime_ns for path in pages] == times
    assert said.count("as it was") == len(pages) == 2 and "changed" not in said


def test_links_begin_at_the_page_and_line_ends_are_its_own(made):
    folder, _ = made
    assert "[fast](results/fast/README.md)" in (folder.parent / "README.md").read_text()
    page = (folder / "more.md").read_bytes().decode()
    assert "[sweep](sweep/README.md)" in page and "\r\n" in page
    assert not re.search("[^\r]\n", page)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n<!-- kvbench: scors -->\n<!-- end -->", "line 2: 'scors' is not known .*scores"),
        ("<!-- kvbench: scores -->\n", "line 1: .*no end"),
        (f"{SCORES}<!-- kvbench: screen fast/quick -->\n<!-- end -->\n", "line 3: .*'fast/quick'"),
        ("<!-- kvbench: screen -->\n<!-- end -->\n", "line 1: screen names no run .*sweep/quick"),
        ("<!-- kvbench: scores fast -->\n<!-- end -->\n", "line 1: .*'fast'"),
        ("<!-- kvbench: screen sweep/quick shrot -->\n<!-- end -->\n", "line 1: .*short"),
        ("<!-- kvbench: engines sweep/quick -->\n<!-- end -->\n", "line 1: .*'sweep/quick'"),
        ("<!-- kvbench: -->\n<!-- end -->\n", "line 1: .*scores"),
    ],
)
def test_nothing_is_written_for_a_bad_mark(results, capsys, text, words):
    bad = results / "zz.md"
    bad.write_text(text)
    named = sorted(map(str, results.iterdir()))
    said = errors_of(capsys, "report", *named, "--tables")
    assert re.search(rf"zz\.md, {words}", said) and said.count("\n") == 1
    assert not list(results.glob("*/README.md")) and (results / "README.md").read_text() == PAGE


def test_pages_that_cannot_be_written_are_refused(results, capsys, tmp_path):
    named, page = sorted(map(str, results.iterdir())), results / "sweep" / "README.md"
    page.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("x")
    assert "README.md: it is a link" in errors_of(capsys, "report", *named, "--tables")
    page.unlink()
    page.mkdir()
    assert "README.md: it is a folder" in errors_of(capsys, "report", *named, "--tables")
    page.rmdir()
    page.write_text("# by hand")
    assert "was not made by this command" in errors_of(capsys, "report", *named, "--tables")
    assert page.read_text() == "# by hand"
    assert (results / "README.md").read_text() == PAGE


def test_a_machine_that_cannot_be_read_is_named(results, capsys):
    named = sorted(map(str, results.iterdir()))
    (results / "sweep" / "quick" / "machine.json").write_text("{}")
    assert "sweep/quick/machine.json" in errors_of(capsys, "report", *named, "--tables")
    assert not list(results.glob("*/README.md"))


def test_what_is_named(results, planted, capsys):
    """Runs, nothing of use, or some machines alone are refused."""
    run, file = results / "sweep" / "quick", results / "notes.txt"
    assert f"{run} is a run" in errors_of(capsys, "report", str(run), "--tables")
    assert "no folder of a machine" in errors_of(capsys, "report", str(file), "--tables")
    assert "there is no " in errors_of(capsys, "report", str(results / "no"), "--tables")
    some = errors_of(capsys, "report", str(planted / "fast"), "--tables")
    assert "lies beside them and is not named" in some
    both = errors_of(capsys, "report", *map(str, planted.iterdir()), results / "sweep", "--tables")
    assert "machines lie in " in both and not list(results.glob("*/README.md"))


@pytest.mark.parametrize("more", [("--format", "md"), ("--out", "x"), ("--redact",)])
def test_it_stands_alone(results, capsys, more):
    said = errors_of(capsys, "report", str(results / "sweep"), "--tables", *more)
    assert f"--tables and {more[0]}" in said


@pytest.mark.parametrize("named", [".", "../sweep", ".."])
def test_a_folder_named_by_dots(results, monkeypatch, named):
    """A page and its links have the folder's own name."""
    at = results / "sweep" / ("quick" if named == ".." else "")
    monkeypatch.chdir(at)
    assert call("report", named, "--tables") == 0
    assert "[sweep](sweep/README.md)" in (results / "README.md").read_text()
    assert "\n# sweep\n" in (results / "sweep" / "README.md").read_text()


def test_from_within_the_folder(results, capsys, monkeypatch):
    (results.parent / "README.md").write_text(SCORES)
    monkeypatch.chdir(results)
    named = sorted(path.name for path in results.iterdir())
    assert call("report", *named, "--tables") == 0
    assert "(results/sweep/README.md)" in (results.parent / "README.md").read_text()

"""What shows a run chooses nothing and computes nothing: no maximum, no median, no sorting by
value, no division, no comparison of numbers. All of these belong to the analysis.

How long a list or a text is may be compared: that is layout. Paths are joined by a slash.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.raw import ROOT

REPORT = ROOT / "kvbench" / "report"
CHOOSING = {
    *("idxmax", "idxmin", "argmax", "argmin", "max", "min", "nlargest", "nsmallest"),
    *("median", "mean", "fmean", "quantile", "sort", "sorted", "sort_values", "rank"),
}
LENGTHS = re.compile(r"\blen\b|\.nunique\(")
PATHS = re.compile(r"^(folder|below|out)\b")
UNITS = re.compile(r"^\w+ //? (KIB|MIB|GIB|GB)$")
DRAWS = re.compile(r"\b(Axes|Canvas)\b")  # what a function takes or returns that draws

# Files that do so, each with the reason why it may. One that has become clean must leave the list.
EXEMPT = {
    "words/phrases.py": "it writes numbers",
    "course.py": "it tells of a visit while it is measured, before there are answers",
    "explain.py": "its model is computed, and one row of it is told",
    "gallery.py": "it orders scores by the name of their machine",
    "history.py": "it tells of many runs, and what needs attention first",
    "machine_text.py": "it tells a profile, which has no answers",
    "page/__init__.py": "it names the styles of a picture that are frequent",
    "planned.py": "it tells a plan, before anything is measured",
    "sizes.py": "its cache is computed, and a step is the largest that fits",
    "figures/mixed.py": "it finds places for names that nothing else takes",
    "figures/look.py": "it orders colours by name, and keeps labels apart",
    "words/numa.py": "it writes numbers",
    "words/advice.jinja": "it tells one profile, of two copies the faster",
    "words/compared.jinja": "it tells of two runs what each could have seen",
    "words/explain.jinja": "its model is computed",
    "words/hosts.jinja": "it tells how far hosts of a fleet lie apart",
    "words/mixed.jinja": "errors have a format of their own",
    "words/score.jinja": "a score has a format of its own",
    "words/size.jinja": "its cache is computed",
}
FILES = sorted(
    str(path.relative_to(REPORT))
    for path in REPORT.rglob("*")
    if path.suffix in (".py", ".jinja", ".html")
)


def computed(name: str) -> list[str]:
    text = (REPORT / name).read_text()
    return list(in_python(text) if name.endswith(".py") else in_template(text))


def in_python(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    drawing = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and draws(function)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        said = ast.unparse(node) if isinstance(node, ast.expr) else ""
        layout = LENGTHS.search(said) or PATHS.match(said) or UNITS.match(said)
        if id(node) not in drawing and chooses(node) and not layout:
            yield f"{node.lineno}: {said}"


def draws(function: ast.FunctionDef) -> bool:
    kinds = [*(each.annotation for each in function.args.args), function.returns]
    return any(DRAWS.search(ast.unparse(kind)) for kind in kinds if kind)


def chooses(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in CHOOSING
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div | ast.FloorDiv)
    if isinstance(node, ast.Compare):
        return any(isinstance(each, ast.Lt | ast.Gt | ast.LtE | ast.GtE) for each in node.ops)
    return False


def in_template(text: str) -> Iterator[str]:
    """Expressions, without the words in them."""
    for found in re.findall(r"\{[{%](.*?)[%}]\}", text, flags=re.DOTALL):
        bare = re.sub(r'"[^"]*"', "", found)
        compared = re.search(r"[<>]", bare) and "length" not in bare
        if compared or re.search(r"\|\s*(max|min|sort|median|sum|dictsort)\b|/", bare):
            yield " ".join(found.split())


@pytest.mark.parametrize("name", FILES)
def test_it_shows_and_nothing_else(name):
    found = computed(name)
    assert bool(found) == (name in EXEMPT), found


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(rows):\n    return rows.loc[rows['gbps'].idxmax()]", 1),
        ("x = sorted(rows, key=rate)[0]", 1),
        ("share = one / other", 1),
        ("word = 'yes' if ratio > 1 else 'no'", 1),
        ("def draw(axes: Axes):\n    axes.set_xlim(max(xs) / 2)", 0),
        ("more = len(found) > most", 0),
        ("wide = max(map(len, names))", 0),
        ("same = one == other", 0),
    ],
)
def test_what_computes_is_found(text, count):
    assert len(list(in_python(text))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("{{ rates|max }}", 1),
        ("{% if each.low > 1 %}", 1),
        ("{{ one / other }}", 1),
        ('{{ "a / b < c" }} tokens/s', 0),
        ("{% if found|length > 3 %}", 0),
        ("{{ each.figure|enclosed }}", 0),
    ],
)
def test_what_computes_in_a_template_is_found(text, count):
    assert len(list(in_template(text))) == count

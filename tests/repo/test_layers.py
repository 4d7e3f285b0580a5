"""The house rules of the package, read from its source: which module imports which, which module
prints, and where words are spelled.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kvbench.native import default_library

PACKAGE = Path(__file__).resolve().parents[2] / "kvbench"
FILES = sorted(PACKAGE.rglob("*.py"))

# A module imports only from ranks below its own, or from its own folder.
RANKS = {
    0: {"", "closing", "errors", "grouping", "intervals", "leftovers", "named", "texts", "units"},
    1: {"apart", "model"},
    2: {"oracle"},
    3: {"native", "store", "regime", "watched"},
    4: {"machine", "peers"},
    5: {"suite", "plan", "worker", "runner", "analysis"},
    6: {"score", "checkpoint"},
    7: {"report", "gate", "verify"},
    8: {"results", "history", "exports"},
    9: {"session", "sizing", "submission", "fleet"},
    10: {"shelf"},
    11: {"cli"},
}
CHAIN = ["suite", "plan", "worker", "runner"]  # within rank 5 the measuring half is itself a line
RANK = {module: rank for rank, modules in RANKS.items() for module in modules}
HOMES = {
    "cffi": "native",
    "pyperf": "store",
    "matplotlib": "report",
    "ruptures": "analysis",
    "click": "cli",
}


def module_of(path: Path) -> str:
    """Return the part of the package that a file belongs to: "native" for native/cache.py, "" for
    files of the package itself.
    """
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py").replace("__init__", "")


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    """Return the dotted names of everything that a file imports, anywhere in the file."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "kvbench":
                yield from (f"kvbench.{alias.name}" for alias in node.names)
            else:
                yield node.module


def may_import(user: str, used: str) -> bool:
    if user == used or RANK[used] < RANK[user]:
        return True
    return user in CHAIN and used in CHAIN and CHAIN.index(used) < CHAIN.index(user)


def calls(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_native_calls_the_library(path):
    """Values from cffi have no types, so mypy could not check the modules that use them."""
    if module_of(path) != "native":
        used = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
        assert not used & {"ffi", "lib"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_import_only_from_lower_ranks(path):
    user = module_of(path)
    assert user in RANK, f"{user} has no rank"
    for name in imports(path):
        package, _, rest = name.partition(".")
        if package == "kvbench":
            used = rest.partition(".")[0]
            assert may_import(user, used), (
                f"{user} (rank {RANK[user]}) imports {used} (rank {RANK[used]})"
            )
        elif package in HOMES:
            assert user == HOMES[package], (
                f"{package} is imported by {HOMES[package]} alone, not by {user}"
            )


def test_only_the_command_line_speaks():
    for path in FILES:
        if module_of(path) != "cli":
            spoken = {
                "print",
                "exit",
                "quit",
                "sys.exit",
                "os._exit",
                "sys.stdout.write",
                "sys.stderr.write",
            }
            assert not spoken & set(calls(path)), path
            assert "sys.argv" not in path.read_text(), path


def test_one_module_prints_everything():
    said = [
        path.name for path in FILES if {"click.echo", "click.secho", "print"} & set(calls(path))
    ]
    assert said == ["_streams.py"]


def test_words_come_from_the_library():
    """No Python file may list layouts, dtypes, tiers or variants. Two such words in one literal
    count as a list.
    """
    library = default_library()
    lists = [set(library.words(kind)) for kind in ("layout", "dtype", "isa", "variant")]
    for path in FILES:
        for node in nodes(path):
            items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            texts = {item.value for item in items if isinstance(item, ast.Constant)}
            for words in lists:
                assert len(texts & words) < 2, (
                    f"{path}:{node.lineno} spells {sorted(texts & words)}"
                )

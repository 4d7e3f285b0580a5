"""A report as people have it: the page, the figures' CSV, the terminal's text and the JSON."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path

_VOID = {"meta", "br", "hr", "img", "input", "link", "wbr"}
_PROSE = {"p", "li", "h1", "h2", "h3", "figcaption", "dt", "dd", "summary"}
_LONG = 60  # letters of a line that a terminal may have broken
_HIDDEN = {"script", "style", "svg", "select", "nav", "title"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    children: list["Node | str"] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator["Node"]:
        for child in self.children:
            if isinstance(child, Node) and child.tag not in _HIDDEN:
                if child.tag in tags:
                    yield child
                yield from child.all(*tags)

    def of_class(self, name: str) -> Iterator["Node"]:
        for node in self.all("div", "p", "section", "dl", "ul", "table", "span"):
            if name in (node.attributes.get("class") or "").split():
                yield node

    @property
    def text(self) -> str:
        parts = (
            child if isinstance(child, str) else child.text
            for child in self.children
            if isinstance(child, str) or child.tag not in _HIDDEN
        )
        return " ".join("".join(parts).split())


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self.stack[-1].children.append(node)
        if tag not in _VOID:
            self.stack.append(node)

    def handle_endtag(self, tag: str) -> None:
        open_tags = [node.tag for node in self.stack]
        if tag in open_tags[1:]:
            del self.stack[len(open_tags) - 1 - open_tags[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        self.stack[-1].children.append(data)


Row = dict[str, str]


@dataclass(frozen=True)
class Table:
    title: str
    rows: list[Row]

    @property
    def heads(self) -> set[str]:
        return set(self.rows[0]) if self.rows else set()


@dataclass(frozen=True)
class Said:
    """A paragraph, and where it stands."""

    place: str
    text: str


@dataclass
class Report:
    page: str = ""
    figures: dict[str, list[Row]] = field(default_factory=dict)
    terminal: str = ""
    json: dict[str, object] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)  # what other commands print, by their name

    @cached_property
    def root(self) -> Node:
        tree = _Tree()
        tree.feed(self.page)
        return tree.stack[0]

    @cached_property
    def tables(self) -> list[Table]:
        return [_table(node) for node in self.root.all("table")]

    @cached_property
    def tiles(self) -> dict[str, str]:
        """Text by title: its value, then what stands below."""
        found = {}
        for node in self.root.of_class("tile"):
            head, *rest = node.all("h2", "h3", "p", "dt", "dd")
            found[head.text] = "; ".join(each.text for each in rest)
        return found

    @cached_property
    def said(self) -> list[Said]:
        """What stands in sentences, on the page and on the terminal."""
        found = [Said("page", node.text) for node in self.root.all(*_PROSE)]
        found += [Said(f"tile {title}", text) for title, text in self.tiles.items()]
        found += [Said("terminal", text) for text in paragraphs(self.terminal)]
        for place, printed in self.asked.items():
            found += [Said(place, " ".join(part.split())) for part in printed.split("\n\n")]
        return found

    def with_heads(self, *heads: str) -> Iterator[Table]:
        yield from (table for table in self.tables if table.heads >= set(heads))

    def sentences(self, pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
        for said in self.said:
            yield from ((said.place, match) for match in re.finditer(pattern, said.text))

    @cached_property
    def points(self) -> dict[frozenset[str], Row]:
        """Rows of the table of every point, by the words of their name."""
        rows = (row for table in self.with_heads("point", "GB/s") for row in table.rows)
        return {words(row["point"]): row for row in rows}

    def named(self, name: str) -> frozenset[str] | None:
        """The point of the table that a name stands for."""
        wanted = words(name)
        found = [point for point in self.points if point <= wanted]
        return max(found, key=len) if found else None


def _table(node: Node) -> Table:
    box = [cell.text for cell in node.all("caption")]
    rows = [[cell.text for cell in row.all("th", "td")] for row in node.all("tr")]
    heads = rows[0] if rows else []
    cells = [dict(zip(heads, row, strict=False)) for row in rows[1:]]
    return Table(box[0] if box else " ".join(heads[:2]), cells)


def words(name: str) -> frozenset[str]:
    """The words of a point, of its short name or of the long one."""
    if not re.match(r"\w+\.[\w-]+\.", name):
        name = re.sub(r" (\d+) threads?\b", r" threads=\1", name)
        return frozenset(re.sub(r"([\d.]+) (\w+) between", r"between=\1\2", name).split())
    kernel, shape, context, where, *_ = name.split("/")
    op, variant, layout, dtype, _ = kernel.split(".")
    heads = re.search(r"\.kv(\d+)", shape)
    cpus, pages, residency = where.split(".")[:3]
    tokens = re.match(r"ctx(\d+)", context)
    found = {op, variant, layout, dtype, residency, f"threads={_count(cpus)}", pages}
    between = re.search(r"\.between(\d+)", name)
    if between:
        found |= {f"between={size(int(between[1])).replace(' ', '')}"}
    return frozenset(found | {f"kv={heads[1]}" if heads else "", f"t={tokens[1]}"})


def size(count: float) -> str:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.4g} {unit}"
    return f"{count:.4g} B"


def _count(cpus: str) -> int:
    """Of `cpu0-1,4`."""
    ends = [part.split("-") for part in cpus.removeprefix("cpu").split(",")]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ends)


def paragraphs(text: str) -> list[str]:
    """Of a terminal, where a long line goes on in lines that are indented further."""
    found: list[tuple[int, str]] = []
    before = ""
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if found and len(before) > _LONG and depth > found[-1][0]:
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
        else:
            found.append((depth, line.strip()))
        before = line
    return [" ".join(text.split()) for _, text in found if text]


def read(folder: Path) -> Report:
    """A folder that `kvbench report` wrote, with what commands printed of the run beside it."""
    figures = {path.stem: rows_of(path) for path in folder.glob("figures/*.csv")}
    texts = {path.stem: path.read_text() for path in folder.glob("*.txt")}
    found = json.loads((folder / "run.json").read_text())
    return Report((folder / "index.html").read_text(), figures, texts.pop("terminal"), found, texts)


def rows_of(path: Path) -> list[Row]:
    """Of a CSV file."""
    return list(csv.DictReader(io.StringIO(path.read_text())))

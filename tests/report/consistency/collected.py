"""What each part of a report claims, in words that all parts share."""

import re
from collections.abc import Iterator

from tests.report.consistency.answered import DTYPE as _DTYPE
from tests.report.consistency.answered import answers, limit
from tests.report.consistency.claims import NUMBER, Claim, claim
from tests.report.consistency.reading import Report, Row, Table, words

_HELD = {  # the same whole by each of its names
    "its witness": "reads of its rows",
    "its rows' read": "reads of its rows",
    "reads of its rows": "reads of its rows",
    "memory read": "plain reads of memory",
    "plain reads of memory": "plain reads of memory",
    "core speed": "core speed",
    "its core speed": "core speed",
}
_PLAIN = "read", "plain", "DRAM"
_SHOWN = {"tokens/s": "tokens/s", "GB/s": "GB/s"}


def claims(report: Report) -> Iterator[Claim]:
    yield from _points(report)
    yield from _bars(report)
    yield from _tokens(report)
    yield from _figures(report)
    yield from _json(report)
    yield from _limits(report)
    yield from _gains(report)
    yield from _reads(report)
    yield from _counts(report)
    yield from _probes(report)
    yield from _fits(report)
    yield from _sizes(report)
    yield from answers(report)
    yield from _others(report)


def _cells(subject: object, row: Row, place: str) -> Iterator[Claim]:
    """Of a row of a table, whose heads name quantities and wholes."""
    for head, text in row.items():
        whole = _HELD.get(head.removeprefix("% of ")) if head.startswith("% of ") else None
        if head in _SHOWN:
            yield from claim(subject, head, text, "", place)
        elif whole:
            yield from claim(subject, "share", text, whole, place)


def _points(report: Report) -> Iterator[Claim]:
    for point, row in report.points.items():
        if "decode" in point:
            yield from _cells(point, row, "every point")


def bars(report: Report) -> dict[str, frozenset[str]]:
    """The point of each dtype in the chart of dtypes."""
    return {
        row["dtype"]: point
        for row in report.figures.get("hero", [])
        if (point := report.named(row["point"]))
    }


def dtype_tables(report: Report) -> Iterator[Table]:
    for table in report.with_heads("dtype", "tokens/s"):
        if "model" not in table.heads:
            yield table


def _bars(report: Report) -> Iterator[Claim]:
    for row in report.figures.get("hero", []):
        yield from claim(
            f"bar {row['dtype']}", "tokens/s", row["tokens_per_second"], "", "hero.csv"
        )
        yield from claim(f"bar {row['dtype']}", "GB/s", row["gbps"], "", "hero.csv")
    for table in dtype_tables(report):
        for row in table.rows:
            yield from _cells(f"bar {row['dtype']}", row, "dtypes")
    best = next((text for name, text in report.tiles.items() if "astest" in name), "")
    dtype = re.search(rf"; ({_DTYPE})\b", best)
    if dtype:
        yield from claim(f"bar {dtype[1]}", "tokens/s", best, "", "tile")


def _tokens(report: Report) -> Iterator[Claim]:
    """A row of that table has a point's words in columns of its own. Those of the page's model."""
    header = " ".join(node.text for node in report.root.all("header"))
    for table in report.with_heads("model", "layout", "dtype", "tokens/s"):
        for row in table.rows:
            variant = set() if row.get("variant") == "flash" else {row.get("variant", "")}
            named = {row["layout"], row["dtype"], f"t={row['context']}", "decode", "rotate"}
            point = frozenset(named | variant | {f"threads={row['threads']}"})
            of_page = any(model in header for model in row["model"].split(", "))
            if point in report.points and of_page and row.get("batch") == "1":
                yield from _cells(point, row, "tokens/s")


def _figures(report: Report) -> Iterator[Claim]:
    for name in ("hero", "saturation", "stores", "axes"):
        for row in report.figures.get(name, []):
            point = report.named(row.get("name") or row.get("point") or "")
            if point and "decode" in point:
                yield from claim(point, "GB/s", row.get("gbps", ""), "", f"{name}.csv")
    rows = report.figures.get("roofline", [])
    roofs = {}  # of a point, else of its dtype and group
    for row in (row for row in rows if row["kind"] == "core speed"):
        for key in (_short(row), (row["dtype"], row["group"])):
            roofs.setdefault(key, float(row["gflops"]))
    for row in rows:
        point = report.named(_short(row))
        own = _short(row) if "computes" in row else (row["dtype"], row["group"])
        if row["kind"] == "point" and point:
            yield from claim(point, "GB/s", row["gbps"], "", "roofline.csv")
            if own in roofs:
                share = f"{float(row['gflops']) / roofs[own]:.9f}"
                yield from claim(point, "share", share, "core speed", "roofline.csv")
    for row in report.figures.get("stores", []):
        point = report.named(row["name"])
        if point and row.get("copy_gbps"):
            shown = report.points[point].get("% of its witness", "")
            share = f"{float(row['gbps']) / float(row['copy_gbps']):.9f}"
            yield from claim(point, "share of a copy", share, "", "stores.csv")
            yield from claim(point, "share of a copy", shown, "", "every point")


def _short(row: Row) -> str:
    return row.get("label") or row.get("short") or ""


def _json(report: Report) -> Iterator[Claim]:
    fields = {
        "gbps": ("GB/s", ""),
        "efficiency": ("share", "reads of its rows"),
        "core_fraction": ("share", "core speed"),
        "memory_share": ("share", "plain reads of memory"),
    }
    for row in report.json.get("points", []):
        point = report.named(row["name"])
        for key, (quantity, held) in fields.items():
            if point and "decode" in point and isinstance(row.get(key), float):
                yield Claim(point, quantity, row[key], 0.0, held, "JSON")


def _limits(report: Report) -> Iterator[Claim]:
    for table in dtype_tables(report):
        for row in table.rows:
            word = row.get("what limits") or row.get("limit")
            if word:
                yield Claim(row["dtype"], "limit", limit(word), 0, "", "dtypes")
    for row in report.figures.get("hero", []):
        if word := row.get("bound") or row.get("limit"):
            yield Claim(row["dtype"], "limit", limit(word), 0, "", "hero.csv")
    tile = next((text for name, text in report.tiles.items() if "limit" in name.lower()), "")
    for part in re.split(r"[;·]", tile):
        word, _, dtypes = part.partition(":")
        for dtype in re.findall(rf"\b{_DTYPE}\b", dtypes):
            yield Claim(dtype, "limit", limit(word), 0, "", "tile")
    for place, found in report.sentences(r"What limits [^:]*: ([^.]*)\."):
        for part in found[1].split(";"):
            word, _, dtypes = part.partition(" for ")
            for dtype in re.findall(rf"\b{_DTYPE}\b", dtypes):
                yield Claim(dtype, "limit", limit(word), 0, "", place)


_FOR = rf"({NUMBER})x \([^)]*\) for ({_DTYPE}) (without grouped heads|with \d+ query heads)"
_WITH = rf"({_DTYPE}) (without grouped heads|with \d+ query heads)[a-zA-Z ]* ({NUMBER})x"


def _gains(report: Report) -> Iterator[Claim]:
    """Of decode from L3 over the same decode from memory, by dtype and group."""
    for place, found in report.sentences(_FOR):
        yield from claim((found[2], _group(found[3])), "L3 gain", found[1], "", place)
    for place, found in report.sentences(_WITH):
        yield from claim((found[1], _group(found[2])), "L3 gain", found[3], "", place)


def _group(words: str) -> int:
    found = re.search(r"\d+", words)
    return int(found[0]) if found else 1


def _reads(report: Report) -> Iterator[Claim]:
    """Reads of memory by most threads: one number for a page."""
    subject, quantity = "memory", "memory read"
    for title, text in report.tiles.items():
        if title.lower().startswith("memory") and re.match(rf"{NUMBER} GB/s", text):
            yield from claim(subject, quantity, text, "", "tile")
    for place, found in report.sentences(rf"plain reads of memory ({NUMBER}) GB/s"):
        yield from claim(subject, quantity, found[1], "", place)
    for row in report.figures.get("roofline", []):
        if row["kind"] == "read ceiling" and _short(row) == "DRAM":
            yield from claim(subject, quantity, row["gbps"], "", "roofline.csv")
    staircase = report.figures.get("staircase", [])
    kind = "memory" if any(row["kind"] == "memory" for row in staircase) else "read"
    states = [row for row in staircase if row["kind"] == kind and row["regime"] == "DRAM"]
    states += [row for row in report.figures.get("roofline", []) if row["kind"] == "memory"][:1]
    for row in states[:1] + states[len(states) - 1 :]:
        yield from claim(subject, quantity, row["gbps"], "", "staircase.csv, roofline.csv")


def _probes(report: Report) -> Iterator[Claim]:
    """Plain reads of memory by a probe, unless the page says that these are of its own visits."""
    rows = [row for table in report.with_heads("probe", "form", "rate") for row in table.rows]
    plain = [row for row in rows if (row["probe"], row["form"], row["level"]) == _PLAIN]
    if plain and not any(report.sentences("the probe's own visits|visits of the probe alone")):
        most = max(plain, key=lambda row: int(row["threads"]))
        yield from claim("memory", "memory read", most["rate"], "", "the machine's rates")


def _counts(report: Report) -> Iterator[Claim]:
    patterns = {
        "suspects": (
            r"(\d+) points? above a ceiling without an explanation",
            r"(\d+) for no known reason",
        ),
        "above a limit": (r"(\d+) of \d+ points are faster than",),
        "unstable": (r"(\d+) of \d+ points (?:is|are) unstable",),
        "launches": (r"points in (\d+) launches(?! \()",),
        "launches of the run": (
            r"points in (\d+) launches \(",
            r"Not decided in (\d+) launches",
        ),
    }
    for quantity, each in patterns.items():
        for pattern in each:
            for place, found in report.sentences(pattern):
                yield Claim("run", quantity, float(found[1]), 0, "", place)
    notes = [row.get("notes", "") for row in report.points.values()]
    if notes:
        faster = re.compile("above its|[Ii]t is faster than|faster than its")
        above = sum(bool(faster.search(note)) for note in notes)
        yield Claim("run", "above a limit", float(above), 0, "", "every point")
        if suspects := sum("suspect" in note for note in notes):
            yield Claim("run", "suspects", float(suspects), 0, "", "every point")
    marks = report.figures.get("roofline", [])
    for head in ("above", "suspect"):
        if any(head in row for row in marks):
            crosses = {row["row"] for row in marks if row.get(head) and row["kind"] == "point"}
            place = "crosses of the roofline"
            yield Claim("run", "above a limit", float(len(crosses)), 0, "", place)
    for table in report.with_heads("probe", "launches"):
        most = max(float(row["launches"]) for row in table.rows)
        yield Claim("run", "launches", most, 0, "", "the machine's rates, at most")


def _fits(report: Report) -> Iterator[Claim]:
    for table in report.with_heads("model", "dtype", "threads", "to context"):
        for row in table.rows:
            subject = (row["model"], row["dtype"])
            yield from claim(subject, "tokens that fit", row["to context"], "", "fits")
    said = rf"One (?:({_DTYPE}) )?layer fits in L3 up to ({NUMBER}) tokens of ([\w.-]+)"
    for place, found in report.sentences(said):
        yield from claim((found[3], found[1]), "tokens that fit", found[2], "", place)


def _sizes(report: Report) -> Iterator[Claim]:
    """What `kvbench size` says of the point that it takes its rate from."""
    said = rf"K and V alone ({NUMBER})\b.*?as the measured (decode [^(;]*)(?: \(({NUMBER}) GB/s)?"
    for place, found in report.sentences(said):
        wanted = words(found[2].strip())
        for point in report.points:
            if wanted <= point and "threads=2" in point:
                yield from claim(point, "tokens/s", found[1], "", place)
                yield from claim(point, "GB/s", found[3] or "", "", place)


def _others(report: Report) -> Iterator[Claim]:
    """A point that a sentence names, with its share of plain reads."""
    said = rf"\((decode [^)]*)\)\. That is ({NUMBER}%) of a plain read"
    for place, found in report.sentences(said):
        point = report.named(found[1])
        if point:
            yield from claim(point, "share beside it", found[2], "", place)
            row = report.points[point]
            yield from claim(
                point, "share beside it", row.get("% of its witness", ""), "", "every point"
            )
    for place, found in report.sentences(r"threads read .*? the rate of 1 thread\.( Not timed)?"):
        if found[1]:
            yield Claim("threads", "side by side", "no", 0, "", place)
    for table in report.with_heads("what differs", "level", "op", "side by side"):
        for row in table.rows:
            if (row["what differs"], row["op"], row["level"]) == ("threads", "decode", "DRAM"):
                yield Claim("threads", "side by side", row["side by side"], 0, "", "contrasts")

"""Claims of answers: of the JSON, where each is a value, and of the sentences and tables that show
them.
"""

import re
from collections.abc import Callable, Iterator

from tests.report.consistency.claims import NUMBER, Claim, Conflict, claim, number
from tests.report.consistency.reading import Report, size

DTYPES = ("f32", "f16", "bf16", "e4m3", "e5m2", "i8", "q8_0", "q4_0")
_ONE = rf"(?:{'|'.join(DTYPES)})"
DTYPE = rf"(?<![\w+]){_ONE}(?:\+{_ONE})?"  # of K and V, or K + V
_SHARES = {
    "memory": "plain reads of memory",
    "rows": "reads of its rows",
    "core": "core speed",
}


_LIMITS = {  # a word of each place to one of all
    "memory bandwidth": "memory",
    "memory": "memory",
    "the core": "core",
    "core": "core",
    "not known": "unknown",
    "not measured": "unknown",
    "neither memory nor the core alone": "neither",
    "neither": "neither",
    "none": "neither",
    "reads of its rows": "reads of its rows",
    "reads of its own rows": "reads of its rows",
    "reads": "reads of its rows",
    "rows": "reads of its rows",
    "neither alone": "neither",
    "reads and core": "both",
    "faster than its limit": "unknown",
    "both": "both",
}


def limit(word: str) -> str:
    return _LIMITS.get(word.strip(), word.strip())


def answers(report: Report) -> Iterator[Claim]:
    found = report.json.get("answers")
    if found:
        yield from _decodes(found["decodes"])
        yield from _reads(found)
        yield from _fits(found["l3"])
        yield from _left(found["l3"])
        yield from _gains(report, str(found["workload"]["threads"]))
        yield from _fitting(report, str(found["workload"]["threads"]))
        yield from _trust(found["trust"])
        yield from _choices(found["factors"]["choices"])
        yield from _formats(found.get("mixed", {"formats": (), "costs": ()}))
    yield from _said(report)
    yield from _leads(report)
    yield from _narrow(report)
    yield from _shown(report)
    yield from _shown_formats(report)


def _figure(
    subject: object, quantity: str, answer: dict[str, object] | None, held: str = ""
) -> Iterator[Claim]:
    if answer and answer["figure"]:
        yield Claim(subject, quantity, answer["figure"]["value"], 0, held, "JSON")


def _decodes(found: dict[str, object]) -> Iterator[Claim]:
    for row in found["rows"]:
        bar = f"bar {row['dtype']}"
        yield from _figure(bar, "tokens/s", row["speed"])
        yield from _figure(bar, "GB/s", row["rate"])
        for name, whole in _SHARES.items():
            yield from _figure(bar, "share", row[name], whole)
        yield Claim(bar, "kernel", f"{row['variant']}, {row['layout']}", 0, "", "JSON")
        if row["limit"]["reason"]:
            yield Claim(row["dtype"], "limit", limit(row["limit"]["reason"]), 0, "", "JSON")
        if row["kernel_error"] is not None:
            yield Claim(bar, "kernel error", row["kernel_error"], 0, "", "JSON")
        for keys, error in row["format_errors"].items():
            yield Claim(bar, f"format error, {keys} keys", error, 0, "", "JSON")


def _reads(found: dict[str, object]) -> Iterator[Claim]:
    reads = found["reads"]
    yield from _figure("memory", "memory read", reads["memory"])
    yield from _figure("L3", "L3 read", reads["l3_rate"])
    yield from _figure("L3", "L3 over memory", reads["l3"])
    yield from _figure("threads", "more threads", found["factors"]["threads"])
    yield from _figure("storing", "share of a step", found["storing"]["share"])
    yield Claim("memory", "visits", float(reads["visits"]), 0, "", "JSON")


def _fits(found: dict[str, object]) -> Iterator[Claim]:
    for gain in found["gains"]:
        yield from _figure(_layer(gain), "L3 gain", gain["gain"])
    for fit in found["fits"]:
        if fit["layer"]:
            subject = (fit["model"], fit["dtype"], str(fit["threads"]))
            yield Claim(subject, "tokens that fit", float(fit["layer"]), 0, "", "JSON")


def _layer(found: dict[str, object]) -> tuple[str, ...]:
    """One that is decoded."""
    context = f"{int(found['context']):,}"
    others = (str(found[name]) for name in ("group", "layout", "threads"))
    return found["dtype"], context, *others


def _left(found: dict[str, object]) -> Iterator[Claim]:
    """After so many bytes that are read in between."""
    for family in found.get("families", []):
        yield from _figure(_layer(family), "L3 gain", family["gain"])
        for each in family["left"]:
            subject = (*_layer(family), size(each["bytes"]))
            yield from _figure(subject, "gain left", each["gain"])
            yield Claim(subject, "what is left", each["kept"], 0, "", "JSON")


_LAYER = (
    rf"({DTYPE}), (\d+) query heads? a KV head \((?:[\w.-]+, )?([\d,]+) tokens, layout (\w+)"
    r"(?:, the middle of \d+)?(?:, (\d+) threads?)?\)"
)
_AFTER = rf"({NUMBER})x \([^)]*\) after ([^,;]*)"


def _gains(report: Report, threads: str) -> Iterator[Claim]:
    """Sentences on what a decode gains from L3, and what is left of that."""

    def layer(found: re.Match[str]) -> tuple[str, ...]:
        return found[1], found[3], found[2], found[4], found[5] or threads

    alone = rf"{_LAYER}: a layer that stays in L3 decodes ({NUMBER})x"
    for pattern in (alone, rf"{_LAYER} ({NUMBER})x"):
        for place, found in report.sentences(pattern):
            yield from claim(layer(found), "L3 gain", found[6], "", place)
    own = rf"{_LAYER}: a layer [^;]*; after ([^;]*?) were read in between, ({NUMBER})x"
    for place, found in report.sentences(own):
        subject = (*layer(found), _bytes(found[6]))
        yield from claim(subject, "gain left", found[7], "", place)
    yield from _headline(report, own, layer)
    after = rf"{_LAYER} [^;:]*After other reads (.*?)\.(?: |$)"
    for place, found in report.sentences(after):
        for words in found[6].split(";"):
            kept = re.match(r" ?(\w+) of the gain is left", words)
            for times, what in re.findall(_AFTER, words):
                subject = (*layer(found), _bytes(what))
                yield from claim(subject, "gain left", times, "", place)
                word = kept[1] if kept else "not clear"
                yield Claim(subject, "what is left", word, 0, "", place)


def _headline(report: Report, own: str, layer: Callable[..., tuple[str, ...]]) -> Iterator[Claim]:
    """The tile's own value is that of the layer that stands below it."""
    for title, text in report.tiles.items():
        headline = re.match(rf"({NUMBER})x as fast after other reads", text)
        if found := re.search(own, text):
            subject = (*layer(found), _bytes(found[6]))
            if headline:
                yield from claim(subject, "gain left", headline[1], "", f"tile {title}")
            elif text.startswith("not after other reads"):
                yield Claim(subject, "what is left", "nothing", 0, "", f"tile {title}")


def _bytes(what: str) -> str:
    """Of "a layer's q4_0 weights (117 MiB)", or as they are."""
    return re.search(rf"{NUMBER} \w+B", what)[0]


def _fitting(report: Report, threads: str) -> Iterator[Claim]:
    """The sentence on what fits is of the page's threads."""
    said = r"Tokens of ([\w.-]+) whose K and V fit in L3[^:]*: (.*?)\.(?: |$)"
    for place, found in report.sentences(said):
        for dtype, tokens in re.findall(rf"({DTYPE}) ({NUMBER})", found[2]):
            yield from claim((found[1], dtype, threads), "tokens that fit", tokens, "", place)


_OVER = {"K's format for both": "K's", "V's format for both": "V's", "K by token": "by token"}


def _formats(found: dict[str, object]) -> Iterator[Claim]:
    """Of K and V, and what is done to scores."""
    for each in found["formats"]:
        subject = _format(each)
        yield from _figure(subject, "tokens/s", each["speed"])
        for own in each["placed"]:
            for name in ("error", "format_error"):
                yield Claim(subject, f"{name}, {own['keys']}", 100 * own[name], 0, "", "JSON")
            yield Claim(subject, f"place, {own['keys']}", own["place"], 0, "", "JSON")
        for own in each["against"]:
            yield from _figure(subject, f"over {_OVER[own['other']]}", own["times"])
            yield from _figure((subject, own["dtype"]), "times as fast", own["times"])
    for each in found["costs"]:
        yield from _figure(("scores", each["what"], each["dtype"]), "times", each["times"])


def _format(row: dict[str, object]) -> str:
    """As it is called."""
    words = (row["dtype"], "by channel" if row["k_scale"] == "channel" else "")
    return " ".join(filter(None, (*words, "" if row["variant"] == "flash" else row["variant"])))


def _shown_formats(report: Report) -> Iterator[Claim]:
    for table in report.with_heads("format", "bytes a token"):
        for row in table.rows:
            for head, text in row.items():
                own = re.fullmatch(r"(format error|error), % of the output, (\w+) keys", head)
                if own:
                    quantity = f"{own[1].replace(' ', '_')}, {own[2]}"
                    yield from claim(row["format"], quantity, text, "", "formats")
                    for place in re.findall(r", (leads|level|behind)", text):
                        yield Claim(row["format"], f"place, {own[2]}", place, 0, "", "formats")
                elif head in ("tokens/s", *(f"over {name} format" for name in ("K's", "V's"))):
                    quantity = head.removesuffix(" format")
                    yield from claim(row["format"], quantity, text, "", "formats")
    for table in report.with_heads("with", "times as long", "heads a KV head"):
        for row in table.rows:
            subject = ("scores", row["with"], row["dtype"])
            yield from claim(subject, "times", row["times as long"], "", "costs")
    for row in report.figures.get("mixed", []):
        subject, keys = _format(row), row["keys"]
        yield from claim(subject, "tokens/s", row["tokens_per_second"], "", "mixed.csv")
        yield Claim(subject, f"place, {keys}", row["place"], 0, "", "mixed.csv")
        for name in ("error", "format_error"):
            yield Claim(subject, f"{name}, {keys}", 100 * float(row[name]), 0, "", "mixed.csv")
    label = rf"({DTYPE}(?: by channel)?(?: dot)?)"
    for place, found in report.sentences(rf"{label} is ({NUMBER})x \([^)]*\) as fast as ({DTYPE})"):
        yield from claim((found[1], found[3]), "times as fast", found[2], "", place)


def _trust(found: dict[str, object]) -> Iterator[Claim]:
    names = {"launches": "launches of the run", "fewest": "launches of a point"}
    for name in ("launches", "fewest", "unstable", "scatter", "noise"):
        if found[name] is not None:
            yield Claim("run", names.get(name, name), float(found[name]), 0, "", "JSON")
    unexplained = sum(not each["explained"] for each in found["suspects"])
    yield Claim("run", "suspects", float(unexplained), 0, "", "JSON")
    yield Claim("run", "above a limit", float(len(found["suspects"])), 0, "", "JSON")


def _choices(found: list[dict[str, object]]) -> Iterator[Claim]:
    for each in found:
        where = (each["op"], _level(each["regime"]), each["dtype"], f"{each['context']:,}")
        for other, lead in zip(each["values"][1:], each["leads"], strict=True):
            subject = (*where, each["values"][0], other)
            yield from _figure(subject, "lead", lead)
            for end in ("low", "high") if lead["figure"] else ():
                yield Claim(subject, f"lead, {end}", lead["figure"][end], 0, "", "JSON")


def _level(word: str) -> str:
    return {"DRAM": "memory"}.get(word, word)


_OPS = {"Storing one token": "append", "Storing a prompt": "bulk"}
_LEADS = (
    rf"(?:([A-Z][\w ]+): )?({DTYPE}), ([\d,]+) tokens, from (\w+), side by side:"
    r" ([^.]*(?:\.\d[^.]*)*)"
)


def _leads(report: Report) -> Iterator[Claim]:
    """Sentences on a factor: what is fastest or level, and the time that each other one takes."""
    for place, found in report.sentences(_LEADS):
        where = (_OPS.get(found[1], "decode"), found[4], found[2], found[3])
        first = re.match(r"(?:none of )?([\w.=]+)", found[5])[1]
        others = (
            rf"([\w.=]+) takes ({NUMBER})x \(({NUMBER}) to ({NUMBER})\)"
            r" of (?:its time|the time of ([\w.=]+))"
        )
        for other, times, low, high, named in re.findall(others, found[5]):
            subject = (*where, named or first, other)
            yield from claim(subject, "lead", times, "", place)
            yield from claim(subject, "lead, low", low, "", place)
            yield from claim(subject, "lead, high", high, "", place)


def _said(report: Report) -> Iterator[Claim]:
    """Sentences, wherever they stand."""
    patterns = {  # with one number each
        ("run", "launches of a point"): r"\((\d+) or more of each\)",
        ("run", "scatter"): r"Launches scatter by (\d+%) of a point's time",
        ("run", "noise"): r"differences below (\d+%) of a time as noise",
        ("memory", "visits"): r"plain reads by [^;]*? of (\d+) visits",
        ("L3", "L3 over memory"): rf"({NUMBER})x(?: \([^)]*\))? plain reads of memory",
        ("threads", "more threads"): rf"\d+ threads are ({NUMBER})x",
        ("storing", "share of a step"): rf"({NUMBER}%)(?: \([^)]*\))? of a (?:decode )?step",
    }
    for (subject, quantity), pattern in patterns.items():
        for place, found in report.sentences(pattern):
            yield from claim(subject, quantity, found[1], "", place)
    for place, found in report.sentences(rf"({DTYPE}) \((\w+), (\w+)\)"):
        yield Claim(f"bar {found[1]}", "kernel", f"{found[2]}, {found[3]}", 0, "", place)
    for title, text in report.tiles.items():
        if title == "L3":
            yield from claim("L3", "L3 read", text, "", "tile")


def _narrow(report: Report) -> Iterator[Claim]:
    """The table of dtypes on the terminal."""
    said = rf"^ +({DTYPE}) (\w+, \w+) +({NUMBER}) .*  (\S[\w ]*)$"
    for dtype, kernel, speed, word in re.findall(said, report.terminal, re.MULTILINE):
        yield Claim(f"bar {dtype}", "kernel", kernel, 0, "", "terminal")
        yield from claim(f"bar {dtype}", "tokens/s", speed, "", "terminal")
        yield Claim(dtype, "limit", limit(word), 0, "", "terminal")


def _shown(report: Report) -> Iterator[Claim]:
    """Tables and the figures' numbers."""
    for table in report.with_heads("dtype", "kernel", "tokens/s"):
        for row in table.rows:
            bar = f"bar {row['dtype']}"
            yield Claim(bar, "kernel", row["kernel"], 0, "", "dtypes")
            for head in row:
                if "error" in head:
                    yield from claim(bar, head, row[head], "", "dtypes")
    for table in report.with_heads("what differs", "base", "other", "context"):
        for row in table.rows:
            if row["what differs"] not in ("layout", "variant"):
                continue
            where = (row["op"], _level(row["level"]), row["dtype"], f"{int(row['context']):,}")
            subject = (*where, row["base"], row["other"])
            times = row["times as fast as base"]
            low, high = re.findall(NUMBER, row["interval"])
            # the time of the base over that of the other
            yield from claim((*where, row["other"], row["base"]), "lead", times, "", "contrasts")
            for end, text in (("low", low), ("high", high)):
                yield from claim(
                    (*where, row["other"], row["base"]), f"lead, {end}", text, "", "contrasts"
                )
            for quantity, text in (("lead", times), ("lead, low", high), ("lead, high", low)):
                value, half = number(text)
                yield Claim(subject, quantity, 1 / value, half / value**2, "", "contrasts")
    for table in report.with_heads("model", "dtype", "threads", "tokens of one layer in L3"):
        for row in table.rows:
            subject = (row["model"], row["dtype"], row["threads"])
            text = row["tokens of one layer in L3"]
            yield from claim(subject, "tokens that fit", text, "", "fits")
    yield from _drawn_gains(report)
    for row in report.figures.get("hero", []):
        bar = f"bar {row['dtype']}"
        yield Claim(bar, "kernel", f"{row['variant']}, {row['layout']}", 0, "", "hero.csv")
        yield from claim(bar, "kernel error", row.get("kernel_error") or "", "", "hero.csv")


def _drawn_gains(report: Report) -> Iterator[Claim]:
    for row in report.figures.get("l3", []):
        if row.get("middle") == "True":
            yield from claim(_layer(row), "L3 gain", row["gain"], "", "l3.csv")
    for row in report.figures.get("between", []):
        after = (size(int(row["bytes"])),) if row["bytes"] != "0" else ()
        quantity = "gain left" if after else "L3 gain"
        yield from claim((*_layer(row), *after), quantity, row["gain"], "", "between.csv")


# ---- numbers that no answer has ------------------------------------------------------------------

_SCALE = {"x": 1, "%": 0.01, "GB/s": 1, "tokens/s": 1, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3}
_UNIT = {
    "x": "times",
    "%": "share",
    "GB/s": "GB/s",
    "tokens/s": "tokens/s",
    "ns": "seconds",
    "µs": "seconds",
    "ms": "seconds",
}
_SHOWN = re.compile(
    rf"({NUMBER}) ?(x|%|GB/s|tokens/s|ns|µs|ms)(?![\w/])(?: \(({NUMBER}) to ({NUMBER})\))?"
)
# what is no answer of a run: the rule's own numbers, checks of the machine, what was left out
_ELSEWHERE = (
    r"^Limit:|What may have disturbed|cores ran at|by less than 2%|kvbench |^report:|:.*%.*until"
)


def orphans(report: Report) -> Iterator[Conflict]:
    """Each number of the first screen and of the findings, on the page and on the terminal, is
    that of an answer in the JSON, with its unit.
    """
    found = report.json.get("answers")
    if not found:
        return
    pool: dict[str, list[float]] = {}
    _pool(found, pool)
    asked = [*_asked(report)]  # of what more launches would decide
    for place, text in _prose(report):
        for shown in _SHOWN.finditer(text):
            for part in filter(None, (shown[1], shown[3], shown[4])):
                value, half = (each * _SCALE[shown[2]] for each in number(part))
                known = pool.get(_UNIT[shown[2]], []) + pool.get("", [])
                known = known + asked if "not decided in" in text.lower() else known
                if not any(abs(each - value) <= half * 1.001 for each in known):
                    yield Conflict(
                        "orphan", f"{part} {shown[2]}: {text[:200]} ({place})", "no answer"
                    )


def _asked(report: Report) -> Iterator[float]:
    for row in (*report.json.get("points", []), *report.json.get("contrasts", [])):
        for name, value in row.items():
            if name.startswith(("ratio", "l3_")) and isinstance(value, float):
                yield value


def _prose(report: Report) -> Iterator[tuple[str, str]]:
    lists = [*report.root.of_class("findings"), *report.root.of_class("badge")]
    every = [("page", node.text) for each in lists for node in (*each.all("li"), each)]
    every += [(f"tile {title}", text) for title, text in report.tiles.items()]
    every += [("terminal", said.text) for said in report.said if said.place == "terminal"]
    for place, whole in every:
        text = re.sub(r"Limit: the first of .*", "", whole)
        parts = [text] if "not decided in" in text.lower() else re.split(r"(?<=[.;:]) ", text)
        for sentence in parts:
            if not re.search(_ELSEWHERE, sentence) and sentence:
                yield place, sentence


def _pool(found: object, pool: dict[str, list[float]]) -> None:
    """All numbers of the answers, by unit; those without one below ''."""
    if isinstance(found, dict) and "unit" in found:
        pool.setdefault(found["unit"], []).extend(
            found[key] for key in ("value", "low", "high") if found[key] is not None
        )
    elif isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            _pool(each, pool)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        pool.setdefault("", []).append(float(found))

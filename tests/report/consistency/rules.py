"""What cannot be true together on one page, beside two values of one thing."""

import re
import statistics
from collections.abc import Callable, Iterator

from tests.report.consistency.answered import DTYPE as _DTYPE
from tests.report.consistency.answered import limit, orphans
from tests.report.consistency.claims import NUMBER, Conflict, disagreeing, number
from tests.report.consistency.collected import claims, dtype_tables
from tests.report.consistency.named import NAMED
from tests.report.consistency.reading import Report, Row

Rule = Callable[[Report], Iterator[Conflict]]
_RULES: list[Rule] = [orphans, *NAMED]
_RATIO = rf"({NUMBER})x (\w+) \(({NUMBER}) to ({NUMBER})\)"


def conflicts(report: Report) -> list[Conflict]:
    found = list(disagreeing(claims(report)))
    return found + [conflict for rule in _RULES for conflict in rule(report)]


def _rule(function: Rule) -> Rule:
    _RULES.append(function)
    return function


def _value(row: Row, head: str) -> float | None:
    found = number(row.get(head, ""))
    return found[0] if found else None


def _ends(text: str) -> tuple[float, float] | None:
    found = re.search(rf"({NUMBER}) (?:to|\.\.) ({NUMBER})", text)
    if not found:
        return None
    (low, below), (high, over) = number(found[1]), number(found[2])
    return low - below, high + over


def _within(text: str, value: float) -> bool:
    ends = _ends(text)
    return ends is None or ends[0] <= value <= ends[1]


@_rule
def dtype_ratio(report: Report) -> Iterator[Conflict]:
    """A sentence on dtypes is of the bars: their quotient lies in its interval."""
    speed = {
        row["dtype"]: float(row["tokens_per_second"]) for row in report.figures.get("hero", [])
    }
    for place, said in report.sentences(rf"({_DTYPE}) gives most tokens/s: ([^.]*(?:\.\d[^.]*)*)"):
        for ratio, other, low, high in re.findall(_RATIO, said[2]):
            if said[1] in speed and other in speed:
                bar = speed[said[1]] / speed[other]
                if not _within(f"{low} to {high}", bar):
                    shown = f"{said[1]} is {ratio}x {other} ({place})"
                    yield Conflict("dtype_ratio", shown, f"the bars: {bar:.3g}")


@_rule
def every_value(report: Report) -> Iterator[Conflict]:
    """A claim on a variant holds for each dtype that has both, or names the one that it is of."""
    said = r"(\w+) is the fastest kernel variant: ([^.]*(?:\.\d[^.]*)*)"
    for place, found in report.sentences(said):
        for ratio, other, low, high in re.findall(_RATIO, found[2]):
            apart = [
                f"{quotient:.2f}"
                for point, row in report.points.items()
                if found[1] in point and other == "flash"
                if (plain := report.points.get(point - {found[1]}))
                if (quotient := _quotient(row, plain)) and not _within(f"{low} to {high}", quotient)
            ]
            if apart:
                said_so = f"{found[1]} is {ratio}x {other} ({place})"
                yield Conflict("every_value", said_so, f"points: {', '.join(apart)}")


def _quotient(row: Row, other: Row) -> float | None:
    first, second = _value(row, "tokens/s"), _value(other, "tokens/s")
    return first / second if first and second else None


@_rule
def fastest(report: Report) -> Iterator[Conflict]:
    """What is called the fastest layout is that of each dtype, and clearly ahead where pairs were
    timed.
    """
    for place, found in report.sentences(r"(\w+) is the fastest layout"):
        others = [
            f"{row['dtype']}: {row['best layout']}"
            for table in dtype_tables(report)
            for row in table.rows
            if row.get("best layout") not in (None, found[1])
        ]
        if others:
            yield Conflict("fastest", f"{found[0]} ({place})", f"dtypes: {', '.join(others)}")


@_rule
def up_to(report: Report) -> Iterator[Conflict]:
    """Nothing lies above what is called the most."""
    for place, found in report.sentences(rf"Decode reads up to ({NUMBER}) GB/s from memory"):
        for row in report.points.values():
            ends = _ends(row.get("interval", ""))
            most = number(found[1])
            if row["level"] == "DRAM" and row["point"].startswith("decode") and ends:
                if ends[1] > most[0] + 2 * most[1]:
                    yield Conflict("up_to", f"{found[0]} ({place})", f"{row['point']}: {ends[1]}")


@_rule
def only_one(report: Report) -> Iterator[Conflict]:
    """The fastest of one is no fastest."""
    for place, found in report.sentences(r"fastest dtype of each: (.*)"):
        for text in re.findall(rf"tokens/s at ({NUMBER}) tokens\b", found[1]):
            context = text.replace(",", "")
            dtypes = {
                row["dtype"]
                for table in report.with_heads("model", "dtype", "context", "tokens/s")
                for row in table.rows
                if row["context"] == context
            }
            if len(dtypes) == 1:
                told = f"fastest dtype at {context} tokens ({place})"
                yield Conflict("only_one", told, f"measured there: {', '.join(dtypes)}")


_COLUMNS = {  # of a share, by what it may be called
    "memory": ("% of memory read", "% of plain reads of memory", "% of best read"),
    "reads of its rows": ("% of its witness", "% of reads of its rows"),
    "core": ("% of core speed", "% of its core speed"),
}
_ACROSS = r"interval (?:crosses|across|reaches(?: across)?) 90"


@_rule
def limit_word(report: Report) -> Iterator[Conflict]:
    """The word for what limits follows from the shares in its row: one that is named reaches 90 %.
    Where none is named, each stays below, or the page says that intervals decide.
    """
    intervals = any(report.sentences(_ACROSS))
    for row in _limited(report):
        word = limit(row.get("what limits") or row.get("limit") or "")
        shares = {
            name: number(row[column])[0]
            for name, columns in _COLUMNS.items()
            for column in columns
            if number(row.get(column, ""))
        }
        reach = [name for name, share in shares.items() if share >= 89.5]
        over = [name for name, share in shares.items() if 90.5 <= share <= 102]
        wrong = {
            "both": len(reach) < 2,
            "neither": bool(over),
            "not clear": "memory" in over and not intervals,
            "unknown": "memory" in over and not intervals,
        }
        if wrong.get(word, word in shares and word not in reach):
            told = f"{row.get('point') or row['dtype']}: {word}"
            shown = ", ".join(f"{name} {share:.0f}%" for name, share in shares.items())
            yield Conflict("limit_word", told, shown)


def _limited(report: Report) -> Iterator[Row]:
    for table in (*report.with_heads("point", "% of core speed"), *dtype_tables(report)):
        yield from (row for row in table.rows if row.get("level", "DRAM") == "DRAM")


@_rule
def enough_launches(report: Report) -> Iterator[Conflict]:
    """A number of launches that is the least that can be said is no forecast."""
    done = {found[1] for _, found in report.sentences(r"points in (\d+) launches")}
    for place, found in report.sentences(r"needs about (\d+) launches"):
        if str(int(found[1]) - 1) in done:
            yield Conflict("enough_launches", f"{found[0]} ({place})", "one more than there are")


@_rule
def peak(report: Report) -> Iterator[Conflict]:
    """A core speed lies below the peak that is drawn, or has one of its own instructions."""
    rows = report.figures.get("roofline", [])
    peaks = {
        row.get("computes", ""): float(row["gflops"])
        for row in rows
        if row["kind"].endswith("peak")
    }
    for row in (row for row in rows if row["kind"] == "core speed"):
        own = peaks.get(row.get("computes", ""))
        if own and float(row["gflops"]) > 1.02 * own:
            speed = f"{row.get('label') or row.get('short')}: {float(row['gflops']):.0f} GFLOP/s"
            yield Conflict("peak", speed, f"highest peak drawn: {own:.0f}")


@_rule
def tile_quotient(report: Report) -> Iterator[Conflict]:
    """A rate in L3 and how many times memory that is: their quotient is the rate of memory that
    the page shows, within the interval beside it.
    """
    memory = [number(text) for title, text in report.tiles.items() if title.startswith("Memory")]
    for title, text in report.tiles.items():
        found = re.search(rf"^({NUMBER}) GB/s; .*?({NUMBER})x \(?([^)]*)\)?", text)
        beside = re.search(rf"same rounds \(({NUMBER}) GB/s\)", text)
        if title.startswith("L3") and found and memory and memory[0]:
            rate, (read, _) = number(found[1])[0], number(beside[1]) if beside else memory[0]
            if not _within(found[3], rate / read):
                told = f"{title}: {found[1]} GB/s, {found[2]}x ({found[3]})"
                yield Conflict("tile_quotient", told, f"{rate:g} / {read:g} = {rate / read:.2f}")


@_rule
def pairs(report: Report) -> Iterator[Conflict]:
    """The interval of a ratio holds the quotient of the two points' own rates, or the page says
    that theirs may be another.
    """
    if any(report.sentences(r"quotient of two rates of other tables")):
        return
    for row in report.json.get("contrasts", []):
        base, other = (report.named(row[key]) for key in ("base_name", "other_name"))
        if not base or not other or _context(base) != _context(other):
            continue
        quotient = _seconds(report.points[base]) / _seconds(report.points[other])
        if not row["ratio_low"] * 0.99 <= quotient <= row["ratio_high"] * 1.01:
            told = f"{' '.join(sorted(other))} over {' '.join(sorted(base))}: {row['ratio']:.3f}"
            ends = f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}"
            yield Conflict("pairs", f"{told} ({ends})", f"points: {quotient:.3f}")


def _context(point: frozenset[str]) -> set[str]:
    return {word for word in point if word.startswith("t=")}


def _seconds(row: Row) -> float:
    text = row["time of a pass"]
    return number(text)[0] * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}[text.split()[-1]]


@_rule
def varied(report: Report) -> Iterator[Conflict]:
    """Scatter is no width of an interval of the median."""
    widths = [
        (ends[1] - ends[0]) / value
        for row in report.points.values()
        if (ends := _ends(row.get("interval", ""))) and (value := _value(row, "GB/s"))
    ]
    for place, found in report.sentences(rf"typical point varied by ({NUMBER})%"):
        half = statistics.median(widths) * 100 if widths else 0
        if abs(half - number(found[1])[0]) < 1:
            told = f"half of the intervals are wider than {half:.1f}%"
            yield Conflict("varied", f"{found[0]} ({place})", told)


_STEP = {"e5m2": 0.125, "e4m3": 0.0625, "q4_0": 0.07}  # half a step of the format, as a share


@_rule
def error_named(report: Report) -> Iterator[Conflict]:
    """A column of errors names what errs: a format with few bits does not lose 2e-07."""
    for table in dtype_tables(report):
        for head in table.heads:
            if "error" in head and not re.search("kernel|arithmetic", head):
                for row in table.rows:
                    value = _value(row, head)
                    if value is not None and value < _STEP.get(row["dtype"], 0) / 1000:
                        yield Conflict("error_named", f"{head} of {row['dtype']}", row[head])


@_rule
def point_named(report: Report) -> Iterator[Conflict]:
    """A rate of threads names its point where the threads' figure has another."""
    said = rf"(\d+) threads read ({NUMBER}) GB/s from memory[^.]*(?:\.\d[^.]*)*"
    for place, found in report.sentences(said):
        for row in report.figures.get("saturation", []):
            if (row["threads"], row["regime"]) == (found[1], "DRAM") and "tokens" not in found[0]:
                value, half = number(found[2])
                if abs(float(row["gbps"]) - value) > half:
                    shown = f"saturation.csv, {row['context']} tokens: {float(row['gbps']):.3g}"
                    yield Conflict("point_named", f"{found[0]} ({place})", shown)
                    break


@_rule
def helps(report: Report) -> Iterator[Conflict]:
    """One word for "L3 helps" has one whole: where decode is surely faster from L3 than from
    memory, it is not refuted.
    """
    for row in report.figures.get("l3", []):
        series = re.match(rf"({_DTYPE}) (\w+), G = (\d+), (\d+) thread", row.get("series", ""))
        if not series or float(row["ratio_low"]) <= 1:
            continue
        wanted = {series[1], series[2], f"threads={series[4]}", "hot"}
        for point, cells in report.points.items():
            word = cells.get("L3 helps", "")
            if wanted <= point and cells["level"] == "L3" and word in ("refuted", "core-bound"):
                shown = f"{float(row['ratio']):.2f} times the decode from memory, surely above 1"
                yield Conflict("helps", f"{cells['point']}, L3 helps: {word}", shown)


@_rule
def left_out(report: Report) -> Iterator[Conflict]:
    """Those that are left out are not so because too few remain."""
    for place, found in report.sentences(r"\w+(?: of \w+)? [\w ]*left out, for too few"):
        yield Conflict("left_out", f"{found[0]} ({place})", "too few would keep them in")


@_rule
def fits_named(report: Report) -> Iterator[Conflict]:
    """How many tokens fit in L3 depends on the format, which is named."""
    fits = {
        (row["dtype"], row["to context"])
        for table in report.with_heads("model", "dtype", "to context")
        for row in table.rows
    }
    for place, found in report.sentences(rf"L3 holds (?:the KV of )?one layer up to ({NUMBER})"):
        value = number(found[1])[0]
        others = [f"{dtype}: {most}" for dtype, most in sorted(fits) if number(most)[0] != value]
        if others:
            yield Conflict("fits_named", f"{found[0]} ({place})", ", ".join(others))


@_rule
def core_rate(report: Report) -> Iterator[Conflict]:
    """A rate of the core alone does not vary twofold, unless it is called unstable."""
    for table in report.with_heads("probe", "level", "rate", "interval"):
        for row in table.rows:
            ends = _ends(row["interval"])
            told = "unstable" in row.get("notes", "")
            if row["level"] == "core" and ends and ends[0] * 1.5 < ends[1] and not told:
                yield Conflict("core_rate", f"{row['probe']}: {row['rate']}", row["interval"])


@_rule
def untuned(report: Report) -> Iterator[Conflict]:
    """What is tuned is not slower than the same untuned, unless both are one schedule and the
    line says so.
    """
    said = rf"({NUMBER}) tokens/s \([^)]*\)[^.]*?; untuned ({NUMBER})(?! by the same schedule)"
    for place, found in report.sentences(said):
        if number(found[2])[0] > number(found[1])[0]:
            yield Conflict("untuned", f"tuned {found[1]} ({place})", f"untuned {found[2]}")


@_rule
def pays_back(report: Report) -> Iterator[Conflict]:
    """Where layouts are said to be alike, the table of choices does not call one faster."""
    for place, found in report.sentences(r"No layout saves or costs more than the noise"):
        for table in report.with_heads("what differs", "base", "other", "verdict"):
            for row in table.rows:
                if row["what differs"] == "layout" and row["verdict"] in ("faster", "slower"):
                    told = f"{row['op']}: {row['other']} {row['verdict']} than {row['base']}"
                    yield Conflict("pays_back", f"{found[0]} ({place})", told)


@_rule
def progress(report: Report) -> Iterator[Conflict]:
    """A line of progress holds a point against what the page holds it against."""
    said = rf"([\w.]+), context (\d+), (\d+) threads?: {NUMBER} GB/s, ({NUMBER})% of reads of"
    for place, found in report.sentences(said):
        op, variant, layout, dtype, _ = found[1].split(".")
        wanted = {op, variant, layout, dtype, f"t={found[2]}", f"threads={found[3]}"}
        for point, row in report.points.items():
            share, shown = number(found[4]), number(row.get("% of best read", ""))
            if point - {"rotate", "hot"} <= wanted and shown and abs(share[0] - shown[0]) > 20:
                yield Conflict("progress", f"{found[0]} ({place})", f"page: {shown[0]:g}%")
                return


@_rule
def bar_ratio(report: Report) -> Iterator[Conflict]:
    """Where a bar's lead over the fastest is of the same rounds as both rates, it is their
    quotient, within its interval.
    """
    every = report.figures.get("hero", [])
    most = max((float(row["tokens_per_second"]) for row in every), default=0.0)
    for row in (row for row in every if row.get("lead")):
        rate = float(row["tokens_per_second"])
        ends = sorted((float(row["lead_low"]), float(row["lead_high"])))
        quotient = rate / most
        inside = any(ends[0] * 0.98 <= each <= ends[1] * 1.02 for each in (quotient, 1 / quotient))
        if not inside:
            told = f"{row['dtype']}: {float(row['lead']):.3f} ({ends[0]:.3f} to {ends[1]:.3f})"
            yield Conflict("bar_ratio", told, f"{rate:.4g} / {most:.4g} = {quotient:.3f}")


@_rule
def fastest_tile(report: Report) -> Iterator[Conflict]:
    """What the tile calls fastest is the first of the dtypes by its own table, or level with it."""
    tile = report.tiles.get("Fastest decode", "")
    said, told = re.match(rf"({NUMBER}) tokens/s", tile), re.findall(rf"\b{_DTYPE}\b", tile)
    rows = [row for table in dtype_tables(report) for row in table.rows]
    speeds = [(value, row["dtype"]) for row in rows if (value := _value(row, "tokens/s"))]
    if said and speeds:
        most, dtype = max(speeds)
        if dtype not in told or (dtype == told[0] and number(said[1])[0] != most):
            yield Conflict("fastest_tile", tile, f"dtypes: {dtype} {most:g}")

"""The tables of a run: their columns and units. Their titles and texts are in tables.toml."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kvbench.analysis.answers import Answers
from kvbench.analysis.answers.serving import Way
from kvbench.analysis.limits.claims import Claim
from kvbench.analysis.means.beside import Beside
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.machines import ceiling_row
from kvbench.analysis.measured.tails import stretched
from kvbench.model import Ceiling, Check, Machine, Role, Skip
from kvbench.model.tuning import PARTS
from kvbench.report.cells import NOTHING, answered, texts, titled, within, worded
from kvbench.report.drafts import queries
from kvbench.report.formats import costs
from kvbench.report.latency import idle, loaded
from kvbench.report.machine_text import said
from kvbench.report.sheet import Cell, Columns, Sheet, interval, known, plain, records, sheet
from kvbench.report.words import said as words
from kvbench.report.words.phrases import WITNESS, bare, between, narrow, number, share
from kvbench.store import Manifest
from kvbench.units import cpu_text, duration, size

_times = "{:.2f}".format


def _error(value: float) -> str:
    return f"{value:.0e}" if value else "0"


FILTERS = ("op", "layout", "dtype", "residency", "threads", "regime")


def dtypes(found: Answers) -> Sheet:
    """A row for the fastest kernel of each dtype, for the workload of the first screen."""
    kinds = dict.fromkeys(name for row in found.decodes.rows for name in row.format_errors)
    columns: Columns = {
        **plain("dtype"),
        "kernel": (lambda row: f"{row['variant']}, {row['layout']}", str),
        "tokens/s": answered("speed"),
        "interval": (lambda row: within(row["speed"]), str),
        "GB/s": answered("rate"),
        "% of memory read": answered("memory", narrow),
        "% of its rows' read": answered("rows", narrow),
        "% of core speed": answered("core", narrow),
        "what limits": worded("limit", "first", "limit"),
        **{f"format error, {name} keys": (_error_of(name), _error) for name in kinds},
        "kernel error": ("kernel_error", _error),
    }
    rows = [{name: getattr(row, name) for name in row.__slots__} for row in found.decodes.rows]
    title, about = texts("dtypes")
    rule = words("first", "rule", found.decodes.fastest)
    return sheet("dtypes", title, f"{about} {rule}", columns, rows)


def steps(found: Answers) -> Sheet:
    """A row for each whole step; the step of the page's workload is first."""
    kinds = dict.fromkeys(part.part for row in found.steps.rows for part in row.parts)
    columns: Columns = {
        **plain("model", "dtype"),
        "context": ("context", "{:,}".format),
        **plain("batch"),
        "weights": (lambda row: size(row["weights"]) if row["weights"] else None, str),
        "a step": answered("seconds"),
        "tokens/s each": answered("sequence"),
        "of the batch": answered("tokens"),
        "% of memory read": answered("memory", narrow),
        "step over parts": answered("whole", narrow),
        "why": worded("whole", "step", "note"),
        **{f"% {name}": (_share_of(name), str) for name in kinds},
        "what limits": worded("limit", "first", "limit"),
        "p50": answered("p50"),
        "p99": answered("p99"),
        **plain("layout"),
        "layers": (lambda row: words("step", "layers", row), str),
        **plain("lengths", "threads"),
    }
    rows = [{name: getattr(row, name) for name in row.__slots__} for row in found.steps.rows]
    return titled("steps", columns, rows)


def _share_of(kind: str) -> Callable[[Mapping[str, Any]], Cell | None]:
    def read(row: Mapping[str, Any]) -> Cell | None:
        own = {part.part: part.share.figure for part in row["parts"]}
        return Cell(bare(own[kind]), own[kind].value) if kind in own else None

    return read


def _error_of(kind: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda row: row["format_errors"].get(kind)


def fits(found: Answers) -> Sheet:
    columns: Columns = {
        **plain("model", "dtype", "threads"),
        "tokens of one layer in L3": ("layer", "{:,}".format),
        "tokens of all layers in L3": ("model_wide", "{:,}".format),
    }
    return titled("fits", columns, [asdict(each) for each in found.l3.fits])


def serving(found: Findings) -> Sheet:
    """A row for each batch and kind of lengths. The padded one has the cost of padding."""
    columns: Columns = {
        **plain("dtype", "layout"),
        "requests": ("batch", str),
        "lengths": ("way", str),
        "tokens": (_held, str),
        "time of a step": answered("step"),
        "interval": (lambda row: within(row["step"]), str),
        "times as long": answered("padding", narrow),
        "verdict": (lambda row: row["padding"].figure and str(row["padding"].state), str),
        "tokens/s, each": answered("sequence"),
        "tokens/s, all": answered("whole"),
    }
    rows = [
        {name: getattr(each, name) for name in each.__slots__}
        | {name: getattr(batch, name) for name in ("dtype", "layout", "batch")}
        | {"padding": batch.padding if each.way == Way.PADDED else NOTHING}
        for batch in found.answers.serving.batches
        for each in batch.ways
    ]
    places = {name: place for place, name in enumerate(found.points["name"])}
    return titled("serving", columns, rows, [places[row["point"]] for row in rows])


def _held(row: Mapping[str, Any]) -> Cell:
    """Tokens of the shortest and the longest request."""
    ends = dict.fromkeys((f"{row['shortest']:,}", f"{row['longest']:,}"))
    return Cell(" to ".join(ends), row["longest"])


def points(found: Findings) -> Sheet:
    columns: Columns = {
        "point": ("short", str),
        "queries": ("q_len", str),
        "level": ("regime", str),
        "tokens/s": ("tokens", number),
        "GB/s": ("gbps", number),
        "interval": interval("gbps"),
        "time of a pass": ("seconds", duration),
        "slowest passes": (_slowest, str),
        "% of memory read": ("memory_share", share),
        "% of its witness": ("efficiency", share),
        "witness": ("witness", lambda name: WITNESS.get(Role.of(name).kind) or str(name)),
        "% of core speed": ("core_fraction", share),
        "FLOP/byte": ("ai", number),
        "what limits": worded("bound", "first", "bound"),
        "times as fast as from memory": ("l3_gain", _times),
        "notes": (_notes, str),
    }
    if not found.points["pass_p99"].notna().any():
        del columns["slowest passes"]
    if not (found.points["q_len"] != 1).any():
        del columns["queries"]
    tokens = tokens_of(found)
    rows = [row | {"tokens": tokens.get(row["name"])} for row in records(found.points)]
    facts = [{key: str(row[key]) for key in FILTERS if known(row.get(key))} for row in rows]
    return titled("points", columns, rows, range(len(rows)), facts)


def tokens_of(found: Findings) -> dict[str, float]:
    """Tokens per second by a point's name: for the first screen's model if it has such layers, else
    for another model.
    """
    rows = found.tokens[found.tokens["tokens_per_second"].notna()]
    own = rows["model"].str.split(", ").map(lambda names: found.answers.workload.model in names)
    every = (rows, rows[own.astype(bool)])
    return {
        name: rate
        for each in every
        for name, rate in zip(each["name"], each["tokens_per_second"], strict=True)
    }


def _slowest(row: Mapping[str, Any]) -> Cell | None:
    own, beside = (stretched(row, name) for name in ("pass", "neighbour"))
    return Cell(f"{own:.2f}x" + (f" ({beside:.2f}x)" if beside else ""), own) if own else None


_OPEN_L3 = (Claim.NOT_TESTABLE, Claim.UNSTABLE)


def _notes(row: Mapping[str, Any]) -> str:
    """Notes on anything unusual about a point."""
    is_open = row["regime"] == "L3" and row["l3"] in _OPEN_L3
    notes = (
        (row["error"], row["error"]),
        (row["above"], row["above"] and words("reasons", "above", row)),
        (row["unstable"] is True, "unstable"),
        (row["outliers"], f"launches far off the others: {row['outliers']}"),
        (row["ceiling_note"] and not row["error"], words("reasons", "ceiling", row)),
        (is_open, words("reasons", "l3", row) if is_open else ""),
    )
    return "; ".join(note for applies, note in notes if applies)


def ceilings(found: Iterable[Ceiling]) -> Sheet:
    columns: Columns = {
        "probe": ("op", str),
        **plain("form", "threads", "CPUs"),
        "working set": ("bytes", size),
        **plain("level", "pages"),
        "instruction set": ("isa", str),
        "rate": ("median", number),
        **plain("unit", "interval", "launches", "notes"),
    }
    rows = [
        asdict(each)
        | {
            "launches": len(each.samples),
            "CPUs": cpu_text(each.cpus),
            "notes": "" if each.stable else "unstable",
        }
        | {"interval": Cell(between(each.low, each.high), each.low)}
        | ({} if each.bytes else {"bytes": None, "form": "", "pages": ""})
        for each in map(ceiling_row, found)
    ]
    return titled("ceilings", columns, rows)


def tokens(found: Findings) -> Sheet:
    columns: Columns = {
        **plain("model", "layers", "layout", "dtype", "variant", "threads", "batch", "context"),
        "tokens/s": ("tokens_per_second", number),
        "interval": interval("tokens_per_second"),
        "GB/s": ("gbps", number),
        **plain("note"),
    }
    rates = dict(zip(found.points["name"], found.points["gbps"], strict=True))
    return titled(
        "tokens", columns, [row | {"gbps": rates.get(row["name"])} for row in records(found.tokens)]
    )


def skips(found: Sequence[Skip]) -> Sheet:
    rows = [
        {"reason": skip.reason, "particulars": skip.detail}
        | {"combination": ", ".join(f"{key}={value}" for key, value in skip.facts.items())}
        for skip in found
    ]
    return titled("skips", plain("reason", "particulars", "combination"), rows)


def facts(machine: Machine) -> Sheet:
    rows = [
        {
            **asdict(fact),
            "fact": name,
            "value": "unknown" if fact.value is None else said(name, fact.value),
        }
        for name, fact in machine.facts.items()
    ]
    return titled("facts", plain("fact", "value", "source", "confidence", "note"), rows)


def checks(found: Sequence[Check]) -> Sheet:
    columns: Columns = {
        **plain("status"),
        "check": ("name", str),
        **plain("value"),
        "why it matters": ("why", str),
        "what to do": ("advice", str),
    }
    return titled("checks", columns, [asdict(check) for check in found])


def provenance(manifest: Manifest) -> Sheet:
    plan = manifest.plan
    known = {
        "run": manifest.run,
        "begun": manifest.created,
        "suite": manifest.suite,
        "seed": plan.seed,
        "launches planned": plan.launches,
        "samples of a visit": plan.samples,
        "time of a sample": duration(plan.sample_time),
        **{f"digest of the {name}": word for name, word in manifest.identity.items()},
        **{name.replace("_", " "): word for name, word in manifest.versions.items()},
        **{
            f"option {name}": word
            for name, word in manifest.options.items()
            if word not in (None, [], ())
        },
    }
    rows = [{"what": what, "value": str(value)} for what, value in known.items()]
    return titled("provenance", plain("what", "value"), rows)


_COLUMNS: dict[str, Columns] = {  # tables that show a table of the findings without changes
    "peers": {
        **plain("model", "dtype", "threads", "context"),
        "queries": ("q_len", str),
        **plain("engine", "layout", "variant"),
        "GB/s": ("gbps", number),
        "tokens/s": ("tokens_per_second", number),
        "% of read": ("share", share),
        "its interval": interval("share", share),
        "largest error": ("max_abs_err", _error),
        "% overhead": ("overhead", "{:.1%}".format),
        "times as long as ours": ("times", _times),
        "interval": interval("times"),
        "times as long as one query": ("queries_times", _times),
        "interval of these": interval("queries_times"),
        "than ours": ("word", str),
        **plain("version", "function"),
        "notes": ("error", str),
    },
    "contrasts": {
        "what differs": ("factor", str),
        **plain("base", "other", "op", "dtype", "layout", "variant", "context", "threads"),
        "level": ("regime", str),
        "times as fast as base": ("ratio", _times),
        "interval": interval("ratio"),
        **plain("launches", "rounds"),
        "by chance": ("corrected", "{:.1%}".format),
        "verdict": ("word", str),
    },
    "schedules": {
        **{part.replace("_", " "): (part, str) for part in PARTS},
        "schedule": ("preset", str),
        "times as fast as the default": ("gain", _times),
        "interval": interval("gain"),
        **plain("default", "rounds"),
    },
}


_DIGITS = 16  # shown digits of a digest
_CELL = plain("model", "dtype", "threads", "context") | {
    "queries": ("q_len", str),
    "attends": ("attends", str),
}


def peers(found: Beside) -> tuple[Sheet, Sheet, Sheet]:
    """Three tables: the fastest peer of each cell, builds of one engine, and all engines."""
    least: Columns = {
        **_CELL,
        **plain("fastest peer"),
        "% of read": ("best_share", share),
        "ours are times as fast": ("times", _times),
        "interval": (_ends, str),
        **plain("launches"),
        "than ours": ("word", str),
        "lead enough": ("holds", lambda holds: "yes" if holds else "no"),
    }
    pairs: Columns = {
        **plain("engine", "build", "beside"),
        **_CELL,
        **plain("layout"),
        "times as long": ("times", _times),
        "interval": (_ends, str),
        **plain("launches"),
        "verdict": ("word", str),
    }
    own: Columns = {
        **plain("engine", "version"),
        "file": ("library", str),
        "sha256": ("sha256", lambda digest: digest[:_DIGITS]),
        "interpreter": ("python", str),
        "function": ("function", ", ".join),
        "flags": ("flags", "; ".join),
    }
    builds = (
        asdict(each) | {"engine": pair.engine, "build": pair.head, "beside": pair.base}
        for pair in found.builds
        for each in pair.cells
    )
    cells = (asdict(each) | {"fastest peer": each.best} for each in found.ranked)
    return (
        titled("cells", least, list(cells)),
        titled("builds", pairs, list(builds)),
        titled("engines", own, [asdict(each) for each in found.engines]),
    )


def _ends(row: Mapping[str, Any]) -> Cell | None:
    low, high = row["low"], row["high"]
    return None if low is None or high is None else Cell(between(low, high), low)


def every(found: Findings) -> list[Sheet]:
    """All tables of results, in the order of a report."""
    rows = {name: records(getattr(found, name)) for name in _COLUMNS}
    own = {name: titled(name, columns, rows[name]) for name, columns in _COLUMNS.items()}
    asked = (own.pop("contrasts"), tokens(found), fits(found.answers))
    return [
        points(found),
        costs(found),
        queries(found),
        loaded(found.answers),
        idle(found.answers),
        serving(found),
        replace(own.pop("peers"), name="rows"),  # a page's figure has that name
        *peers(found.beside),
        *asked,
        *own.values(),
        ceilings(found.ceilings),
    ]

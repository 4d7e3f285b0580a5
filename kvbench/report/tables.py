"""The tables of a run: which columns they have, in what units, and what each percentage is a share of."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.ceilings import COVERAGE
from kvbench.analysis.measured.launches import COVERAGE as CERTAIN
from kvbench.analysis.measured.machines import UNITS
from kvbench.model import Ceiling, Check, Machine, Role, Skip
from kvbench.model.tuning import PARTS
from kvbench.report.machine_text import said
from kvbench.report.sheet import Cell, Columns, Sheet, interval, known, plain, records, sheet
from kvbench.report.words import peers as words
from kvbench.report.words.limits import BINDS
from kvbench.report.words.phrases import WITNESS, between, number
from kvbench.store import Manifest
from kvbench.units import cpu_text, duration, size

_share, _times = "{:.0%}".format, "{:.2f}".format
FILTERS = ("op", "layout", "dtype", "residency", "threads", "regime")
_TOKENS = (  # per second
    "tokens/s: what the KV cache alone would allow, from memory, with the weights and all other work left out"
)


def dtypes(found: Findings) -> Sheet:
    """The fastest layout of each, for the workload of the first screen."""
    points = found.points.set_index("name")
    rows = [
        {**asdict(bar), "tokens": bar.tokens_per_second.value, "ends": bar.tokens_per_second}
        | {"memory": bar.gbps / points.loc[bar.name, "dram_gbps"], "core": points.loc[bar.name, "core_fraction"]}
        for bar in found.headline.bars
    ]
    columns: Columns = {
        **plain("dtype"),
        "best layout": ("layout", str),
        "tokens/s": ("tokens", number),
        "interval": (lambda row: Cell(between(row["ends"].low, row["ends"].high), row["ends"].low), str),
        "GB/s": ("gbps", number),
        "% of memory read": ("memory", _share),
        "% of core speed": ("core", _share),
        "what limits": ("bound", lambda word: BINDS.get(word, "not clear")),
        "largest error": ("max_abs_err", "{:.0e}".format),
    }
    about = (
        "Memory read: a plain read of memory by the same threads. Core speed: the same kernel with its data in a "
        "private cache. The limit is the one that a dtype comes near to; near neither, it is not clear."
    )
    return sheet("dtypes", "Which dtype, and what limits it?", about, columns, rows)


def points(found: Findings) -> Sheet:
    columns: Columns = {
        "point": ("short", str),
        "level": ("regime", str),
        "tokens/s": ("tokens", number),
        "GB/s": ("gbps", number),
        "interval": interval("gbps"),
        "time of a pass": ("seconds", duration),
        "% of its witness": ("efficiency", _share),
        "witness": ("witness", lambda name: WITNESS.get(Role.of(name).kind, name)),
        "% of best read": ("ceiling_fraction", _share),
        "best read, GB/s": ("ceiling_gbps", number),
        "% of core speed": ("core_fraction", _share),
        "FLOP/byte": ("ai", number),
        "what limits": ("bound", str),
        "L3 helps": ("l3", str),
        "notes": (_notes, str),
    }
    about = (
        "GB/s: bytes that a pass must read (K and V once for each KV head, scales, query, output, page table) over its "
        f"time; the median of the launches, with an interval that holds it with a probability of {CERTAIN:.0%} where "
        f"launches suffice. {_TOKENS}. Witness: what was timed beside it in the same rounds; of a decode a read of the same "
        "rows, of a store a copy. Best read: the fastest read of such a working set in this run, by as many threads or "
        "fewer; for stores, copy. Core speed: the same kernel with its data in a private cache."
    )
    tokens = tokens_of(found)
    rows = [row | {"tokens": tokens.get(row["name"])} for row in records(found.points)]
    facts = [{key: str(row[key]) for key in FILTERS if known(row.get(key))} for row in rows]
    return sheet("points", "Every point", about, columns, rows, range(len(rows)), facts)


def tokens_of(found: Findings) -> dict[str, float]:
    """Tokens per second by a point's name: of the first screen's model, or of another with such layers."""
    rows = found.tokens[found.tokens["tokens_per_second"].notna()]
    first = rows["model"].str.split(", ").map(lambda names: found.headline.model not in names)
    rows = rows.assign(other=first).sort_values("other", kind="stable").drop_duplicates("name")
    return dict(zip(rows["name"], rows["tokens_per_second"], strict=True))


def _notes(row: dict[str, Any]) -> str:
    """All that should make a reader look twice."""
    said = [row["error"]] if row["error"] else []
    said += [f"above its {row['above']}: {row['above_reason']}"] if row["above"] else []
    said += ["unstable"] if row["unstable"] is True else []
    said += [f"launches far off the others: {row['outliers']}"] if row["outliers"] else []
    said += [row["ceiling_note"]] if row["ceiling_note"] and not row["error"] else []
    said += ["level in doubt"] if row["regime_confidence"] == "low" else []
    return "; ".join(said)


def peers(found: Findings) -> Sheet:
    columns: Columns = {
        **plain("model", "dtype", "threads", "context", "engine", "layout", "variant"),
        "GB/s": ("gbps", number),
        "tokens/s": ("tokens_per_second", number),
        "% of read": ("share", _share),
        "largest error": ("max_abs_err", "{:.0e}".format),
        "% overhead": ("overhead", "{:.1%}".format),
        "times as long as ours": ("times", _times),
        "notes": ("error", str),
    }
    about = f"{words.ABOUT} Overhead: a step with next to nothing to read, as a share of the time of a pass."
    return sheet("peers", words.TITLE, about, columns, records(found.peers))


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
    about = (
        "What the machine itself reached in this run. A ceiling holds for its threads, pages and instruction set only. "
        f"Intervals hold the median with a probability of {COVERAGE:.0%}, or span all launches where these are few."
    )
    return sheet("ceilings", "What the machine reached", about, columns, [_ceiling(each) for each in found])


def _ceiling(found: Ceiling) -> dict[str, Any]:
    probe = found.probe
    return {
        "op": probe.op,
        "form": found.form if probe.bytes else "",
        "threads": len(probe.cpus),
        "CPUs": cpu_text(probe.cpus),
        "bytes": probe.bytes or None,
        "level": found.level,
        "pages": probe.pages if probe.bytes else "",
        "isa": probe.isa,
        "median": found.median,
        "unit": UNITS.get(probe.op, "GB/s"),
        "interval": Cell(between(found.low, found.high), found.low),
        "launches": len(found.samples),
        "notes": "" if found.stable else "unstable",
    }


def contrasts(found: Findings) -> Sheet:
    columns: Columns = {
        "what differs": ("factor", str),
        **plain("base", "other", "op"),
        "level": ("regime", str),
        **plain("pairs"),
        "side by side": ("beside", lambda beside: "yes" if beside else "no"),
        "times as fast as base": ("ratio", _times),
        "interval": interval("ratio"),
        **plain("faster", "slower"),
        "same within noise": ("same", str),
        "verdict": ("word", str),
    }
    about = (
        "Pairs of points that differ in one thing. Time of the base over time of the other, launch by launch: above 1 "
        "the other is faster. Of several pairs, their median."
    )
    return sheet("contrasts", "Which choice is faster?", about, columns, records(found.overall))


def tokens(found: Findings) -> Sheet:
    columns: Columns = {
        **plain("model", "layers", "layout", "dtype", "variant", "threads", "batch", "context"),
        "tokens/s": ("tokens_per_second", number),
        "interval": interval("tokens_per_second"),
        "GB/s": ("gbps", number),
        **plain("note"),
    }
    rates = dict(zip(found.points["name"], found.points["gbps"], strict=True))
    rows = [row | {"gbps": rates.get(row["name"])} for row in records(found.tokens)]
    return sheet("tokens", "How many tokens per second, at most?", f"{_TOKENS}.", columns, rows)


def fits(found: Findings) -> Sheet:
    columns: Columns = {
        **plain("model", "dtype", "threads"),
        "bytes per token and layer": ("bytes_per_token", number),
        "in L3 from context": ("l3_low_context", str),
        "to context": ("l3_high_context", str),
        "faster there": ("l3", str),
        **plain("example", "reason"),
    }
    about = "Contexts of which one layer lies in L3, and whether decode is faster there than a plain read of memory."
    return sheet("fits", "Which contexts fit in L3?", about, columns, records(found.fits))


def lines(found: Findings) -> Sheet:
    columns: Columns = {
        **plain("layout", "dtype", "variant", "threads", "residency"),
        "contexts": (lambda row: f"{row['context_low']} to {row['context_high']} ({row['contexts']})", str),
        "fixed cost of a pass": ("fixed_seconds", _signed),
        "its interval": interval("fixed_seconds", _signed),
        "GB/s beyond it": ("gbps", number),
        "interval": interval("gbps"),
        "largest misfit, % of the line": ("misfit", _share),
    }
    about = (
        "A straight line through the time of a pass by context, from memory. Fixed cost: what a pass takes without "
        "tokens. GB/s: the rate of each further token. Misfit: how far a median lies off the line."
    )
    return sheet("lines", "What does a short context cost?", about, columns, records(found.scaling))


def schedules(found: Findings) -> Sheet:
    columns: Columns = {
        **{part.replace("_", " "): (part, str) for part in PARTS},
        "schedule": ("preset", str),
        "times as fast as the default": ("gain", _times),
        "interval": interval("gain"),
        **plain("default", "rounds"),
    }
    about = (
        "Schedule: the order of rows and prefetches. In the first launch all schedules were timed in turn. The default "
        "stays unless another is more than 1.02 times as fast and its interval lies above 1; the simplest wins a tie."
    )
    return sheet("schedules", "Which schedule was chosen?", about, columns, records(found.schedules))


def skips(found: Sequence[Skip]) -> Sheet:
    rows = [
        {"reason": skip.reason, "particulars": skip.detail}
        | {"combination": ", ".join(f"{key}={value}" for key, value in skip.facts.items())}
        for skip in found
    ]
    about = "Combinations of the suite that this machine does not measure."
    return sheet("skips", "Left out", about, plain("reason", "particulars", "combination"), rows)


def facts(machine: Machine) -> Sheet:
    rows = [
        {**asdict(fact), "fact": name, "value": "unknown" if fact.value is None else said(name, fact.value)}
        for name, fact in machine.facts.items()
    ]
    return sheet("facts", "The machine", "", plain("fact", "value", "source", "confidence", "note"), rows)


def checks(found: Sequence[Check]) -> Sheet:
    columns = plain("status") | {"check": ("name", str), "value": ("value", str)}
    columns |= {"why it matters": ("why", str), "what to do": ("advice", str)}
    return sheet("checks", "Before the run", "", columns, [asdict(check) for check in found])


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
        **{f"option {name}": word for name, word in manifest.options.items() if word not in (None, [], ())},
    }
    rows = [{"what": what, "value": str(value)} for what, value in known.items()]
    return sheet("provenance", "How the run was made", "", plain("what", "value"), rows)


def every(found: Findings) -> list[Sheet]:
    """All tables of results, in the order of a report."""
    results = [table(found) for table in (points, peers, tokens, contrasts, fits, lines, schedules)]
    return [*results, ceilings(found.ceilings)]


def _signed(seconds: float) -> str:
    """The fixed cost of a line may well be below zero."""
    return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)

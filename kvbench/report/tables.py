"""Tables for people: which columns they have, in what units, and what each percentage is a share of."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from kvbench.analysis.means import findings
from kvbench.analysis.means.findings import Findings
from kvbench.analysis.measured.ceilings import COVERAGE
from kvbench.analysis.measured.launches import COVERAGE as CERTAIN
from kvbench.analysis.measured.machines import UNITS
from kvbench.model import Ceiling, Check, Machine, Skip
from kvbench.model.tuning import PARTS
from kvbench.report.machine_text import said
from kvbench.report.words.phrases import number
from kvbench.store import Manifest
from kvbench.units import cpu_text, duration, size

_Read = Callable[[dict[str, Any]], Any]
_Columns = dict[str, tuple[_Read, Callable[[Any], str]]]  # by head: a row's value, and how it is written


@dataclass(frozen=True, slots=True)
class Cell:
    """`text` as people read it; `order` to sort by, a number or a text."""

    text: str
    order: float | str


@dataclass(frozen=True, slots=True)
class Sheet:
    """`facts`: for each row, words to filter by; `places`: the number of its point, or none."""

    name: str
    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    places: tuple[int | None, ...]
    facts: tuple[dict[str, str], ...]


_share, _times = "{:.0%}".format, "{:.2f}".format
FILTERS = ("op", "layout", "dtype", "residency", "threads", "regime")


def points(found: Findings) -> Sheet:
    columns: _Columns = {
        "point": (_of("short"), str),
        "regime": (_of("regime"), str),
        "pass": (_of("seconds"), duration),
        "GB/s": (_of("gbps"), number),
        "interval": (_interval("gbps"), str),
        "% of witness": (_of("efficiency"), _share),
        "witness": (_of("witness"), str),
        "% of ceiling": (_of("ceiling_fraction"), _share),
        "ceiling": (_of("ceiling_gbps"), number),
        "its form": (_of("ceiling_form"), str),
        "% of core roof": (_of("core_fraction"), _share),
        "GFLOP/s": (_of("gflops"), number),
        "FLOP/byte": (_of("ai"), number),
        "bound": (_of("bound"), str),
        "L3": (_of("l3"), str),
        "notes": (_notes, str),
    }
    about = (
        "GB/s are compulsory bytes (K and V once for each KV head, scales, query, output, page table) over time: the "
        f"median of the launches, and an interval that holds it with a probability of {CERTAIN:.0%} where there are "
        "launches enough. Witness: twin, the same reads alone (twin: plain; twin_ahead: in the point's own schedule), or a "
        "copy of as many bytes as a store moves. Ceiling: the best of the run's own reads in all forms, of a store of its "
        "copies, of such a footprint by the same threads or fewer. Core roof: the same kernel on data in a private cache."
    )
    rows = [facts | {"place": place} for place, facts in enumerate(_records(found.points))]
    return _table("points", "Points", about, columns, rows)


def _notes(row: dict[str, Any]) -> str:
    """All that should make a reader look twice."""
    said = [row["error"]] if row["error"] else []
    said += [f"above the {row['above']}: {row['above_reason']}"] if row["above"] else []
    said += ["unstable"] if row["unstable"] is True else []
    said += [f"launches far off the others: {row['outliers']}"] if row["outliers"] else []
    said += [row["ceiling_note"]] if row["ceiling_note"] and not row["error"] else []
    said += ["regime in doubt"] if row["regime_confidence"] == "low" else []
    return "; ".join(said)


def ceilings(found: Iterable[Ceiling]) -> Sheet:
    columns: _Columns = {
        "probe": (_of("op"), str),
        "form": (_of("form"), str),
        "threads": (_of("threads"), str),
        "CPUs": (_of("cpus"), str),
        "footprint": (_of("bytes"), size),
        "level": (_of("level"), str),
        "pages": (_of("pages"), str),
        "tier": (_of("isa"), str),
        "rate": (_of("median"), number),
        "unit": (_of("unit"), str),
        "interval": (_of("interval"), str),
        "launches": (_of("launches"), str),
        "notes": (_of("notes"), str),
    }
    about = (
        "What the machine itself gave in this run. Every ceiling holds for its threads, pages and tier alone. Intervals "
        f"over the launches hold the median with a probability of {COVERAGE:.0%}, or are all that the launches gave."
    )
    return _table("ceilings", "Ceilings", about, columns, [_ceiling(each) for each in found])


def _ceiling(found: Ceiling) -> dict[str, Any]:
    probe = found.probe
    return {
        "op": probe.op,
        "form": found.form if probe.bytes else "",
        "threads": len(probe.cpus),
        "cpus": cpu_text(probe.cpus),
        "bytes": probe.bytes or None,
        "level": found.level,
        "pages": probe.pages if probe.bytes else "",
        "isa": probe.isa,
        "median": found.median,
        "unit": UNITS.get(probe.op, "GB/s"),
        "interval": Cell(f"{number(found.low)}..{number(found.high)}", found.low),
        "launches": len(found.samples),
        "notes": "" if found.stable else "unstable",
    }


def contrasts(found: Findings) -> Sheet:
    columns: _Columns = {
        "what": (_of("factor"), str),
        "base": (_of("base"), str),
        "other": (_of("other"), str),
        "op": (_of("op"), str),
        "regime": (_of("regime"), str),
        "pairs": (_of("pairs"), str),
        "side by side": (_of("beside"), lambda beside: "yes" if beside else "no"),
        "times as fast as base": (_of("ratio"), _times),
        "interval": (_interval("ratio"), str),
        "faster": (_of("faster"), str),
        "slower": (_of("slower"), str),
        "same within noise": (_of("same"), str),
        "verdict": (_of("word"), str),
    }
    about = (
        "Time of the base over time of the other, of points that differ in nothing else, launch by launch: above 1 the "
        "other is faster. Of several pairs their middle, with an interval over them."
    )
    return _table("contrasts", "Points that differ in one thing", about, columns, _records(found.overall))


def tokens(found: Findings) -> Sheet:
    columns: _Columns = {
        "model": (_of("model"), str),
        "layers": (_of("layers"), str),
        "layout": (_of("layout"), str),
        "dtype": (_of("dtype"), str),
        "variant": (_of("variant"), str),
        "threads": (_of("threads"), str),
        "batch": (_of("batch"), str),
        "context": (_of("context"), str),
        "tokens/s at most": (_of("tokens_per_second"), number),
        "interval": (_interval("tokens_per_second"), str),
        "note": (_of("note"), str),
    }
    about = "Tokens a second if nothing but the KV cache were read: weights and all other work come on top."
    return _table("tokens", "Upper bound of tokens a second", about, columns, _records(found.tokens))


def fits(found: Findings) -> Sheet:
    columns: _Columns = {
        "model": (_of("model"), str),
        "dtype": (_of("dtype"), str),
        "threads": (_of("threads"), str),
        "bytes per token and layer": (_of("bytes_per_token"), number),
        "in L3 from context": (_of("l3_low_context"), number),
        "to context": (_of("l3_high_context"), number),
        "faster than DRAM there": (_of("l3"), str),
        "example": (_of("example"), str),
        "reason": (_of("reason"), str),
    }
    about = "Up to which context one layer's slice lies in L3, and whether it was read faster than from DRAM there."
    return _table("fits", "Slices in L3", about, columns, _records(found.fits))


def lines(found: Findings) -> Sheet:
    columns: _Columns = {
        "layout": (_of("layout"), str),
        "dtype": (_of("dtype"), str),
        "variant": (_of("variant"), str),
        "threads": (_of("threads"), str),
        "residency": (_of("residency"), str),
        "contexts": (lambda row: f"{row['context_low']}..{row['context_high']} ({row['contexts']})", str),
        "fixed cost of a pass": (_of("fixed_seconds"), _signed),
        "its interval": (_interval("fixed_seconds", _signed), str),
        "GB/s beyond it": (_of("gbps"), number),
        "interval": (_interval("gbps"), str),
        "largest misfit, % of the line": (_of("misfit"), _share),
    }
    about = (
        "A straight line through the time of a pass against context, from memory: what a pass costs without tokens, and "
        "the rate of each further one. Misfit: the largest distance of a median from the line, as % of the line."
    )
    return _table("lines", "Fixed cost and rate", about, columns, _records(found.scaling))


def schedules(found: Findings) -> Sheet:
    parts = {part.replace("_", " "): (_of(part), str) for part in PARTS}
    columns: _Columns = {
        **parts,
        "schedule": (_of("preset"), str),
        "times as fast as the default": (_of("gain"), _times),
        "interval": (_interval("gain"), str),
        "default": (_of("default"), str),
        "rounds": (_of("rounds"), str),
    }
    about = (
        "Order of rows and prefetches of the points that asked for none: in the first launch all were timed in turn on the "
        "memory of the first point of a class. The default stays unless another one is more than 1.02 times as fast, and "
        "its interval lies above 1; of those nearly as fast as the fastest the simplest is taken."
    )
    return _table("schedules", "Schedules chosen", about, columns, _records(found.schedules))


def skips(found: Sequence[Skip]) -> Sheet:
    columns: _Columns = {
        "reason": (_of("reason"), str),
        "particulars": (_of("detail"), str),
        "combination": (_of("facts"), str),
    }
    rows = [
        {"reason": s.reason, "detail": s.detail, "facts": ", ".join(f"{k}={v}" for k, v in s.facts.items())}
        for s in found
    ]
    return _table("skips", "Left out", "Combinations of the suite that are no point here.", columns, rows)


def facts(machine: Machine) -> Sheet:
    columns: _Columns = {
        "fact": (_of("name"), str),
        "value": (_of("value"), str),
        "source": (_of("source"), str),
        "confidence": (_of("confidence"), str),
        "note": (_of("note"), str),
    }
    rows = [
        {"name": name, "value": "unknown" if fact.value is None else said(name, fact.value)}
        | {"source": fact.source, "confidence": fact.confidence, "note": fact.note}
        for name, fact in machine.facts.items()
    ]
    return _table("facts", "The machine", "", columns, rows)


def checks(found: Sequence[Check]) -> Sheet:
    columns: _Columns = {
        "status": (_of("status"), str),
        "check": (_of("name"), str),
        "value": (_of("value"), str),
        "why it matters": (_of("why"), str),
        "what to do": (_of("advice"), str),
    }
    return _table("checks", "Before the run", "", columns, [asdict(check) for check in found])


def provenance(manifest: Manifest) -> Sheet:
    columns: _Columns = {"what": (_of("what"), str), "value": (_of("value"), str)}
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
    return _table("facts", "Provenance", "", columns, rows)


def machines(studies: Sequence[Findings], names: Sequence[str]) -> Sheet:
    columns: _Columns = {
        "machine": (_of("name"), str),
        "fingerprint": (_of("fingerprint"), str),
        "threads": (_of("threads"), str),
        "tier": (_of("isa"), str),
        "L1 read, GB/s": (_of("l1_gbps"), number),
        "L2 read, GB/s": (_of("l2_gbps"), number),
        "L3 read, GB/s": (_of("l3_gbps"), number),
        "DRAM read, GB/s": (_of("dram_gbps"), number),
        "FMA, GFLOP/s": (_of("fma_gflops"), number),
        "fastest decode from DRAM, GB/s": (_of("best_gbps"), number),
        "% of the same threads' DRAM read": (_of("share"), _share),
        "which": (_of("best"), str),
    }
    rows = [row | {"name": name} for row, name in zip(_records(findings.machines(studies)), names, strict=True)]
    about = "Reads are the ceilings of each run itself, by its largest set of CPUs; no level means none was measured."
    return _table("machines", "Machines", about, columns, rows)


def every(found: Findings) -> list[Sheet]:
    """All tables of results, in the order of a report."""
    return [
        tokens(found),
        fits(found),
        contrasts(found),
        lines(found),
        points(found),
        ceilings(found.ceilings),
        schedules(found),
    ]


# ---- cells -----------------------------------------------------------------------------------------------------------


def _table(
    name: str,
    title: str,
    about: str,
    columns: _Columns,
    rows: Sequence[dict[str, Any]],
) -> Sheet:
    return Sheet(
        name=name,
        title=title,
        about=about,
        heads=tuple(columns),
        rows=tuple(tuple(_cell(read(row), shown) for read, shown in columns.values()) for row in rows),
        places=tuple(row.get("place") for row in rows),
        facts=tuple({key: str(row[key]) for key in FILTERS if _known(row.get(key))} for row in rows),
    )


def _cell(value: Any, shown: Callable[[Any], str]) -> Cell:
    if isinstance(value, Cell):
        return value
    if not _known(value):
        return Cell("", "")
    return Cell(shown(value), float(f"{value:.6g}") if isinstance(value, int | float) else str(value))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _of(name: str) -> _Read:
    return lambda row: row[name]


def _interval(name: str, shown: Callable[[Any], str] | None = None) -> _Read:
    """Both ends in one cell, sorted by the lower one."""
    show = shown or number

    def read(row: dict[str, Any]) -> Cell | None:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        return Cell(f"{show(low)}..{show(high)}", float(low)) if _known(low) and _known(high) else None

    return read


def _known(value: Any) -> bool:
    return value is not None and value is not pd.NA and not (isinstance(value, float) and math.isnan(value))


def _signed(seconds: float) -> str:
    """The fixed cost of a line may well be below zero."""
    return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)

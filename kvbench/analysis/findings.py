"""All that is found out about a run, once: what every form of a report shows; in short; and beside other runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import pandas as pd

from kvbench.analysis import frames
from kvbench.analysis.breakeven import breakeven
from kvbench.analysis.ceilings import ceilings
from kvbench.analysis.columns import short_names, table
from kvbench.analysis.contrasts import contrasts, overall
from kvbench.analysis.diagnosis import Sentence, diagnosis
from kvbench.analysis.frames import Noise, known, noise
from kvbench.analysis.headline import Headline, headline
from kvbench.analysis.models import Geometry, fits, tokens
from kvbench.analysis.questions import Open, questions
from kvbench.analysis.scaling import saturation, scaling
from kvbench.analysis.schedules import schedules
from kvbench.model import Ceiling, Check, Machine, Record
from kvbench.model.annotated import Printed, about
from kvbench.units import cpu_text


@dataclass(frozen=True, slots=True)
class Findings:
    """`points` has a short name for each of its rows, and their numbers are what figures know points by."""

    run: str
    launches: int  # of which there are records
    machine: Machine
    cpu_sets: dict[str, tuple[int, ...]]  # by what the tables have
    checks: tuple[Check, ...]
    ceilings: tuple[Ceiling, ...]
    points: pd.DataFrame
    samples: pd.DataFrame
    scaling: pd.DataFrame
    contrasts: pd.DataFrame  # of every factor
    overall: pd.DataFrame
    saturation: pd.DataFrame
    tokens: pd.DataFrame
    fits: pd.DataFrame
    breakeven: pd.DataFrame
    schedules: pd.DataFrame
    open: tuple[Open, ...]
    diagnosis: tuple[Sentence, ...]
    headline: Headline


def findings(
    run: str,
    records: Sequence[Record],
    machine: Machine,
    checks: Sequence[Check] = (),
    models: Sequence[Geometry] = (),
    most: int = 0,
) -> Findings:
    """`records`: those of one run. `models`: those whose shapes points may have. `most`: launches that the run can have
    where some are added until questions are decided, else 0."""
    own = ceilings(records, machine)
    cpu_sets = {cpu_text(cpus): cpus for cpus in {record.point.cpus for record in records}}
    points = frames.points(records, machine, own, most=most)
    points = points.assign(short=short_names(points))
    pairs = contrasts(records, points, most)
    together = overall(pairs, most)
    lines = scaling(records, points)
    tables = {
        "scaling": lines,
        "overall": together,
        "saturation": saturation(points),
        "tokens": tokens(points, models),
        "fits": fits(points, machine, models, cpu_sets),
        "breakeven": breakeven(points, lines),
    }
    launches = len({record.launch for record in records})
    return Findings(
        run=run,
        launches=launches,
        machine=machine,
        cpu_sets=cpu_sets,
        checks=tuple(checks),
        ceilings=own,
        points=points,
        samples=frames.samples(records),
        contrasts=pairs,
        schedules=schedules(tuned for record in records for tuned in record.tuned),
        **tables,
        open=questions(records, points, pairs, together),
        diagnosis=diagnosis(points, machine, checks, contrasts=pairs, **tables),
        headline=headline(points, tables["tokens"], own, machine, launches),
    )


# ---- in short --------------------------------------------------------------------------------------------------------

_FEW = 2  # errors that are told in full


@dataclass(frozen=True, slots=True)
class Place:
    """A point that stands out among its kind."""

    kind: Annotated[str, about("decode, or stores")]
    rank: Annotated[str, about("fastest, slowest, most efficient, least efficient, or the only one")]
    name: Annotated[str, about("of the point")]
    short: Annotated[str, about("of the point, for people")]
    gbps: Annotated[float, about("GB/s: compulsory bytes over time")]
    efficiency: Annotated[float | None, about("share of the witness's rate; null if unknown")]
    witness: Annotated[str, about("the program that efficiency is a share of")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary(Printed):
    """What a run says in short."""

    run: Annotated[str, about("its name")]
    points: Annotated[int, about("points")]
    launches: Annotated[int, about("of which there are records")]
    failed: Annotated[int, about("points that lack a launch or more")]
    errors: Annotated[tuple[str, ...], about("of the first points that failed")]
    headline: Annotated[Headline, about("the run in five answers")]
    places: Annotated[tuple[Place, ...], about("points that stand out")]
    verdicts: Annotated[tuple[str, ...], about("the sentences of the diagnosis")]
    diagnosis: Annotated[tuple[Sentence, ...], about("what the run says of the machine")]
    open: Annotated[tuple[Open, ...], about("questions that more launches may decide")]
    noise: Annotated[Noise, about("how far the launches lie apart")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept(RunSummary):
    """A summary of what there is; an interrupted sweep has one, too."""

    path: Annotated[str, about("its directory")]
    report: Annotated[str, about("the page that --report wrote; else empty")]


def swept(summary: RunSummary, path: str, report: str) -> Swept:
    return Swept(**{field.name: getattr(summary, field.name) for field in fields(summary)}, path=path, report=report)


def summary(found: Findings) -> RunSummary:
    points = found.points
    failed = points[points["error"] != ""]
    return RunSummary(
        run=found.run,
        points=len(points),
        launches=found.launches,
        failed=len(failed),
        errors=tuple(f"{row.short}: {row.error}" for row in failed.head(_FEW).itertuples()),
        headline=found.headline,
        places=tuple(_places(points)),
        verdicts=tuple(sentence.text for sentence in found.diagnosis),
        diagnosis=found.diagnosis,
        open=found.open,
        noise=noise(points),
    )


def _places(points: pd.DataFrame) -> Iterator[Place]:
    """Best and worst, of decodes and of stores."""
    decodes = points["op"] == "decode"
    for kind, rows in (("decode", points[decodes]), ("stores", points[~decodes])):
        rates, shares = rows["gbps"].dropna(), rows["efficiency"].dropna()
        if len(rates) == 1:
            yield _place(kind, "the only one", rows.loc[rates.idxmax()])
        elif len(rates):
            yield _place(kind, "fastest", rows.loc[rates.idxmax()])
            yield _place(kind, "slowest", rows.loc[rates.idxmin()])
            if len(shares):
                yield _place(kind, "most efficient", rows.loc[shares.idxmax()])
                yield _place(kind, "least efficient", rows.loc[shares.idxmin()])


def _place(kind: str, rank: str, row: pd.Series) -> Place:
    return Place(kind, rank, row["name"], row["short"], float(row["gbps"]), known(row["efficiency"]), row["witness"])


# ---- runs of several machines side by side ---------------------------------------------------------------------------

# Read ceilings are the best of a level on the largest CPU set; `share` is of the DRAM read ceiling of the same threads.
MACHINES = {"run": "str", "fingerprint": "str", "threads": "Int64", "isa": "str", "points": "Int64"}
MACHINES |= dict.fromkeys(("l1_gbps", "l2_gbps", "l3_gbps", "dram_gbps", "fma_gflops", "best_gbps", "share"), "float64")
MACHINES |= {"best": "str"}


def machines(studies: Sequence[Findings]) -> pd.DataFrame:
    """A row for each run."""
    return table((_machine(found) for found in studies), MACHINES)


def _machine(found: Findings) -> dict[str, Any]:
    most = max((c.probe.cpus for c in found.ceilings), key=len, default=())
    own = [c for c in found.ceilings if c.probe.cpus == most]
    row: dict[str, Any] = {"run": found.run, "fingerprint": found.machine.fingerprint, "threads": len(most)}
    row |= {"points": len(found.points), "isa": own[0].probe.isa if own else ""}
    for level in ("L1", "L2", "L3", "DRAM"):
        rates = [c.median for c in own if c.probe.op == "read" and c.level == level]
        row[f"{level.lower()}_gbps"] = max(rates, default=None)
    row["fma_gflops"] = max((c.median for c in own if c.probe.op == "flops"), default=None)
    points = found.points
    far = points[(points["op"] == "decode") & (points["regime"] == "DRAM") & points["gbps"].notna()]
    if len(far):
        best = far.loc[far["gbps"].idxmax()]
        row |= {"best": best["short"], "best_gbps": best["gbps"], "share": best["gbps"] / best["dram_gbps"]}
    return row

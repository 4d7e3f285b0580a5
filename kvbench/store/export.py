"""Export a run for pyperf: a benchmark for each point, a pyperf Run for each launch, seconds for
each pass.

pyperf compares by name, needs equally many values, and knows no rates. What rates are computed from
is stored as metadata, under names that begin with kvb_.
"""

import gzip
import io
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from statistics import median
from typing import IO, Any

import pyperf

from kvbench.grouping import grouped
from kvbench.model import Contrast, Point, Record, Sample
from kvbench.model.point import Visited
from kvbench.store.manifest import Manifest
from kvbench.units import cpu_text

_HOST = ("hostname", "platform", "python_version", "cpu_model_name")  # pyperf's own names
_PROGRAM = "point"
_SUMS = ("switches", "faults", "steal", "throttled")  # sums over the samples

_Facts = dict[str, Any]


def suite(manifest: Manifest, records: Iterable[Record]) -> pyperf.BenchmarkSuite | None:
    """The run as a suite. Points that failed in any launch are left out, then launches that lack a
    point. None if nothing is left.
    """
    visits: dict[str, dict[int, Record]] = {
        point.name: {} for point in manifest.plan.points if not isinstance(point, Contrast)
    }
    for record in records:
        if not isinstance(record.point, Contrast):
            visits[record.point.name][record.launch] = record
    samples = manifest.plan.samples
    whole = {
        name: found
        for name, found in visits.items()
        if all(not record.error and len(_own(record)) == samples for record in found.values())
    }
    launches = sorted(set.intersection(*map(set, whole.values()))) if whole else []
    if not launches:
        return None
    common = _of_run(manifest)
    runs = (
        [_run(found[number], common, manifest) for number in launches] for found in whole.values()
    )
    return pyperf.BenchmarkSuite([pyperf.Benchmark(each) for each in runs])


def dump(found: pyperf.BenchmarkSuite, file: IO[bytes]) -> None:
    """Write a suite, compressed. Equal suites give equal bytes."""
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8") as text,
    ):
        found.dump(text)


def _own(record: Record) -> list[Sample]:
    return [sample for sample in record.samples if sample.program == _PROGRAM]


def _run(record: Record, common: _Facts, manifest: Manifest) -> pyperf.Run:
    own = _own(record)
    facts = (
        common
        | {"name": record.point.name}
        | _of_point(record.point)
        | _of_visit(record, own, manifest)
    )
    return pyperf.Run(
        [sample.each for sample in own], metadata=_clean(facts), collect_metadata=False
    )


# ---- metadata ------------------------------------------------------------------------------------


def _of_run(manifest: Manifest) -> _Facts:
    return {
        "unit": "second",
        "inner_loops": 1,
        "kvb_schema": manifest.format,
        "kvb_run": manifest.run,
        "kvb_suite": manifest.suite,
        "kvb_seed": manifest.plan.seed,
        **{name: manifest.versions.get(name) for name in _HOST},
        **{f"kvb_{name}_id": value for name, value in manifest.identity.items()},
    }


def _of_point(point: Visited) -> _Facts:
    facts = _flat(point, "shape") | {"kvb_kernel": point.kernel, "kvb_threads": point.threads}
    if isinstance(point, Point):
        facts |= _flat(point.shape)
    return facts | {"kvb_cpus": cpu_text(point.cpus)}


def _flat(value: Any, *without: str) -> _Facts:
    return {
        f"kvb_{field.name}": getattr(value, field.name)
        for field in fields(value)
        if field.name not in without
    }


def _of_visit(record: Record, samples: Sequence[Sample], manifest: Manifest) -> _Facts:
    passes = {sample.passes for sample in samples}
    # pyperf's times have no zone
    began = datetime.fromtimestamp(record.began, manifest.zone).replace(tzinfo=None)
    traffic = record.traffic.get(_PROGRAM)
    return {
        "loops": min(passes) if len(passes) == 1 else None,
        "duration": record.wall or sum(sample.seconds for sample in record.samples),
        "date": began.isoformat(" ") if record.began else None,
        "kvb_launch": record.launch,
        "kvb_part": record.part,
        "kvb_steps": record.steps or None,
        "kvb_slices": record.slices or None,
        "kvb_slice_bytes": record.slice_bytes or None,
        "kvb_max_abs_err": record.max_abs_err,
        "kvb_skew": median(sample.skew for sample in samples),
        **{f"kvb_{name}": sum(getattr(s, name) for s in samples) for name in _SUMS},
        "kvb_bytes_compulsory": round(traffic.bytes_compulsory) if traffic else None,
        "kvb_flops": round(traffic.flops) if traffic else None,
        **{f"kvb_{name}": count for name, count in record.memory.items()},
        **_witnesses(record),
    }


def _witnesses(record: Record) -> _Facts:
    """The other programs of the visit: medians of this launch."""
    seconds = grouped(
        (sample.program, sample.each) for sample in record.samples if sample.program != _PROGRAM
    )
    return {f"kvb_{program}_seconds": median(values) for program, values in seconds.items()}


def _clean(facts: _Facts) -> _Facts:
    """Drop None and empty texts, and join lines: pyperf refuses them."""
    found = {
        name: " ".join(value.split()) if isinstance(value, str) else value
        for name, value in facts.items()
    }
    kept = {name: value for name, value in found.items() if value is not None and value != ""}
    return {name: int(value) if isinstance(value, bool) else value for name, value in kept.items()}

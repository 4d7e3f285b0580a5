"""All that a run found out, as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from kvbench.analysis import machine
from kvbench.analysis.findings import Findings
from kvbench.report.gaps import gaps
from kvbench.store import Manifest
from kvbench.texts import table_csv

_OF_MACHINE = ("fingerprint", "environment", "topology", "preflight", "ceilings")
_TABLES = ("points", "scaling", "contrasts", "overall", "saturation", "tokens", "fits", "breakeven")


def plain(found: Findings, manifest: Manifest) -> dict[str, Any]:
    """Keys are part of the interface. What is not known is null."""
    known = replace(machine.profile(found.machine, found.checks), run=found.run, ceilings=found.ceilings)
    facts = machine.plain(known)
    return {
        "version": 1,
        "run": found.run,
        "suite": manifest.suite,
        "created": manifest.created,
        "command": manifest.command,
        "seed": manifest.plan.seed,
        "identity": manifest.identity,
        "versions": manifest.versions,
        "missing": gaps(found, manifest),
        "diagnosis": [asdict(sentence) for sentence in found.diagnosis],
        **{name: facts[name] for name in _OF_MACHINE},
        **{name: _rows(getattr(found, name)) for name in _TABLES},
        "skips": [asdict(skip) for skip in manifest.skips],
    }


def points(studies: Sequence[Findings]) -> str:
    """The points of all, as CSV."""
    tables = [found.points.assign(run=found.run) for found in studies]
    table = pd.concat(tables, ignore_index=True)
    return table_csv(table[["run", *table.columns.drop("run")]])


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return json.loads(table.to_json(orient="records", double_precision=15))

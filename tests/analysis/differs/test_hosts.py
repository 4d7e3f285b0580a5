"""Twelve hosts, of which one is slow, and one has another set-up."""

import numpy as np
import pandas as pd

from kvbench.analysis.differs.hosts import hosts
from kvbench.report.words import template

NAMES = [f"node{number:02}" for number in range(12)]


def _fleet(seed=1):
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.normal(0, 0.01, (12, 20))) * np.linspace(10, 200, 20)
    rates[7] /= 1.12
    tables = [pd.DataFrame({"name": [f"p{i}" for i in range(20)], "gbps": row}) for row in rates]
    return dict(zip(NAMES, tables, strict=True))


def test_the_slow_one_is_the_outlier_and_its_interval_holds_the_truth():
    machines = dict.fromkeys(NAMES, ("cpu", "kernel 1")) | {"node03": ("cpu", "kernel 2")}
    first, *others = hosts(_fleet(), machines)
    assert first.name == "node07" and first.outlier
    assert first.low < 1 / 1.12 - 1 < first.high and first.high - first.low < 0.02
    assert not any(host.outlier for host in others)
    assert {host.name: host.other for host in others if host.other} == {"node03": "set-up"}
    head, slow, *_ = template("hosts", "lines", (first, *others)).splitlines()
    assert head.startswith("12 hosts, 20 points on all of them; from -1") and slow.endswith(
        ", outlier"
    )


def test_two_hosts_have_no_middle():
    two = {name: table for name, table in _fleet().items() if name in NAMES[:2]}
    found = hosts(two, dict.fromkeys(two, ("cpu", "kernel")))
    assert [host.speed for host in found] == [
        None,
        None,
    ] and "too few hosts to compare" in template("hosts", "lines", found)

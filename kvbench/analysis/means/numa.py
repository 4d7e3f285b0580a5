"""The rates at which threads of each NUMA node read memory of each node."""

from collections import namedtuple
from collections.abc import Mapping

import pandas as pd

from kvbench.analysis.limits.frames import decodes_of
from kvbench.model import Machine
from kvbench.model.point import LOCAL

ALL_NODES = "all nodes"  # sorted after the nodes, because it is longer


# A decode by the threads of one node or of all nodes. Its memory lies on one node, on all nodes in
# turn, or with the threads that read it.
# read: GB/s of plain reads of the same rows in the same rounds; None if not measured.
Placed = namedtuple("Placed", ("threads", "memory", "count", "gbps", "low", "high", "read"))


def matrix(
    points: pd.DataFrame, cpus: Mapping[str, tuple[int, ...]], machine: Machine
) -> tuple[Placed, ...]:
    """The fastest decode of each pair of threads and memory, sorted by threads; empty if all memory
    is local.
    """
    decodes = decodes_of(points)
    if (decodes["memory"] == LOCAL).all():
        return ()
    nodes = {cpu.cpu: cpu.node for cpu in machine.cpus}
    found: dict[tuple[str, str], Placed] = {}
    for _, row in decodes.sort_values(["cpus", "gbps"]).iterrows():
        own = sorted({nodes[cpu] for cpu in cpus[row["name"]]})
        threads = f"node{own[0]}" if len(own) == 1 else ALL_NODES
        read = row["twin_gbps"] if pd.notna(row["twin_gbps"]) else None
        gbps, low, high = (float(row[name]) for name in ("gbps", "gbps_low", "gbps_high"))
        found[threads, row["memory"]] = Placed(
            threads, row["memory"], int(row["threads"]), gbps, low, high, read
        )
    return tuple(
        sorted(found.values(), key=lambda each: (len(each.threads), each.threads, each.memory))
    )

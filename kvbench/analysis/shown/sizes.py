"""What --plot draws: sizes of a cache, the bytes that a step of a model reads, and the rates of
plain reads.
"""

from collections.abc import Iterator

import pandas as pd

from kvbench.analysis.measured.machines import MachineProfile, usual_pages
from kvbench.model import PLAIN
from kvbench.model.explained import Explained
from kvbench.model.size import Fit
from kvbench.units import GIB, MIB, counted, cpu_text, size

BYTES, RATE = "bytes", "rate"
_NEAR = 16.0  # capacities this many times smaller or larger than all sizes are not marked
_READS = ("threads", "bytes", "gbps", "low", "high")


def sizes(table: pd.DataFrame) -> pd.DataFrame:
    """The lines of sizes. `table`: context, dtype, bytes. Dtypes of equal size share a line and its
    name.
    """
    counts = table.groupby("dtype", sort=False)["bytes"].agg(tuple)
    names = {count: ", ".join(counts.index[counts == count]) for count in counts}
    alike = {dtype: names[count] for dtype, count in counts.items()}
    shown = table.assign(mib=table["bytes"] / MIB, dtype=table["dtype"].map(alike))
    return shown.drop_duplicates()


def levels(table: pd.DataFrame, fit: Fit, memory: int | None) -> Iterator[tuple[float, str]]:
    """MiB and label of caches and memory whose capacity is near the sizes."""
    low, high = table["bytes"].min() / _NEAR, table["bytes"].max() * _NEAR
    known = {f"L{level.level}": level.capacity for level in fit.levels}
    known |= {"memory": memory} if memory else {}
    for name, count in known.items():
        if low <= count <= high:
            yield count / MIB, f"{name}, {size(count)}"


def explained(found: Explained) -> pd.DataFrame:
    """A row for each format of KV at each context, with its GiB and tokens per second. Rows for the
    weights have GiB.
    """
    cells = [(row.context, cell) for row in found.rows for cell in row.cells]
    gib = {"weights": found.read / GIB} if found.read else {}
    rows = [
        *((BYTES, row.context, name, count) for row in found.rows for name, count in gib.items()),
        *((BYTES, context, cell.dtype, cell.bytes / GIB) for context, cell in cells),
        *((RATE, context, cell.dtype, cell.tokens) for context, cell in cells),
    ]
    return pd.DataFrame(rows, columns=["panel", "context", "line", "shown"])


def reads(profile: MachineProfile) -> pd.DataFrame:
    """Reads by working set, for one CPU set of each number of threads."""
    rows, pages = list[tuple[str, int, float, float, float]](), usual_pages(profile.ceilings)
    for cpus in sorted({len(cpus): cpus for cpus in reversed(profile.cpu_sets)}.values(), key=len):
        label = f"{counted(len(cpus), 'thread')}, CPU{'s' * (len(cpus) > 1)} {cpu_text(cpus)}"
        own = [
            c for c in profile.ceilings if c.cpus == cpus and c.pages == pages and c.op == "read"
        ]
        rows += [(label, c.bytes, c.median, c.low, c.high) for c in own if c.form == PLAIN]
    return pd.DataFrame(rows, columns=list(_READS)).sort_values("bytes", kind="stable")

"""The cost of memory on other NUMA nodes, as lines of a terminal."""

from collections.abc import Sequence

from kvbench.analysis.means.numa import Placed

_ONE_NODE = "  NUMA      this machine has one node, so all memory is local: nothing to compare"
_HEAD = (
    "Decode from memory in GB/s (in brackets: plain reads of the same rows), by where the threads"
    " run and where the memory lies"
)


def lines(found: Sequence[Placed]) -> list[str]:
    """A table by threads and memory; for a machine with one node, one line instead."""
    threads, memory = (
        list(dict.fromkeys(getattr(each, name) for each in found)) for name in ("threads", "memory")
    )
    if len(threads) == 1 and sum(word.startswith("node") for word in memory) == 1:
        return [_ONE_NODE]
    cells = {
        (each.threads, each.memory): f"{_rate(each.gbps)} ({_rate(each.read)})" for each in found
    }
    rows = [
        ["threads", *memory],
        *([one, *(cells.get((one, other), "") for other in memory)] for one in threads),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        "  " + "  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return [_HEAD, "", *table]


def _rate(gbps: float | None) -> str:
    return "-" if gbps is None else f"{gbps:.{0 if gbps >= 10 else 1}f}"

"""What a machine's plain reads reach, by working set and number of threads."""

import pandas as pd
from matplotlib.figure import Figure as Canvas

from kvbench.analysis.measured.columns import machine_name
from kvbench.analysis.measured.machines import MachineProfile, usual_pages
from kvbench.model import PLAIN
from kvbench.report.figures.chart import Panel, chart
from kvbench.units import counted, cpu_text, size


def reads(profile: MachineProfile) -> Canvas:
    """One CPU set for each number of threads: medians, and the interval of each as a line."""
    pages, rows = usual_pages(profile.ceilings), []
    for cpus in sorted({len(cpus): cpus for cpus in reversed(profile.cpu_sets)}.values(), key=len):
        label = f"{counted(len(cpus), 'thread')}, CPU{'s' * (len(cpus) > 1)} {cpu_text(cpus)}"
        own = [c for c in profile.ceilings if c.cpus == cpus and c.pages == pages and c.op == "read"]
        rows += [(label, c.bytes, c.median, c.low, c.high) for c in own if c.form == PLAIN]
    table = pd.DataFrame(rows, columns=["threads", "bytes", "gbps", "low", "high"]).sort_values("bytes", kind="stable")
    ends = [f"L{c.level} {size(c.effective or c.declared)}" for c in profile.capacities]
    title = f"{machine_name(profile.topology)}, {profile.ceilings[-1].isa}, {pages} pages; {', '.join(ends)}"
    panel = Panel("bytes", "gbps", "working set of all threads together", "GB/s, plain read", title=title, by="threads",
                  low="low", high="high", log="xy", text=size)  # fmt: skip
    return chart("reads", "", "", table, [panel]).canvas()

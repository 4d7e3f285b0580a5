"""A fleet, as a terminal shows it."""

from collections.abc import Sequence

from kvbench.analysis.differs.hosts import Host
from kvbench.units import counted


def lines(found: Sequence[Host]) -> list[str]:
    if not found:
        return ["no host brought a run"]
    speeds = [host.speed for host in found if host.speed is not None]
    head = f"{counted(len(found), 'host')}, {counted(found[0].points, 'point')} on all of them"
    spread = f"; from {min(speeds):+.1%} to {max(speeds):+.1%} of the median host's GB/s" if speeds else ""
    width = max(len(host.name) for host in found)
    return [f"{head}{spread}", *(f"  {host.name:<{width}}  {_said(host)}" for host in found)]


def _said(host: Host) -> str:
    if host.speed is None:
        speed = "too few hosts to compare"
    elif host.low is None:
        speed = f"{host.speed:+.1%}, too few points for an interval"
    else:
        speed = f"{host.speed:+.1%} ({host.low:+.1%} to {host.high:+.1%})"
    other = f"its {host.other} is not that of most hosts" if host.other else ""
    return ", ".join(filter(None, [speed, "outlier" if host.outlier else "", other]))

"""Find the hosts that differ from the others, in one suite on many hosts that should be alike."""

from collections import namedtuple
from collections.abc import Mapping
from statistics import mode

import numpy as np
import pandas as pd

from kvbench.analysis.judge import LIMITS, as_share, paired

_FEWEST = 3  # hosts: with fewer there is no middle one


# speed: its GB/s over the median of all hosts, point by point, as a share above 1; None with fewer
#     than three hosts.
# other: "hardware" or "set-up" if that differs from most hosts'.
Host = namedtuple("Host", ("name", "points", "speed", "low", "high", "outlier", "other"))


def hosts(
    points: Mapping[str, pd.DataFrame], machines: Mapping[str, tuple[str, str]]
) -> tuple[Host, ...]:
    """All hosts, the slowest first. `points`: the points of each host's run. `machines`:
    fingerprint and environment, by host.
    """
    rates = pd.DataFrame(
        {host: table.set_index("name")["gbps"] for host, table in points.items()}
    ).dropna()
    logs = np.log(rates.to_numpy()) if len(rates) else np.empty((0, len(points)))
    usual = tuple(mode(each[place] for each in machines.values()) for place in (0, 1))
    found = []
    for place, host in enumerate(points):
        speed = low = high = None
        if len(points) >= _FEWEST and len(rates):
            by_time = paired(np.median(logs, axis=1) - logs[:, place])  # positive: it takes longer
            speed, low, high = (
                as_share(-float(end)) for end in (by_time.estimate, by_time.high, by_time.low)
            )
        far = low is not None and low > LIMITS.same or high is not None and high < -LIMITS.same
        own = machines[host]
        other = "hardware" if own[0] != usual[0] else "set-up" if own[1] != usual[1] else ""
        found.append(Host(host, len(rates), speed, low, high, far, other))
    return tuple(sorted(found, key=lambda host: (host.speed or 0.0, host.name)))

"""Other engines beside ours: those of which a share of a plain read is known."""

import pandas as pd

from kvbench.analysis.means.findings import Findings
from kvbench.analysis.shown.usual import places


def peers(found: Findings) -> pd.DataFrame:
    rows = found.peers[found.peers["share"].notna()]
    return rows.assign(row=rows["name"].map(places(found.points)))

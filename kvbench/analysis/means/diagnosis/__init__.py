"""What a run says of its machine: facts with what encloses their numbers, and what is not known. report/words tells
them."""

from collections.abc import Sequence

import pandas as pd

from kvbench.analysis.means.diagnosis.bandwidth import MemoryRate, MemoryUntested, memory
from kvbench.analysis.means.diagnosis.choices import CHOICES, Choice, ThreadsHelp, ThreadsSuffice, choice, threads
from kvbench.analysis.means.diagnosis.l3 import L3Untested, L3Verdict, l3
from kvbench.analysis.means.diagnosis.limits import Bounds, Fit, PassCost, Tokens, bounds, fit, overhead, tokens
from kvbench.analysis.means.diagnosis.stores import Stores, stores
from kvbench.analysis.means.diagnosis.trust import Above, Doubts, Noise, above, doubts, noise
from kvbench.model import Check, Machine

Fact = MemoryUntested | MemoryRate | L3Untested | L3Verdict | Choice | ThreadsHelp | ThreadsSuffice
Fact |= Fit | Bounds | Tokens | PassCost | Stores | Above | Noise | Doubts


def diagnosis(
    points: pd.DataFrame, machine: Machine, checks: Sequence[Check], **tables: pd.DataFrame
) -> tuple[Fact, ...]:
    """A run that has nothing to say on a topic leaves it out; but that memory or L3 was not tested is said."""
    found = (
        memory(points),
        l3(points, machine),
        *(choice(tables["overall"], factor) for factor in CHOICES),
        fit(tables["fits"]),
        threads(tables["saturation"], points, tables["contrasts"]),
        bounds(points),
        tokens(tables["tokens"]),
        overhead(tables["scaling"]),
        stores(points, tables["breakeven"]),
        above(points),
        noise(points),
        doubts(checks),
    )
    return tuple(fact for fact in found if fact)

"""What a run says of its machine, in sentences that need no other page: each says what it does not know, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from kvbench.analysis.diagnosis.bandwidth import MemoryRate, MemoryUntested, memory
from kvbench.analysis.diagnosis.bounds import bound, fit, overhead
from kvbench.analysis.diagnosis.bounds import tokens as tokens_text
from kvbench.analysis.diagnosis.choices import CHOICES, choice, threads
from kvbench.analysis.diagnosis.doubt import measured, surroundings, suspect
from kvbench.analysis.diagnosis.l3 import L3Untested, L3Verdict, l3
from kvbench.analysis.diagnosis.stores import stores
from kvbench.model import Check, Machine
from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Sentence:
    """topic: a word to find it by; two sentences may share one."""

    topic: Annotated[str, about("a word to find it by")]
    text: Annotated[str, about("it")]


Fact = MemoryUntested | MemoryRate | L3Untested | L3Verdict | Sentence


def diagnosis(
    points: pd.DataFrame,
    machine: Machine,
    checks: Sequence[Check],
    *,
    contrasts: pd.DataFrame,
    scaling: pd.DataFrame,
    overall: pd.DataFrame,
    saturation: pd.DataFrame,
    tokens: pd.DataFrame,
    fits: pd.DataFrame,
    breakeven: pd.DataFrame,
) -> tuple[Fact, ...]:
    """From the tables of these names.

    A run that has nothing to say on a topic leaves it out; but that memory or L3 was not tested is said.
    """
    found = (
        *((factor, choice(overall, factor)) for factor in CHOICES),
        ("fit", fit(fits)),
        ("threads", threads(saturation, points, contrasts)),
        ("bound", bound(points)),
        ("tokens", tokens_text(tokens)),
        ("overhead", overhead(scaling)),
        ("stores", stores(points, breakeven)),
        ("suspect", suspect(points)),
        ("doubt", measured(points)),
        ("doubt", surroundings(checks)),
    )
    return memory(points), l3(points, machine), *(Sentence(topic, text) for topic, text in found if text)

"""What a comparison of two runs asks for beside what the judge does."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kvbench.analysis.judge import LIMITS as JUDGED


@dataclass(frozen=True, slots=True)
class CompareLimits:
    """Where nothing else is said, shares of base's time. They are judgement."""

    agree: float = 0.5  # one-sided chance below which a further view agrees: seconds are too noisy to be tested
    told: float = 1.0  # least effect of a point, as a share of how far witnesses moved from run to run: in another
    # state of the machine a point and its witness need not change alike
    told_family: float = 0.5  # and of a family of several points: most of its points change nearly as their witnesses
    several: int = 3
    cached: float = 0.05  # smallest effect of a point in a private cache: placement alone moves it by some percent
    unlearned: float = 0.05  # of any point, as long as no runs of one build have shown what noise does between runs
    unlearned_family: float = 0.03
    above_noise: float = 1.5  # times what hardly any point of such runs exceeds
    hardly: float = 0.99  # share of the points that do not


LIMITS = CompareLimits()


@dataclass(frozen=True, slots=True)
class Effects:
    """The smallest effects that are called a change: of a point in a private cache, beyond those, and of a family.
    Whether they were `asked` for; and the noise that they are at least."""

    cached: float
    beyond: float
    family: float
    asked: bool
    learned: "Floor | None"

    def of(self, regime: str) -> float:
        return self.cached if regime in ("L1", "L2") else self.beyond


@dataclass(frozen=True, slots=True)
class Floor:
    """What comparisons of one build with itself found, though there was nothing to find."""

    points: float
    families: float
    pairs: int  # of runs


def floor(points: Iterable[float | None], families: Iterable[float | None], pairs: int) -> Floor:
    """From the effects of all points, and of all families, of such comparisons: one of each that is known at least."""
    known = ([abs(effect) for effect in effects if effect is not None] for effects in (points, families))
    return Floor(*(LIMITS.above_noise * float(np.quantile(each, LIMITS.hardly)) for each in known), pairs)


def effects(asked: float | None, learned: Floor | None) -> Effects:
    """`asked`: in place of what is usual, for points and families alike; noise that was `learned` still raises it."""
    usual = (LIMITS.unlearned, LIMITS.unlearned, LIMITS.unlearned_family)
    if learned:
        usual = (LIMITS.cached, JUDGED.point, JUDGED.family)
    cached, beyond, family = usual if asked is None else (asked,) * 3
    least = learned or Floor(0.0, 0.0, 0)
    smallest = max(cached, least.points), max(beyond, least.points), max(family, least.families)
    return Effects(*smallest, asked is not None, learned)

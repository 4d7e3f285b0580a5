"""Numbers and words that several facts have."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Self

from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, and what encloses it."""

    value: Annotated[float, about("in `unit`: median over launches")]
    low: Annotated[float, about("in `unit`: lower end of its interval")]
    high: Annotated[float, about("in `unit`: upper end of its interval")]

    @classmethod
    def of(cls, row: Mapping[str, Any], name: str, *more: str) -> Self:
        """From the row of a table."""
        return cls(float(row[name]), float(row[f"{name}_low"]), float(row[f"{name}_high"]), *more)

    @property
    def turned(self) -> Self:
        """Of the ratio the other way round."""
        return type(self)(1 / self.value, 1 / self.high, 1 / self.low)


class Untested(StrEnum):
    """Why there is no point to tell anything from."""

    NO_DECODE = "no decode"
    UNKNOWN_CACHES = "unknown caches"
    NEARER = "nearer than memory"
    ELSEWHERE = "outside of L3"
    CLOSED = "no footprint is in L3"

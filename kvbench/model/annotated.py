"""Types of fields with limits, which msgspec checks, and with a meaning, which the schemas
print.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

_MOST = (1 << 63) - 1  # the largest integer that tables hold

Count = Annotated[int, Meta(ge=0, le=_MOST)]
Size = Annotated[int, Meta(ge=1, le=_MOST)]  # at least 1: safe to divide by
Number = Annotated[float, Meta(gt=-1e30, lt=1e30)]
Positive = Annotated[float, Meta(gt=0, lt=1e30)]
Moved = Annotated[float, Meta(ge=0, lt=1e30)]  # GB/s; 0 if nothing was moved
Timed = Annotated[float, Meta(ge=1e-9, le=1e9)]  # seconds that were timed
# lengths of a batch's sequences: see Shape.held
Lengths = Annotated[
    str,
    Meta(pattern=r"^(even|ragged:[0-9]{1,18}|listed:[1-9][0-9]{0,9}(,[1-9][0-9]{0,9})*)$"),
]
Cpus = Annotated[tuple[Count, ...], Meta(min_length=1)]


def about(text: str, *words: str) -> Meta:
    """The meaning of a key, with its unit, and the words that are allowed. `kvbench list schemas`
    prints both.
    """
    return Meta(description=text, extra_json_schema={"enum": list(words)} if words else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """The base of everything that a command prints with --json."""

    version: Annotated[
        Literal[1], about("version of this format: keys may be added, none is renamed or dropped")
    ] = 1

"""What is said of a field beside its type: its meaning, for the schemas, and its limits. msgspec
reads both.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

_MOST = (1 << 63) - 1  # tables hold no more

Count = Annotated[int, Meta(ge=0, le=_MOST)]
Size = Annotated[int, Meta(ge=1, le=_MOST)]  # of what can be divided by
Number = Annotated[float, Meta(gt=-1e30, lt=1e30)]
Positive = Annotated[float, Meta(gt=0, lt=1e30)]
Moved = Annotated[float, Meta(ge=0, lt=1e30)]  # GB/s, 0 where nothing was
Timed = Annotated[float, Meta(ge=1e-9, le=1e9)]  # seconds of anything that was timed
# of the sequences of a batch: see Shape.held
Lengths = Annotated[
    str,
    Meta(pattern=r"^(even|ragged:[0-9]{1,18}|listed:[1-9][0-9]{0,9}(,[1-9][0-9]{0,9})*)$"),
]
Cpus = Annotated[tuple[Count, ...], Meta(min_length=1)]


def about(text: str, *words: str) -> Meta:
    """The meaning of a key, with its unit, and the words that it may be. kvbench list schemas
    prints it.
    """
    return Meta(description=text, extra_json_schema={"enum": list(words)} if words else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What a command prints with --json."""

    version: Annotated[
        Literal[1], about("of this format: keys may be added, none is renamed or dropped")
    ] = 1

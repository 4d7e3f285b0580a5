"""What changes the scores of a decode, as the library is told: see kvbench/model/scores.py."""

from typing import Any

import numpy as np

from kvbench.errors import BadArgument
from kvbench.native.arguments import floats
from kvbench.native.library import Library


def reshaped(
    library: Library, q_heads: int, sinks: Any, softcap: Any, slopes: Any
) -> dict[str, Any]:
    """The fields of kvb_decode that change scores. sinks, slopes: [q_heads]."""
    own: dict[str, Any] = {}
    if cap := _cap(softcap):
        own["softcap"] = cap
    for field, name, values in (("sink", "sinks", sinks), ("slope", "slopes", slopes)):
        if values is not None:
            own[field] = library.ffi.from_buffer("float[]", floats(name, values, (q_heads,)))
    return own


def _cap(softcap: Any) -> float:
    with np.errstate(over="ignore"):
        cap = float(floats("softcap", softcap, ()))
    if not 0 <= cap < np.inf:
        raise BadArgument(f"softcap is {cap:g}", "give a number above 0, or 0 for no cap")
    return cap

"""The options of drafting: how many tokens, how often they are accepted, and what they cost."""

import re
from dataclasses import dataclass

from kvbench.errors import BadArgument
from kvbench.model.masks import MOST_QUERIES
from kvbench.units import GIB, KIB, MIB

SHARE, SECONDS, BYTES = "share", "seconds", "bytes"
_MOST = MOST_QUERIES - 1
_NUMBER = r"(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})"
_UNITS = {
    "": (SHARE, 1.0),
    "%": (SHARE, 0.01),
    "s": (SECONDS, 1.0),
    "ms": (SECONDS, 1e-3),
    "us": (SECONDS, 1e-6),
    "kB": (BYTES, 1e3),
    "MB": (BYTES, 1e6),
    "GB": (BYTES, 1e9),
    **dict.fromkeys(("k", "KiB"), (BYTES, float(KIB))),
    **dict.fromkeys(("M", "MiB"), (BYTES, float(MIB))),
    **dict.fromkeys(("G", "GiB"), (BYTES, float(GIB))),
}
_FALLS = "shares of all steps, such as .7,.45,.33,.21; a draft counts only if all before it do"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of drafting for one step: a share of a plain step, seconds, or bytes of weights that
    are read for each drafted token.
    """

    unit: str
    amount: float


@dataclass(frozen=True, slots=True)
class Draft:
    """Drafting, as asked for. `accept`: for each draft, the share of steps that accept it.
    `powers`: only one share was given, and these are its powers.
    """

    drafts: int
    accept: tuple[float, ...]
    powers: bool = False
    cost: Cost | None = None

    @property
    def queries(self) -> int:
        """Queries of a step that verifies: one for the newest token, and one for each draft."""
        return self.drafts + 1

    @property
    def yields(self) -> float:
        """Tokens that such a step gives, on average."""
        return 1 + sum(self.accept)


def asked(drafts: int, accept: str, cost: str | None) -> Draft:
    """Parse the options of drafting."""
    if not 0 < drafts <= _MOST:
        raise BadArgument(f"--draft is {drafts}", f"1 to {_MOST} tokens")
    shares = tuple(map(_share, accept.split(",")))
    if powers := len(shares) == 1 < drafts:
        shares = tuple(shares[0] ** place for place in range(1, drafts + 1))
    if len(shares) != drafts:
        raise BadArgument(
            f"--accept has {len(shares)} numbers, but --draft is {drafts}",
            "give one number for each draft, such as .7,.45, or one for all",
        )
    if list(shares) != sorted(shares, reverse=True):
        raise BadArgument("--accept rises from one draft to the next", _FALLS)
    return Draft(drafts, shares, powers, None if cost is None else _cost(cost))


def _share(text: str) -> float:
    if not re.fullmatch(_NUMBER, text.strip()) or float(text) > 1:
        raise BadArgument(f"--accept: {text[:60]!r} is not a number from 0 to 1", _FALLS)
    return float(text)


def _cost(text: str) -> Cost:
    found = re.fullmatch(rf"{_NUMBER}\s*([A-Za-z%]*)", text.strip())
    if not found or found[2] not in _UNITS:
        raise BadArgument(
            f"--draft-cost: {text[:60]!r} is not understood",
            "a share of a step such as 0.1, a time such as 5ms, or bytes of weights such as 400M",
        )
    unit, each = _UNITS[found[2]]
    return Cost(unit, float(found[1]) * each)

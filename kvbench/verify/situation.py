"""Situations: small caches, and the questions to each."""

from dataclasses import dataclass
from typing import Any

from kvbench.model.masks import BLOCK, CHAIN, TREE

SINKS, SOFTCAP, SLOPES = "sinks", "softcap", "slopes"  # arguments of decode_task


@dataclass(frozen=True, slots=True)
class Several:
    """A question with `queries` for the newest tokens of each sequence, or counts[b] of them.
    scores: arguments that change scores.
    """

    queries: int
    mask: str = CHAIN
    counts: tuple[int, ...] | None = None
    scores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """A cache with lengths[b] tokens in sequence b, and questions besides one query of each.
    `facts`: arguments of Cache. apart: K and V have different dtypes, and K's scales, if any, are
    by channel.
    """

    name: str
    kv_heads: int
    group: int
    head_dim: int
    capacity: int
    lengths: tuple[int, ...]
    facts: tuple[tuple[str, Any], ...] = ()
    several: tuple[Several, ...] = ()
    apart: bool = False

    @property
    def v_dim(self) -> int:
        return dict(self.facts).get("v_dim", self.head_dim)

    @property
    def alike(self) -> bool:
        """Whether K and V have the same dtype and width."""
        return not self.apart and self.v_dim == self.head_dim


QUICK = (
    Situation(
        "ragged batch",
        2,
        3,
        80,
        340,
        (333, 70),
        (),
        (
            # As far as possible, each asks for one thing that a plug-in need not take.
            Several(2),
            Several(1, scores=(SINKS,)),
            Several(1, scores=(SOFTCAP,)),
            Several(1, scores=(SLOPES, SINKS)),
            Several(4, TREE, (4, 3), (SOFTCAP, SLOPES, SINKS)),
        ),
    ),
    Situation(
        "ring and window",
        2,
        4,
        64,
        100,
        (257, 99),
        (("window", 90),),
        (Several(3), Several(2, BLOCK)),
    ),
    Situation(
        "first tokens kept",
        2,
        2,
        72,
        150,
        (140, 20),
        (("window", 50), ("kept", 5)),
        (Several(3, scores=(SLOPES, SINKS)), Several(4, TREE)),
    ),
    Situation("two kinds", 1, 4, 96, 70, (67,), (("v_dim", 40),), (Several(2),), True),
)
FULL = (
    *QUICK,
    Situation("one token", 1, 1, 1, 1, (1,), several=(Several(3), Several(3, TREE))),
    Situation("many queries", 1, 2, 32, 70, (65,), several=(Several(32), Several(32, TREE))),
    Situation(
        "odd sizes",
        3,
        7,
        37,
        700,
        (129, 1, 641),
        (("block_tokens", 5), ("pad", 0)),
        (Several(5, CHAIN, (0, 4, 5), (SLOPES, SINKS)),),
    ),
    Situation(
        "window",
        1,
        2,
        128,
        1200,
        (1111,),
        (("window", 1000), ("ring", False)),
        (Several(5, TREE),),
    ),
    Situation(
        "large group",
        1,
        33,
        64,
        300,
        (300,),
        (("block_tokens", 256),),
        (Several(2, scores=(SOFTCAP, SINKS)),),
    ),
    Situation(
        "narrow values",
        1,
        4,
        192,
        330,
        (320,),
        (("v_dim", 128), ("window", 100), ("kept", 20)),
        (Several(4, TREE, scores=(SINKS,)),),
        True,
    ),
    Situation("wide head", 2, 8, 256, 520, (513,), (("block_tokens", 1),), (Several(3, BLOCK),)),
    Situation(
        "long", 2, 2, 64, 4500, (4460,), several=(Several(2, BLOCK, scores=(SLOPES, SINKS)),)
    ),
)

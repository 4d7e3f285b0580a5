"""The calls of an engine that tell where its time goes: those of a point, and smaller ones beside
it. Each is a program of a visit.
"""

from dataclasses import dataclass
from enum import StrEnum

from kvbench.model.point import Point

ALL, ONE = "point", "one"  # by all threads; by one
# of few tokens, and of twice as many, by all threads and by one
START, START_TWICE = "start", "start_twice"
START_ONE, START_ONE_TWICE = "start_one", "start_one_twice"
# of one KV head in a private cache, and of half its tokens
CORE, CORE_HALF = "core", "core_half"
READ, READ_ONE = "read", "read_one"  # plain reads of memory, by all threads and by one


class Part(StrEnum):
    """Of a pass, in the order in which they are shown."""

    READ = "read"
    START = "start"
    CORE = "core"
    THREADS = "threads"
    REST = "rest"


class Lacks(StrEnum):
    """Why a part is not measured; or an engine says why, in its own words."""

    ONE_THREAD = "one thread"
    FEW_TOKENS = "the context is too short"
    NO_CACHE = "no private cache is known"
    SMALL_CACHE = "no private cache holds enough tokens"


@dataclass(frozen=True, slots=True)
class Calls:
    """`points`: by program. `level`: the private cache that data of the core's calls stay in.
    `missing`: parts that are not measured, and why.
    """

    points: dict[str, Point]
    level: str
    missing: dict[Part, str]

"""The calls of an engine that show where its time goes: the point's own call, and smaller calls
beside it. Each call is a program of a visit.
"""

from dataclasses import dataclass
from enum import StrEnum

from kvbench.model.point import Point

ALL, ONE = "point", "one"  # the point's call by all threads; by one thread
# calls with few tokens and with twice as many: by all threads, and by one thread
START, START_TWICE = "start", "start_twice"
START_ONE, START_ONE_TWICE = "start_one", "start_one_twice"
# calls with one KV head, whose data stay in a private cache; and with half its tokens
CORE, CORE_HALF = "core", "core_half"
READ, READ_ONE = "read", "read_one"  # plain reads of memory, by all threads and by one


class Part(StrEnum):
    """The parts of a pass, in the order in which they are shown."""

    READ = "read"
    START = "start"
    CORE = "core"
    THREADS = "threads"
    REST = "rest"


class Lacks(StrEnum):
    """Why a part is not measured. An engine may give a reason of its own instead."""

    ONE_THREAD = "one thread"
    FEW_TOKENS = "the context is too short"
    NO_CACHE = "no private cache is known"
    SMALL_CACHE = "no private cache holds enough tokens"


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that are timed for one point.

    points: by program. level: the private cache that holds the data of the core's calls. missing:
    the parts that are not measured, with the reasons.
    """

    points: dict[str, Point]
    level: str
    missing: dict[Part, str]

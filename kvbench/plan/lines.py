"""Lines of peers: what is timed in the same rounds."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kvbench.model import AUTO, OURS, Point
from kvbench.model.point import Visited
from kvbench.native import default_library
from kvbench.plan.needs import PROCESS, Needs


def line_of(point: Point) -> Point:
    """Ours whose memory, values and witnesses all of its line have: the first variant and layout."""
    words = default_library().words
    facts = {name: words(name)[0] for name in ("variant", "layout")}
    return replace(point, **facts, engine=OURS, schedule=AUTO)


def is_peer(point: Visited) -> bool:
    return isinstance(point, Point) and point.engine != OURS


def lines(points: Iterable[Visited]) -> dict[Point, list[Point]]:
    """Those that have peers, each with ours that are of it."""
    own = [point for point in points if isinstance(point, Point)]
    found: dict[Point, list[Point]] = {line_of(point): [] for point in own if is_peer(point)}
    for point in own:
        if (line := line_of(point)) in found:
            found[line].append(point)
    return found


def crowded(needed: Mapping[Point, Needs], memory: int) -> list[Point]:
    """Peers whose line does not fit memory: there each has a store of its own, beside the values that all of them get."""
    found = []
    for line, points in lines(needed).items():
        peers = [point for point in points if is_peer(point)]
        shape = line.shape
        values = 8 * shape.kv_heads * shape.context * shape.head_dim
        each = max(needed[point].memory for point in points) + len(peers) * (2 * values + PROCESS)
        found += peers if each + sum(needed[point].arena for point in peers) > memory else []
    return found

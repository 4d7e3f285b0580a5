"""Memory so large that no cache of a point's CPUs helps: to be read, to evict caches, or to hold
more slices.
"""

from contextlib import ExitStack
from functools import cached_property

from kvbench.model import Point
from kvbench.native import Arena, Cache, Part
from kvbench.worker.room import Room


class Far:
    """Memory beyond the caches, taken from the room's ground when first asked for."""

    def __init__(self, point: Point, count: int, room: Room) -> None:
        """`count`: bytes."""
        self._point, self.bytes, self._room = point, count, room

    @property
    def arena(self) -> Arena:
        cpus, team = self._point.cpus, self._room.team(self._point.cpus)
        return self._room.ground.far(team, cpus, self._point.pages, self.bytes)

    @cached_property
    def whole(self) -> Part:
        return self.arena.part(0, self.bytes // 64 * 64)

    @property
    def layers(self) -> range:
        """The layers whose slices fit there; they follow the room's own."""
        count = self.whole.size // self._room.slice_bytes
        return range(self._room.slices, self._room.slices + count)

    def slices(self, owned: ExitStack) -> list[Cache]:
        """Caches like the room's first, together larger than all caches, with their own content."""
        room, arena, count = self._room, self.arena, len(self.layers)
        caches = [owned.enter_context(room.cache(copy, arena)) for copy in range(count)]
        for cache in caches:
            cache.lengths[:] = room.caches[0].lengths
        rows = arena.view()[: count * room.slice_bytes].reshape(count, room.slice_bytes)
        room.make(self.layers, rows)
        return caches

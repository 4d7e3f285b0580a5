"""The memory of a whole step: a room for each kind of its layers."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from kvbench.model import Needs, Point, Traffic
from kvbench.model.point import STEP
from kvbench.native import Part, Team
from kvbench.plan.needs import needs
from kvbench.plan.steps import parts
from kvbench.regime import classify
from kvbench.worker.ground import Ground
from kvbench.worker.room import Room

_BESIDE = 64  # places of the ground between those of a step's rooms; a contrast has fewer points


class StepRoom(Room):
    """The rooms of a step. `rooms`: one for the layers of each part, in the order of
    plan.steps.parts().
    """

    def _prepare(self) -> None:
        self.slices, self.slice_bytes = self.needs.slices, self.needs.slice_bytes
        self.rooms = list[Room]()
        for own in self._made():
            self.rooms.append(self._owned.enter_context(own))

    def _made(self) -> Iterator[Room]:
        self.refuse_too_large()
        for number, part in enumerate(parts(self.point)):
            place = self.place + number * _BESIDE
            if number:
                self._owned.callback(self.ground.leave, [place])
            own = needs(part.point, self.needs.far)
            yield Room(part.point, own, self.ground, self.library, place)

    def team(self, cpus: tuple[int, ...]) -> Team:
        return self.rooms[0].team(cpus)

    @cached_property
    def memory(self) -> dict[str, int]:
        """Bytes of all rooms together, on pages of one size."""
        each = [room.memory for room in self.rooms]
        sums = {name: sum(own[name] for own in each) for name in each[0]}
        return sums | {"page_bytes": max(own["page_bytes"] for own in each)}

    def facts(self, point: Point, traffic: Traffic) -> dict[str, Any]:
        """Facts for a record. Streamed weights are not part of the caches' footprint, but also
        decide which level of the machine feeds a step.
        """
        streamed = point.shape.layers * point.between
        regime = classify(self.ground.machine, point.cpus, traffic.bytes_line)
        sizes = {"slices": self.slices, "slice_bytes": self.slice_bytes}
        footprint = traffic.bytes_line - streamed
        return sizes | {"footprint": footprint, "level": regime.word, "memory": self.memory}

    @property
    def whole(self) -> Part:
        """All layers of the first part."""
        return self.rooms[0].whole

    def fill(self) -> None:
        for room in self.rooms:
            room.fill()


def room_of(point: Point, needed: Needs, ground: Ground, place: int = 0) -> Room:
    """Make a room. place: as in Room."""
    make = StepRoom if point.op == STEP else Room
    return make(point, needed, ground, place=place)

"""The two sides of a comparison, and which of their points can be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvbench.analysis.measured.columns import machine_name, names
from kvbench.errors import NotComparable
from kvbench.grouping import grouped
from kvbench.model import Engine, Machine, Point, Record


@dataclass(frozen=True, slots=True)
class Side:
    """A run. `identity`: digests of its machine, environment, build and suite. `planned`: its
    points. `engines`: the peers and plug-ins beside ours.
    """

    run: str
    identity: Mapping[str, str]
    machine: Machine
    planned: tuple[Point, ...]
    records: Sequence[Record]
    engines: tuple[Engine, ...] = ()

    def same(self, other: "Side", what: str) -> bool:
        return self.identity.get(what) == other.identity.get(what)

    @property
    def names(self) -> set[str]:
        """The names of the points that it was to measure."""
        return {point.name for point in self.planned}

    @property
    def named(self) -> str:
        return machine_name(self.machine, self.identity.get("machine") or "unknown")

    def visits(self) -> dict[str, list[Record]]:
        """Its visits, by the point's name."""
        return grouped((r.point.name, r) for r in self.records if isinstance(r.point, Point))


def refuse(base: Side, head: Side) -> None:
    """Refuse two runs that cannot be compared at all."""
    if base.run == head.run:
        raise NotComparable(
            f"base and head are the same run, {base.run}", "name another run on one side"
        )
    if not base.same(head, "machine"):
        what = f"base is from {base.named}, head from {head.named}"
        raise NotComparable(
            f"two machines: {what}",
            "compare runs of one machine; kvbench report BASE HEAD shows both",
        )
    if not base.names & head.names:
        raise NotComparable(
            f"runs {base.run} and {head.run} have no point in common",
            "run the same suite, with the same version of kvbench, on both",
        )


def unusable(base: Sequence[Record], head: Sequence[Record]) -> str:
    """Why the visits of a point cannot show a change; "" if they can. A wrong answer or a crash in
    any launch must be fixed, not compared.
    """
    faults = []
    for word, own in (("base", base), ("head", head)):
        if bad := [record for record in own if not record.complete]:
            lost, launches = (len({record.launch for record in each}) for each in (bad, own))
            why = bad[0].error or "no sample was taken"
            faults.append(f"failed in {lost} of {launches} launches of {word}: {why}")
        elif not own:
            faults.append(f"never visited in {word}")
    if faults:
        return "; ".join(faults)
    one, other = base[0], head[0]  # a name must mean one amount of work
    moved = [record.traffic["point"].bytes_compulsory for record in (one, other)]
    if moved[0] != moved[1]:
        return f"a pass moves {moved[0]:.0f} compulsory bytes in base, but {moved[1]:.0f} in head"
    if one.slices != other.slices:
        return f"base walks {one.slices} slices in turn, but head {other.slices}"
    return ""


def short(base: Side, head: Side) -> dict[str, str]:
    """Short names of all points of both sides, by their full names."""
    return names({point.name: point for side in (base, head) for point in side.planned}.values())

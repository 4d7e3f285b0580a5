"""The two sides of a comparison: what each is, and which of their points can be held against each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kvbench.analysis.measured.columns import machine_name, names
from kvbench.analysis.measured.launches import complete
from kvbench.errors import NotComparable
from kvbench.model import Machine, Point, Record


@dataclass(frozen=True, slots=True)
class Side:
    """A run. `identity`: digests of its machine, environment, build and suite. `planned`: its points."""

    run: str
    identity: Mapping[str, str]
    machine: Machine
    planned: tuple[Point, ...]
    records: Sequence[Record]

    def same(self, other: "Side", what: str) -> bool:
        return self.identity.get(what) == other.identity.get(what)

    @property
    def named(self) -> str:
        """The machine, as a line says it."""
        return f"{machine_name(self.machine)} (fingerprint {self.identity.get('machine') or 'unknown'})"

    def visits(self) -> dict[str, list[Record]]:
        """By the point's name."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            if isinstance(record.point, Point):
                found.setdefault(record.point.name, []).append(record)
        return found


def refuse(base: Side, head: Side) -> None:
    """What no number can be taken from."""
    if base.run == head.run:
        raise NotComparable(f"base and head are the same run, {base.run}", "name another run on one side")
    if not base.same(head, "machine"):
        what = f"base is of {base.named}, head of {head.named}"
        raise NotComparable(f"two machines: {what}", "compare runs of one machine; kvbench report BASE HEAD shows both")
    if not {point.name for point in base.planned} & {point.name for point in head.planned}:
        hint = "run the same suite, with the same version of kvbench, on both"
        raise NotComparable(f"runs {base.run} and {head.run} have no point in common", hint)


def common(base: Side, head: Side) -> list[Point]:
    """Points that both runs were to measure."""
    there = {point.name for point in head.planned}
    return [point for point in base.planned if point.name in there]


def missing(base: Side, head: Side) -> Iterator[str]:
    """Points that only one of the runs was to measure."""
    for side, other, word in ((base, head, "base"), (head, base, "head")):
        there = {point.name for point in other.planned}
        yield from (f"{point.name}: only {word} has it" for point in side.planned if point.name not in there)


def unusable(base: Sequence[Record], head: Sequence[Record]) -> str:
    """Why what was measured of a point says nothing of a change; "" where it does. A wrong answer in one launch, or a
    crash, is no matter of time: such a point is mended, not compared."""
    faults = [fault for word, own in (("base", base), ("head", head)) if (fault := _fault(own, word))]
    return "; ".join(faults) or _other_work(base[0], head[0])


def _fault(records: Sequence[Record], word: str) -> str:
    if not records:
        return f"never visited in {word}"
    bad = [record for record in records if not complete(record)]
    if not bad:
        return ""
    launches = {record.launch for record in records}
    lost = {record.launch for record in bad}
    return f"failed in {len(lost)} of {len(launches)} launches of {word}: {bad[0].error or 'no sample was taken'}"


def _other_work(base: Record, head: Record) -> str:
    """One name must mean one amount of work."""
    bytes_of = [record.traffic["point"].compulsory for record in (base, head)]
    if bytes_of[0] != bytes_of[1]:
        return f"a pass moves {bytes_of[0]:.0f} compulsory bytes in base and {bytes_of[1]:.0f} in head"
    if base.layers != head.layers:
        return f"base walks {base.layers} slices in turn and head {head.layers}"
    if bool(base.along) != bool(head.along):
        older, newer = ("head", "base") if base.along else ("base", "head")
        return f"{older} stores in one place again and again, {newer} along the slices"
    return ""


def short(base: Side, head: Side) -> dict[str, str]:
    """Names for people, by the names of all points of both."""
    return names({point.name: point for side in (base, head) for point in side.planned}.values())

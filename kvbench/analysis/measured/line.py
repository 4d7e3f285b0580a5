"""The fastest kernels of all dtypes, timed in the same rounds: split into one record for each
kernel.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from kvbench.model import Contrast, Point, Record
from kvbench.model.contrast import KERNEL, value
from kvbench.model.program import parted
from kvbench.model.record import Member

_FACTS = tuple(field.name for field in fields(Member))


def members(records: Iterable[Record]) -> list[Record]:
    """A record for each visit of the line and each of its points, as if that point had been visited
    alone, with the usual names of programs.
    """
    lines = (record for record in records if is_line(record))
    return [_member(record, point) for record in lines for point in _points(record)]


def is_line(record: Record) -> bool:
    return isinstance(record.point, Contrast) and record.point.factor == KERNEL


def _points(record: Record) -> Iterator[Point]:
    assert isinstance(record.point, Contrast)  # as is_line() has it
    return iter(record.point.points)


def _member(record: Record, point: Point) -> Record:
    """The record of one point. Programs that all share, such as reads of memory, belong to each."""
    own = value(point, KERNEL)
    programs = {name: parted(name) for name in record.traffic}
    names = {name: kind for name, (kind, of) in programs.items() if of in ("", own)}
    taken = (sample for sample in record.samples if sample.program in names)
    said = record.members.get(own)
    return replace(
        record,
        point=point,
        samples=tuple(replace(sample, program=names[sample.program]) for sample in taken),
        traffic={kind: record.traffic[name] for name, kind in names.items()},
        members={},
        tuned=(),
        **({name: getattr(said, name) for name in _FACTS} if said else {}),
    )

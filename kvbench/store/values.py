"""Values as JSON objects and back. A point says by its own fields whether it is a Point or a Probe."""

from dataclasses import asdict
from typing import Any

from kvbench.model import Point, Probe, Record, Sample, Shape, Traffic


def plain(value: Any) -> Any:
    """A value of the model as what json.dumps takes."""
    return asdict(value)


def point(facts: dict[str, Any]) -> Point | Probe:
    facts = facts | {"cpus": tuple(facts["cpus"])}
    if "shape" in facts:
        return Point(**facts | {"shape": Shape(**facts["shape"])})
    return Probe(**facts)


def record(facts: dict[str, Any]) -> Record:
    return Record(
        **facts
        | {
            "point": point(facts["point"]),
            "samples": tuple(_sample(sample) for sample in facts["samples"]),
            "traffic": {name: Traffic(**traffic) for name, traffic in facts["traffic"].items()},
        }
    )


def _sample(facts: dict[str, Any]) -> Sample:
    return Sample(**facts | {name: tuple(facts[name]) for name in ("pass_seconds", "thread_seconds")})

"""What a bench takes for a right answer: kernels that go wrong where and when they like are played on a real one."""

import os
from contextlib import contextmanager
from dataclasses import replace

import pytest

from kvbench.errors import WrongAnswer
from kvbench.model import Shape
from kvbench.native import default_library
from kvbench.worker.answers import Answers
from kvbench.worker.bench import Bench
from kvbench.worker.ground import Ground
from kvbench.worker.room import Room
from tests import made_run

SHAPE = Shape(layers=5, batch=2, q_heads=4, kv_heads=2, head_dim=32, context=40, capacity=48)
FACTS = {"shape": SHAPE, "pages": "base", "cpus": (min(os.sched_getaffinity(0)),), "isa": default_library().isa()}
DECODE = replace(made_run.DECODE, **FACTS)
STORES = [replace(DECODE, op=op, variant=variant) for op, variant in (("append", "-"), ("bulk", "nt"))]


@contextmanager
def bench(point):
    with (
        Ground(default_library()) as ground,
        Room(point, ground) as room,
        Bench(point, room, Answers()) as found,
    ):
        yield found


@pytest.mark.parametrize("dtype", default_library().words("dtype"))
@pytest.mark.parametrize("point", STORES, ids=lambda point: point.op)
def test_a_store_that_stores_nothing_is_wrong(point, dtype, monkeypatch):
    """Even where a right one has stored all of it before."""
    with bench(replace(point, dtype=dtype)) as found:
        found.verify()
        monkeypatch.setattr(found.team, "run", lambda *tasks, **how: None)
        with pytest.raises(WrongAnswer, match="off by nan"):
            found.verify()

"""Jobs and the memory of points, made as a session makes them."""

import os
from contextlib import ExitStack, contextmanager

from kvbench.machine import describe
from kvbench.model import Job
from kvbench.native import default_library
from kvbench.plan.needs import members, needs_here
from kvbench.worker.answers import Answers
from kvbench.worker.foreign import bench_of
from kvbench.worker.ground import Ground
from kvbench.worker.room import Room

CPU = min(os.sched_getaffinity(0))  # where a test of one thread runs


def job(plan, points=None, number=0, folder=""):
    points, machine = plan.points if points is None else tuple(points), describe()
    needs = needs_here(points, machine)
    own = {each.name: needs[each] for point in points for each in members(point)}
    return Job(plan, number, 0, points, machine, own, str(folder))


def room(point, ground, **how):
    return Room(point, needs_here([point], ground.machine)[point], ground, **how)


@contextmanager
def bench(point, ground=None, make=bench_of):
    """A bench in a room of its own, on the given ground or on a new one."""
    with ExitStack() as owned:
        ground = ground or owned.enter_context(Ground(default_library()))
        own = owned.enter_context(room(point, ground))
        yield owned.enter_context(make(point, own.needs, own, Answers()))

"""A run of the suite serve that was never measured: times of its steps are computed."""

from kvbench.model import Contrast, Point
from kvbench.model.contrast import LENGTHS
from kvbench.plan import Site, expand
from kvbench.suite import find
from tests.made_run import beside, visit
from tests.plan.test_plan import TWO

SECOND = 25e9  # bytes that are read
LAUNCHES = 7


def plan():
    return expand(find("serve"), Site(TWO, 16 << 30, "scalar", pages=("thp",))).plan


def seconds(point, launch=0):
    """Of a step of four layers: the weights of each, and what its requests hold."""
    shape = point.shape
    token = (
        2 * shape.kv_heads * (2 * shape.head_dim if point.dtype == "f16" else shape.head_dim + 4)
    )
    read = shape.layers * (point.between + token * sum(shape.held))
    return read / SECOND * (1 + 0.01 * ((launch * 7 + shape.context) % 5 - 2))


def records():
    found = []
    for each in plan().points:
        for launch in range(LAUNCHES):
            if isinstance(each, Contrast) and each.factor == LENGTHS:
                times = [[seconds(point, launch)] * 4 for point in each.points]
                found.append(beside(launch, each.points, times, LENGTHS))
            elif isinstance(each, Point):
                rate = 256 * 2**20 / 16 / seconds(each, launch) / 1e9
                found.append(visit(launch, {"point": [rate] * 4}, each))
    return found

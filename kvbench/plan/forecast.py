"""How long a sweep takes and how much memory, before anything is measured. Its rates are assumed,
and said to be.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kvbench.errors import Refused
from kvbench.model import Contrast, Needs, Plan, Point, Probe
from kvbench.model.chases import LOADS, SECONDS, SHARES
from kvbench.model.contrast import KERNEL, alone_of
from kvbench.model.point import ONE_TOKEN, STEP, Visited
from kvbench.plan.expansion import MEMORY, Sweep
from kvbench.plan.needs import PROCESS, members, room, stores
from kvbench.plan.steps import parts
from kvbench.plan.witnesses import is_peer
from kvbench.units import GB, span

FILL = 0.5 * GB  # bytes/s that a thread fills: random rows, on pages touched for the first time
REPEAT = 2.0 * GB  # bytes/s of the other slices, that a thread copies
FILLERS = 8  # threads that fill faster than fewer do
# bytes/s of a walk at least, and of each thread where they are many
READ, READ_EACH = 10.0 * GB, 2.0 * GB
COMPUTE_EACH = 50e9  # FLOP/s of each thread, where several queries bring many
START = 0.6  # seconds until a fresh process measures
TUNE = 0.6  # seconds to time all schedules for a class of points
# elements of K and V per second that the reference is computed with, once for all launches
ANSWER = 30e6
VISIT = 0.03  # seconds of a visit beside its samples and its memory
SLICE = 1e-4  # seconds to prepare each slice
# of a probe, of which each has a third of the samples
_FORMS = {"read": 7 / 3, "copy": 4 / 3, "copy_nt": 4 / 3}
_PACE = 0.001  # seconds of a sample of it
_LOOKS = 1.5  # walks of all slices, whose answers are checked
_CORES = 4  # points of a family, at least, whose core roofs share the time of a sample
PEER = 1.5  # seconds to begin a peer's process, to fill its store and to verify it
# samples of a chase in a round: idle and spinning, before and after, and beside each load
_CHASES = 4 + len(LOADS) * len(SHARES)
LINK = 0.45 * GB  # bytes of a cycle that are linked in a second
EVICTED = 2.0  # by the wall: the untimed sweeps take as long as what lies between them
# seconds that any visit is given, and bytes/s at which one may still prepare
_PATIENCE, _FILLED = 60.0, 0.02 * GB
_SLOWER = 20  # times its forecast, and a visit still has not hung


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds of the whole run, from its start to its end: processes, memory, tuning, all launches
    that are planned, and as many of its line. `line`: of a visit of that; 0 where there is none.
    `timed`: of them inside timed samples. `until`: seconds within which launches are added while
        questions are open; 0 where none are.

    `memory`: bytes at the most; `largest`: the point that needs most, where any is. `patience`:
    seconds after which a visit has hung.
    """

    seconds: float
    timed: float
    largest: Point | None
    memory: int
    patience: float
    tuned: int = 0  # classes of points that a schedule is chosen for
    until: float = 0.0
    line: float = 0.0

    @property
    def whole(self) -> float:
        """Seconds from start to end, with launches that are added."""
        return max(self.seconds, self.until)

    @property
    def text(self) -> str:
        return told(self.seconds, self.until)


def told(seconds: float, until: float = 0.0) -> str:
    """A forecast as listings, plans and sweeps say it."""
    return f"up to {span(until)}" if until > seconds else f"about {span(seconds)}"


def forecast(sweep: Sweep, tuned: int = 0) -> Forecast:
    """tuned: classes of points that a schedule is chosen for."""
    plan, needs = sweep.plan, sweep.needs
    each = visits(plan, needs)
    line = [Contrast(KERNEL, sweep.line)] if sweep.line else []
    of_line = sum(START + _visit(visited, plan, needs) for visited in line)
    filling = sum(_filling(needs).values()) + _linking(needs)
    largest = max(needs, key=lambda point: needs[point].memory, default=None)
    every = (*plan.points, *line)
    arenas = [sum(needs[point].arena for point in members(visited)) for visited in every]
    arena = max(arenas, default=0)
    beside = max((needed.beside for needed in needs.values()), default=0)
    longest = max((*each.values(), of_line), default=0.0)
    launches = plan.launches if plan.points else 0
    return Forecast(
        seconds=launches * (START + sum(each.values()) + filling + of_line)
        + tuned * TUNE
        + _answers(needs),
        timed=launches * sum(plan.samples * _samples(visited, plan, needs) for visited in every),
        largest=largest,
        memory=arena + beside + PROCESS if needs else 0,
        tuned=tuned,
        line=of_line,
        patience=_PATIENCE + _SLOWER * longest + (arena + beside) / _FILLED,
    )


def _answers(points: Collection[Point]) -> float:
    """Seconds; points with the same data share an answer."""
    made = (parts(point) if point.op == STEP else () for point in points)
    decodes = [*points, *(part.point for each in made for part in each)]
    data = {(point.kv_dtype, point.scale, point.shape) for point in decodes if point.op == "decode"}
    elements = (
        s.batch * s.kv_heads * (s.head_dim + s.width_of_v) * min(s.context, s.capacity)
        for _, _, s in data
    )
    return sum(elements) / ANSWER


def visits(plan: Plan, needs: Mapping[Point, Needs]) -> dict[Visited, float]:
    """Seconds of each, once its memory stands; a contrast's is made for it."""
    return {visited: _visit(visited, plan, needs) for visited in plan.points}


def refuse_too_large(sweep: Sweep) -> None:
    """Before anything is allocated: a sweep of which nothing fits memory."""
    large = [skip.detail for skip in sweep.skips if skip.reason == MEMORY]
    if large and not sweep.needs:
        raise Refused(
            f"{sweep.suite.source}: none of {len(large)} points fits memory, the first: {large[0]}",
            "less context, layers or batch, or free some memory",
        )


def _visit(visited: Visited, plan: Plan, needs: Mapping[Point, Needs]) -> float:
    timed, points = plan.samples * _samples(visited, plan, needs), members(visited)
    if is_peer(visited):
        return PEER + timed / 2
    if isinstance(visited, Probe) and visited.op == "latency":
        return timed + VISIT + visited.bytes / LINK
    evicted = (
        (EVICTED - 1) * timed if any(point.residency == "evicted" for point in points) else 0.0
    )
    untimed = plan.samples * sum(
        _between(point, plan) + _chased(needs[point], plan) for point in points
    )
    made = (
        sum(_filling({point: needs[point] for point in points}).values())
        if isinstance(visited, Contrast)
        else 0.0
    )
    return (
        timed
        + evicted
        + untimed
        + made
        + VISIT * max(1, len(points))
        + sum((SLICE + _LOOKS * _computed(point)) * needs[point].slices for point in points)
    )


def _samples(visited: Visited, plan: Plan, needs: Mapping[Point, Needs]) -> float:
    """One of each program: the point, its twin in two forms, its core roof, and reads of memory
    where that feeds it; or a store and two copies; and how fast the cores are; and a chase beside
    each load. Or all points of a
    contrast, those of a line with their limits. Or a probe, each form but the plain one now and
    then. Or a step, its parts and a read of as much. A sample is one pass at least.
    """
    seconds = plan.sample_time
    if isinstance(visited, Probe):
        return seconds * _FORMS.get(visited.op, 1)
    # a token is no walk, and a step walks all layers
    own = members(visited)
    walked = {
        point: needs[point].walked if point.op == STEP else needs[point].slice_walked
        for point in own
        if point.op not in ONE_TOKEN
    }
    walks = [max(seconds, walked.get(point, 0) / _rate(point), _computed(point)) for point in own]
    if not isinstance(visited, Point):
        line = isinstance(visited, Contrast) and visited.factor == KERNEL
        return sum(3 * walk + seconds for walk in walks) + walks[0] + _PACE if line else sum(walks)
    if visited.op == STEP:  # its parts together take as long as the step, and so does a read
        return (3 + plan.neighbour) * walks[0] + 2 * seconds + _PACE
    if (alone := alone_of(visited)) != visited and alone in needs:  # whose witnesses it has
        return (1 + plan.neighbour) * walks[0] + (not visited.streamed) * seconds / _CORES
    far = needs[visited].walked >= needs[visited].far or visited.residency == "evicted"
    more = 0.0 if stores(visited) else seconds + far * walks[0]
    more += (alone != visited) * walks[0] + _chased(needs[visited], plan)
    return (3 + plan.neighbour) * walks[0] + _PACE + more


def _chased(needed: Needs, plan: Plan) -> float:
    """Seconds of the chase's samples in a round. Loads take as long again to begin, untimed."""
    return _CHASES * max(SECONDS, plan.sample_time) if needed.chain else 0.0


def _between(point: Point, plan: Plan) -> float:
    """Untimed seconds of a sample: as many as it is timed, or one read of what is between."""
    return max(plan.sample_time, point.streamed / _rate(point)) if point.streamed else 0.0


def _computed(point: Point) -> float:
    """Seconds of a pass of several queries, by its arithmetic; of one, that is less than its reads
    take.
    """
    shape = point.shape
    if shape.q_len == 1:
        return 0.0
    rows = shape.q_len * shape.q_heads * sum(min(shape.window or n, n) for n in shape.held)
    return 2 * rows * (shape.head_dim + shape.width_of_v) / (COMPUTE_EACH * point.threads)


def _rate(point: Point) -> float:
    return max(READ, READ_EACH * point.threads)


def _filling(needs: Mapping[Point, Needs]) -> dict[tuple[object, ...], float]:
    """By what points share their memory."""
    return {
        room(point, needed.slices): (
            (needed.slice_bytes / FILL + needed.arena / REPEAT) / min(point.threads, FILLERS)
        )
        for point, needed in needs.items()
    }


def _linking(needs: Mapping[Point, Needs]) -> float:
    """Seconds in which cycles are linked: once for each thread that chases."""
    found = {(p.chase, p.cpus, p.pages): needed.chain for p, needed in needs.items()}
    return sum(found.values()) / LINK

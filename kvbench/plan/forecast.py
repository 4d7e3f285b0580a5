"""Forecast the time and memory of a sweep before anything is measured. Its rates are
assumptions.
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

FILL = 0.5 * GB  # bytes/s of a thread that writes random rows to pages for the first time
REPEAT = 2.0 * GB  # bytes/s of a thread that copies the rows to other slices
FILLERS = 8  # threads; more do not fill faster
# bytes/s of a walk at least; and of each thread, if there are many
READ, READ_EACH = 10.0 * GB, 2.0 * GB
COMPUTE_EACH = 50e9  # FLOP/s of each thread; matters with several queries
START = 0.6  # seconds until a fresh process measures
TUNE = 0.6  # seconds to time all schedules for a class of points
# elements of K and V per second in the reference, which is computed once for all launches
ANSWER = 30e6
VISIT = 0.03  # seconds of a visit without its samples and its memory
SLICE = 1e-4  # seconds to prepare each slice
# samples of a probe in all its forms: each further form has a third of the samples
_FORMS = {"read": 7 / 3, "copy": 4 / 3, "copy_nt": 4 / 3}
_PACE = 0.001  # seconds of a sample of PACE
_LOOKS = 1.5  # walks over all slices in which answers are checked
_CORES = 4  # points of a family, at least: their core roofs share the time of one sample
PEER = 1.5  # seconds to start a peer's process, to fill its store and to verify it
# samples of a chase in a round: idle and spin, both before and after, and one for each load
_CHASES = 4 + len(LOADS) * len(SHARES)
_PAUSES = 4  # measuring the pauses of a chase's loads takes as long as so many rounds
LINK = 0.45 * GB  # bytes/s at which the cycle of a chase is linked
EVICTED = 2.0  # wall time over timed time: untimed sweeps of caches take as long as the passes
# seconds that each visit may take, and the lowest accepted rate of preparing memory, in bytes/s
_PATIENCE, _FILLED = 60.0, 0.02 * GB
_SLOWER = 20  # a visit may take this many times its forecast before it counts as hung


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected time and memory of a run.

    seconds: of the run from start to end: processes, memory, tuning, all planned launches, and as
    many visits of the line. line: of one such visit; 0 without a line. timed: the part inside timed
    samples. until: seconds within which launches are added while questions are open; 0 if none are
    added.

    memory: the most bytes at a time. largest: the point that needs most, if any. patience: seconds
    after which a visit counts as hung.
    """

    seconds: float
    timed: float
    largest: Point | None
    memory: int
    patience: float
    tuned: int = 0  # classes of points whose schedule is to be chosen
    until: float = 0.0
    line: float = 0.0

    @property
    def whole(self) -> float:
        """Seconds from start to end, added launches included."""
        return max(self.seconds, self.until)

    @property
    def text(self) -> str:
        return told(self.seconds, self.until)


def told(seconds: float, until: float = 0.0) -> str:
    """A forecast as listings, plans and sweeps word it."""
    return f"up to {span(until)}" if until > seconds else f"about {span(seconds)}"


def forecast(sweep: Sweep, tuned: int = 0) -> Forecast:
    """Forecast a sweep. tuned: classes of points whose schedule is to be chosen."""
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
    """Seconds to compute the reference answers. Points with the same data share an answer."""
    made = (parts(point) if point.op == STEP else () for point in points)
    decodes = [*points, *(part.point for each in made for part in each)]
    data = {(point.kv_dtype, point.scale, point.shape) for point in decodes if point.op == "decode"}
    elements = (
        s.batch * s.kv_heads * (s.head_dim + s.width_of_v) * min(s.context, s.capacity)
        for _, _, s in data
    )
    return sum(elements) / ANSWER


def visits(plan: Plan, needs: Mapping[Point, Needs]) -> dict[Visited, float]:
    """Seconds of each visit after its memory is ready. A contrast's own memory is included."""
    return {visited: _visit(visited, plan, needs) for visited in plan.points}


def refuse_too_large(sweep: Sweep) -> None:
    """Refuse a sweep whose points all exceed memory, before anything is allocated."""
    large = [skip.detail for skip in sweep.skips if skip.reason == MEMORY]
    if large and not sweep.needs:
        raise Refused(
            f"{sweep.suite.source}: none of {len(large)} points fits memory, the first: {large[0]}",
            "ask for less context, layers or batch, or free some memory",
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
    chased = sum(_chased(needs[point], plan) for point in points)
    untimed = _PAUSES * chased + plan.samples * (
        chased + sum(_between(point, plan) for point in points)
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
    """Seconds of one sample of each program of a visit. A sample is at least one pass.

    A decode has the point, its twin in two forms, its core roof, and reads of memory if memory
    feeds it. A store has two copies. Both have PACE, and a chase's samples if a thread chases.
    A contrast has all its points; a line has their limits, too. A probe has its plain form in each
    round, and other forms in some. A step has its parts, and a read of as many bytes.
    """
    seconds = plan.sample_time
    if isinstance(visited, Probe):
        return seconds * _FORMS.get(visited.op, 1)
    # an op of one token does not walk a slice; a step walks all layers
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
    if visited.op == STEP:  # the parts together take as long as the step, and so does the read
        return (3 + plan.neighbour) * walks[0] + 2 * seconds + _PACE
    if (alone := alone_of(visited)) != visited and alone in needs:  # it shares their witnesses
        return (1 + plan.neighbour) * walks[0] + (not visited.streamed) * seconds / _CORES
    far = needs[visited].walked >= needs[visited].far or visited.residency == "evicted"
    more = 0.0 if stores(visited) else seconds + far * walks[0]
    more += (alone != visited) * walks[0] + _chased(needs[visited], plan)
    return (3 + plan.neighbour) * walks[0] + _PACE + more


def _chased(needed: Needs, plan: Plan) -> float:
    """Seconds of the chase's samples in a round. The loads take as long again to start, untimed."""
    return _CHASES * max(SECONDS, plan.sample_time) if needed.chain else 0.0


def _between(point: Point, plan: Plan) -> float:
    """Untimed seconds of a sample: as long as its timed part, or one read of the bytes between
    passes.
    """
    return max(plan.sample_time, point.streamed / _rate(point)) if point.streamed else 0.0


def _computed(point: Point) -> float:
    """Seconds of a pass with several queries, from its arithmetic. With one query the reads take
    longer, so this is 0.
    """
    shape = point.shape
    if shape.q_len == 1:
        return 0.0
    rows = shape.q_len * shape.q_heads * sum(min(shape.window or n, n) for n in shape.held)
    return 2 * rows * (shape.head_dim + shape.width_of_v) / (COMPUTE_EACH * point.threads)


def _rate(point: Point) -> float:
    return max(READ, READ_EACH * point.threads)


def _filling(needs: Mapping[Point, Needs]) -> dict[tuple[object, ...], float]:
    """Seconds to fill memory. Points that share memory have one entry."""
    return {
        room(point, needed.slices): (
            (needed.slice_bytes / FILL + needed.arena / REPEAT) / min(point.threads, FILLERS)
        )
        for point, needed in needs.items()
    }


def _linking(needs: Mapping[Point, Needs]) -> float:
    """Seconds to link the cycles of all chases: once for each chasing thread."""
    found = {(p.chase, p.cpus, p.pages): needed.chain for p, needed in needs.items()}
    return sum(found.values()) / LINK

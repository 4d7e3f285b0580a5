"""Expand a suite to its points on this machine: cross the axes, and leave out what cannot be
measured, with the reason.

for grid in suite:
    for facts in the product of its axes:
        unless a skip of the suite matches: a Point, or a Skip with a reason
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain, product
from typing import Any

from kvbench.errors import BadArgument, KvbenchError, Unsupported, unknown_word
from kvbench.model import DEFAULTS, HEADS, OURS, POINT, Contrast, Kernel, Needs, Plan, Point, Skip
from kvbench.model.hardware import kernel_id
from kvbench.model.masks import CHAIN
from kvbench.model.planes import apart, is_pair
from kvbench.model.point import ATTENDS, BETWEEN, CHANNEL, INTERLEAVE, LOCAL, STEP, TOKEN
from kvbench.model.shape import lengths_word
from kvbench.native import Asked
from kvbench.peers.host import layer_shape
from kvbench.plan.chases import loading, refuse_unchased
from kvbench.plan.needs import ALONE, PROCESS, UNCACHED, chain_bytes, needs
from kvbench.plan.shapes import (
    CPUS,
    INVALID,
    NO_NODE,
    UNKNOWN,
    Left,
    as_model,
    between_of,
    refuse_idle,
    shape_of,
)
from kvbench.plan.site import Site, constraint, resolved, threads_of
from kvbench.plan.witnesses import contrasts, crowded, is_peer, witnesses
from kvbench.suite import AXES, Suite, model
from kvbench.suite.axes import BY_KERNEL, MOST, words
from kvbench.suite.values import ALL, Axes
from kvbench.units import size

_Facts = dict[str, Any]  # one value of each axis
_KERNEL = ("op", *BY_KERNEL)  # the axes that name a kernel

NO_KERNEL, NO_TIER, NO_PAGES = (
    "no such kernel",
    "instruction set not on this CPU",
    "pages not available here",
)
MEMORY = "does not fit memory"
NO_PEER, NO_FORMAT = "no such peer here", "no format of that peer"
# the axes that these reasons depend on; other reasons depend on all
_SAME = {NO_PEER: ("engine",), NO_FORMAT: ("engine", "dtype", "layout")}


@dataclass(frozen=True, slots=True)
class Sweep:
    """An expanded suite. The plan has its points, then their probes, then the contrasts.

    needs, asked: of each point; `asked` has the value of each axis as the suite has it. memory:
    bytes that were free. line: the largest set that the planned launches may find to be the fastest
    kernels of all dtypes, which are then timed side by side; empty if that is not done.
    """

    suite: Suite
    plan: Plan
    skips: tuple[Skip, ...]
    needs: dict[Point, Needs]
    asked: dict[Point, _Facts]
    memory: int
    line: tuple[Point, ...] = ()

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of the plan, without probes and contrasts."""
        return tuple(self.needs)

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        return tuple(each for each in self.plan.points if isinstance(each, Contrast))

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the suite names."""
        return tuple(
            dict.fromkeys(facts["model"] for facts in self.asked.values() if facts["model"])
        )

    def varying(self) -> dict[str, tuple[Any, ...]]:
        """The axes in which points differ, with their values."""
        found = {
            axis: tuple(dict.fromkeys(facts[axis] for facts in self.asked.values()))
            for axis in AXES
        }
        return {axis: values for axis, values in found.items() if len(values) > 1}

    def named(self, skip: Skip) -> _Facts:
        """The skip's values of the axes that the suite names."""
        axes = {axis for grid in self.suite.grids for axis in grid}
        return {
            axis: value for axis, value in skip.facts.items() if axis in axes and value is not None
        }


def expand(suite: Suite, site: Site, seed: int = 1, only: tuple[str, ...] = ()) -> Sweep:
    """Each point once, in the order of the file. `only`: shell patterns for the names of points."""
    asked: dict[Point, _Facts] = {}
    needed: dict[Point, Needs] = {}
    skips: dict[tuple[Any, ...], Skip] = {}
    constraints = [constraint(table, site) for table in suite.skips]
    for facts in _combinations(suite, site):
        if any(
            all(facts[axis] in values for axis, values in constraint.items())
            for constraint in constraints
        ):
            continue
        try:
            _refuse_kernel(facts, site)
            _refuse_peer(facts, site)
            point = _on(facts, _cpus(facts, site), site)
            _refuse_shape(point, site)
            if point not in asked and (
                not only or any(fnmatchcase(point.name, pattern) for pattern in only)
            ):
                needed[point] = _fitting(point, site)
                asked[point] = facts
        except Left as left:
            own = {axis: facts[axis] for axis in _SAME.get(left.args[0], facts)}
            skips.setdefault(tuple(own.values()), Skip(own, *left.args))
    for point in chain.from_iterable(find(needed, site.memory) for find in (crowded, _too_many)):
        skips.setdefault(
            tuple(asked[point].values()),
            Skip(asked.pop(point), *_too_large(needed.pop(point), site)),
        )
    # contrasts leave out plug-ins' points, which run in processes of their own
    foreign = site.library.foreign_variants
    ours = {point: needs for point, needs in needed.items() if point.variant not in foreign}
    beside = contrasts(ours, site.machine, site.memory) if suite.contrasts else ()
    points = (*asked, *witnesses(needed, site.machine), *beside)
    plan = Plan(points, suite.launches, suite.samples, suite.sample_time, seed)
    return Sweep(suite, plan, tuple(skips.values()), needed, asked, site.memory)


def refuse_empty(sweep: Sweep, site: Site, only: tuple[str, ...] = ()) -> None:
    """If the sweep has no points, say which request or which obstacle is the cause. `only`: as in
    expand().
    """
    if sweep.needs:
        return
    nothing = f"{sweep.suite.source} has no points"
    if only and (others := expand(sweep.suite, site).points):
        raise BadArgument(
            f"{nothing} here whose name matches --only {' or '.join(only)}",
            f"it has {others[0].name}, ...; kvbench sweep --dry-run lists all",
        )
    if not sweep.skips:
        raise BadArgument(f"{nothing}: its [[skip]] tables leave out everything", "change them")
    reasons = Counter(skip.reason for skip in sweep.skips).most_common(3)
    first = sweep.skips[0]
    details = {skip.reason: skip.detail for skip in reversed(sweep.skips)}  # the first of each
    why = "".join(f"; {count} left out: {reason}: {details[reason]}" for reason, count in reasons)
    named = sweep.named(first).items()
    example = " ".join(f"{axis}={lengths_word(str(value))}" for axis, value in named)
    raise BadArgument(f"{nothing} here{why}", f"such as {example}; --axis asks for other values")


def refuse_without_plugin(sweep: Sweep, site: Site) -> None:
    """Refuse a plug-in that adds no point: the user has probably mistyped an axis."""
    there, plugins = {point.variant for point in sweep.points}, site.library.plugins
    for plugin in plugins.each:
        kernels = plugins.told(plugin)
        if there.isdisjoint(kernel.variant for kernel in kernels):
            offered = ", ".join(kernel.id for kernel in kernels[:8])
            raise BadArgument(
                f"no kernel of {plugin.path.name} is among the points of {sweep.suite.source}",
                f"it has {offered}: choose layout, dtype and isa by --axis",
            )


def refuse_without_peer(sweep: Sweep, site: Site) -> None:
    """Refuse a sweep that asks for peers but can measure none: our kernels alone answer nothing."""
    if site.peers and not any(is_peer(point) for point in sweep.points):
        lost = [skip.detail for skip in sweep.skips if skip.reason in (NO_PEER, NO_FORMAT, INVALID)]
        why = "; ".join(dict.fromkeys(lost)) or "the remaining points have only our engine"
        raise BadArgument(
            f"none of the peers asked for can be measured: {why}",
            "kvbench sweep peers --dry-run says which can be",
        )


# ---- the product of the axes ---------------------------------------------------------------------


def _combinations(suite: Suite, site: Site) -> Iterator[_Facts]:
    """Every combination of the suite's axes. If there are too many, they are refused before the
    first.
    """
    grids = [(resolved(grid, op, site), grid) for grid in suite.grids for op in _ops(grid)]
    for grid in suite.grids:
        if lacking := [] if "model" in grid else [name for name in HEADS if name not in grid]:
            raise BadArgument(
                f"{suite.source}: a geometry lacks {', '.join(lacking)}", "give them, or a model"
            )
    total = sum(math.prod(len(values) for values in axes.values()) for axes, _ in grids)
    if total > MOST:
        raise BadArgument(
            f"{suite.source}: {total if total < 1 << 63 else 'far too many'} points",
            f"at most {MOST}: fewer values",
        )
    for axes, grid in grids:
        for values in product(*axes.values()):
            facts = as_model(dict(zip(axes, values, strict=True)))
            if site.peers and facts["engine"] not in (OURS, *site.peers):
                continue
            if _kernel(facts, site) or not _elsewhere(facts, grid, site):
                yield facts


def _elsewhere(facts: _Facts, grid: Axes, site: Site) -> bool:
    """Whether a combination without a kernel may be left out without a note.

    That is so for variants, layouts and dtypes that the grid does not name itself: those of a
    plug-in, and those of "all" if another value in their place has a kernel.
    """
    taken = ("variant", "layout", "dtype")
    unasked = [axis for axis in taken if facts[axis] not in grid.get(axis, ())]
    if "variant" in unasked and facts["variant"] in site.library.foreign_variants:
        return True
    axes = [axis for axis in unasked if ALL in grid.get(axis, ())]
    others = product(*(site.words_of(facts["op"], axis) for axis in axes))
    return any(_kernel(facts | dict(zip(axes, words, strict=True)), site) for words in others)


def _ops(grid: Axes) -> tuple[str, ...]:
    asked = grid.get("op", (DEFAULTS["op"],))
    return words("op") if ALL in asked else asked


# ---- one combination -----------------------------------------------------------------------------


def only_point(facts: _Facts, cpus: tuple[int, ...], site: Site) -> Point:
    """The point of one combination, with nothing left out: an impossible combination is refused.
    cpus: used unless a thread chases beside the point.
    """
    facts = facts | site.lacks(facts["op"])
    op, variant, *cell = (facts[axis] for axis in _KERNEL)
    known = site.words_of(op, "variant")
    if variant not in (None, *known):
        raise unknown_word("--variant", variant, known)
    variant = variant or known[0]
    if variant in site.library.foreign_variants:
        site.library.plugins.refuse_lacking(variant, *cell)
    elif op == "decode":
        site.library.way(variant, *cell)  # it refuses what a variant lacks
    elif not _kernel(facts | {"variant": variant}, site):
        raise BadArgument(
            f"no such kernel: {kernel_id(op, variant, *cell)}",
            f"it has layouts {', '.join(site.words_of(op, 'layout'))}",
        )
    try:
        _refuse_peer(facts, site)
        chased = facts["chase"] != DEFAULTS["chase"]
        cpus = _cpus(facts, site) if chased else cpus
        point = _on(facts | {"variant": variant}, cpus, site)
        _refuse_shape(point, site)
        if chased:
            refuse_unchased(point, needs(point, site.far(point.cpus)))
        return point
    except Left as left:
        raise BadArgument(": ".join(left.args), "ask for other values") from None


def _on(facts: _Facts, cpus: tuple[int, ...], site: Site) -> Point:
    """The point of a combination on these CPUs. Fields that its layout, dtype or op does not use
    get their default, so that no point occurs twice.
    """
    facts = _settled(facts, site) | {"k_scale": _k_scale(facts, site)}
    whole = model(facts["model"]).layers if facts["layers"] == "model" and facts["model"] else 0
    facts |= {"layers": 0} if facts["layers"] == "model" else {}
    if facts["op"] in ALONE and len(cpus) > 1:
        raise Left(CPUS, f"{facts['op']} runs on one thread, but {len(cpus)} are asked for")
    own = {field.name: facts[field.name] for field in POINT}
    own |= {"cpus": cpus, "between": between_of(facts, cpus, site)}
    if is_pair(facts["dtype"]):
        own["dtype"], own["v_dtype"] = apart(facts["dtype"])
    point = Point(**own, shape=shape_of(facts | {"whole": whole}, cpus, site))
    if point.op == "repack":
        refuse_idle(point)
    return _in_sets(point, whole, site) if whole and point.op != STEP else point


def _in_sets(point: Point, layers: int, site: Site) -> Point:
    """The point with as many full sets of a model's layers as are needed to exceed the caches."""
    with suppress(KvbenchError):  # an impossible shape is left out later, with the reason
        sets = -(-needs(point, site.far(point.cpus)).slices // layers)
        return replace(point, shape=replace(point.shape, layers=layers * sets))
    return point


def _settled(facts: _Facts, site: Site) -> _Facts:
    """Add the fields of a point that the facts lack. Fields without effect get their defaults."""
    matters = {
        "layout": site.paged(facts["layout"]),
        "dtype": site.scaled(facts["dtype"]),
        "op": facts["op"] in ATTENDS,
    }
    found = {
        field.name: facts[field.name] if matters.get(field.within, True) else field.default
        for field in AXES.values()
    }
    if facts["op"] not in BETWEEN:
        found["between"] = 0
    if facts["op"] != STEP:
        found["full_every"] = 0
    shuffled = matters["layout"] and found["order"] == "shuffled"
    # plug-ins have no schedules: they read and prefetch in their own way
    foreign = facts["variant"] in site.library.foreign_variants
    own = {"schedule": DEFAULTS["schedule"]} if foreign else {}
    if found["engine"] != OURS:
        own = {
            "schedule": DEFAULTS["schedule"],
            "variant": site.words_of(facts["op"], "variant")[0],
        }
    return DEFAULTS | found | {"order": 1 if shuffled else None} | own


def _k_scale(facts: _Facts, site: Site) -> str:
    """What shares a scale of K; token if the format has no separate scales."""
    asked, (dtype, _) = str(facts["k_scale"]), apart(facts["dtype"])
    if asked == TOKEN or facts["op"] in UNCACHED or not site.has_scales(dtype):
        return TOKEN
    if site.scales_blocks(dtype):
        raise Left(INVALID, f"k_scale = {asked}: {dtype} has one scale per block, in its rows")
    return asked


def _kernel(facts: _Facts, site: Site) -> Kernel | None:
    """The kernel of a combination. For a pair of dtypes it is K's, if V's dtype has one, too."""
    both = (site.kernels.get(_words(facts, dtype)) for dtype in apart(facts["dtype"]))
    k, v = both
    return k if v else None


def _words(facts: _Facts, dtype: str) -> tuple[Any, ...]:
    return tuple(dtype if axis == "dtype" else facts[axis] for axis in _KERNEL)


def _refuse_kernel(facts: _Facts, site: Site) -> None:
    kernel = _kernel(facts, site)
    if kernel is None:
        raise Left(NO_KERNEL, kernel_id(*(facts[axis] for axis in _KERNEL)))
    if not kernel.runnable:
        raise Left(NO_TIER, f"{facts['isa']}; this CPU runs: {', '.join(site.library.isas())}")
    if facts["memory"] not in (LOCAL, INTERLEAVE, *site.nodes):
        raise Left(NO_NODE, f"{facts['memory']}; there are: {', '.join(site.nodes)}")
    if facts["pages"] not in site.pages:
        raise Left(NO_PAGES, f"{facts['pages']}; the system gives: {', '.join(site.pages)}")


def _refuse_peer(facts: _Facts, site: Site) -> None:
    if facts["engine"] == OURS:
        return
    if facts["op"] != "decode" or facts["between"]:
        raise Left(INVALID, "peers only decode, with no reads between passes")
    found = site.peer(facts["engine"])
    if found.lacking:
        raise Left(NO_PEER, f"{found.name}: {found.lacking}")
    for dtype in apart(facts["dtype"]):
        if not found.takes(dtype, facts["layout"]):
            raise Left(NO_FORMAT, f"{found.name} has no {facts['layout']} {dtype}")
    if facts["k_scale"] != DEFAULTS["k_scale"]:
        raise Left(INVALID, "peers choose their own scales: ask for k_scale=token")
    if facts["batch"] != 1 or facts["residency"] != "rotate":
        raise Left(INVALID, "peers decode one sequence from memory: ask for batch=1, rotate")
    if site.paged(facts["layout"]) and facts["order"] == "shuffled":
        raise Left(INVALID, "peers keep blocks in ascending order: ask for order=sequential")


def _refuse_shape(point: Point, site: Site) -> None:
    if point.variant in site.library.foreign_variants:
        shape = point.shape
        asked = Asked(
            shape.q_len,
            shape.mask,
            shape.window,
            softcap=shape.softcap > 0,
            slopes=shape.alibi > 0,
            channel=point.k_scale == CHANNEL,
        )
        try:
            site.library.plugins.refuse_untaken(asked, *point.words[1:])
        except BadArgument as error:
            raise Left(INVALID, error.args[0]) from None
    if not is_peer(point):
        return
    kind, shape = site.peer(point.engine).kind, point.shape
    if shape.mask != CHAIN:
        raise Left(INVALID, f"{point.engine}: peers have one mask only: ask for mask={CHAIN}")
    if why := kind.lacking(point.dtype, layer_shape(point)):
        raise Left(INVALID, f"{point.engine}: {why}")


def _cpus(facts: _Facts, site: Site) -> tuple[int, ...]:
    try:
        if facts["chase"] != DEFAULTS["chase"]:
            return loading(facts, site)
        return site.cpus(facts["cpus"], threads_of(facts["op"], facts["threads"]))
    except BadArgument as error:
        raise Left(CPUS, error.args[0]) from None
    except Unsupported as error:
        raise Left(UNKNOWN, error.args[0]) from None


def _fitting(point: Point, site: Site) -> Needs:
    try:
        needed = needs(point, site.far(point.cpus), chain_bytes(site.machine, point))
    except KvbenchError as error:
        raise Left(INVALID, error.args[0]) from None
    refuse_unchased(point, needed)
    if needed.memory + PROCESS > site.memory:
        raise Left(*_too_large(needed, site))
    return needed


def _too_large(needed: Needs, site: Site) -> tuple[str, str]:
    return MEMORY, f"it needs {size(needed.memory + PROCESS)}, but {size(site.memory)} is available"


def _too_many(needed: Mapping[Point, Needs], memory: int) -> list[Point]:
    """The largest points, as many as must go so that the others can take turns: the arena of one
    point stays while another point is checked.
    """
    arena = beside = 0
    order = sorted(needed, key=lambda point: needed[point].memory)
    for place, point in enumerate(order):
        arena, beside = max(arena, needed[point].arena), max(beside, needed[point].beside)
        if arena + beside + PROCESS > memory:
            return order[place:]
    return []

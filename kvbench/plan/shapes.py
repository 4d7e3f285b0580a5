"""Make the shape of one combination of axes: heads, tokens, capacity, lengths of the sequences."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvbench.errors import BadArgument, KvbenchError
from kvbench.model import DEFAULTS, HEADS, MODEL_SAYS, Point, Shape
from kvbench.model.contrast import evenly
from kvbench.model.masks import CHAIN
from kvbench.model.point import CHANNEL, SHAPE, STEP
from kvbench.model.shape import EVEN, LISTED, VOCABULARY
from kvbench.plan.needs import UNCACHED, sized_by, slice_of, tokens_in
from kvbench.plan.site import Site
from kvbench.regime import THRESHOLDS, lacking
from kvbench.suite import Model, Relative, model, traces
from kvbench.suite.axes import OF_MODEL
from kvbench.suite.models import layer_weights
from kvbench.units import size, whole_lines

Facts = Mapping[str, Any]  # one value of each axis
INVALID, UNKNOWN = "invalid combination", "cache size unknown"
CPUS, NO_NODE = "not enough CPUs", "no such NUMA node"
CLOSED = "no size that only L3 holds"


class Left(Exception):
    """Raised when a combination cannot be measured and is left out: the kind of reason, and its
    details.
    """


def as_model(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with the model's values for the axes that the suite does not name. A model's width
    of V is used only with its own head_dim.
    """
    known = model(facts["model"]) if facts["model"] else None
    own = {name: getattr(known, name, DEFAULTS[name]) for name in MODEL_SAYS}
    if known and facts["head_dim"] not in (None, known.head_dim):
        own["v_dim"] = DEFAULTS["v_dim"]
    return facts | {name: value for name, value in own.items() if facts[name] is None}


def shape_of(facts: Facts, cpus: tuple[int, ...], site: Site) -> Shape:
    """The shape of a combination. `facts`: settled."""
    facts = _drawn(facts)
    known = model(facts["model"]) if facts["model"] else None
    heads = [facts[name] or getattr(known, name) for name in HEADS]
    if heads[0] % heads[1]:
        raise Left(INVALID, f"{heads[0]} query heads do not divide into {heads[1]} KV heads")
    facts = {**facts, "v_dim": _width_of_v(facts, heads[2])}
    window = facts["window"]
    if window == "model":
        window = known.window if known else 0
    step = _of_step(facts, known) if facts["op"] == STEP else {}
    if facts["residency"] != "rotate" and facts["layers"] > 1:
        raise Left(INVALID, f"{facts['residency']} walks one slice, not {facts['layers']} layers")
    context = _tokens(facts, heads, cpus, site)
    capacity = _capacity(facts, context)
    if window > capacity:
        raise Left(INVALID, f"window {window} is more than capacity {capacity}")
    if facts["kept"] and not window:
        raise Left(INVALID, f"kept = {facts['kept']} needs a window: without one all tokens count")
    own = {field.name: facts[field.name] for field in SHAPE} | dict(zip(HEADS, heads, strict=True))
    width = own["vocabulary"] or (known and known.vocabulary) or VOCABULARY
    own["vocabulary"] = width if facts["op"] == "logits" else 0
    own["mask"] = _mask(facts, context)
    found = Shape(**own | {"context": context, "capacity": capacity, "window": window} | step)
    return _of_lengths(found)


def _width_of_v(facts: Facts, head_dim: int) -> int:
    """The width of V; 0 if it equals K's, or if the op uses no cache."""
    v_dim = int(facts["v_dim"])
    return 0 if v_dim == head_dim or facts["op"] in UNCACHED else v_dim


def _mask(facts: Facts, context: int) -> str:
    """The mask asked for; CHAIN for one query."""
    queries = facts["q_len"]
    if queries == 1:
        return CHAIN
    if facts["op"] == STEP:
        raise Left(INVALID, f"a step has one query per sequence, not {queries}")
    if queries > context:
        raise Left(INVALID, f"{queries} queries are more than context {context}")
    return str(facts["mask"])


def _drawn(facts: Facts) -> Facts:
    """The facts with lengths that were drawn from a trace listed as numbers, so that a point's name
    does not depend on the table. They also set the context.
    """
    kind, _, seed = facts["lengths"].partition(":")
    if kind not in (traces.TRACE, traces.MEAN, traces.LONGEST):
        return facts
    held = traces.drawn(int(seed), facts["batch"])
    lengths = f"{LISTED}:{','.join(map(str, held))}" if kind == traces.TRACE else EVEN
    context = evenly(held) if kind == traces.MEAN else max(held)
    return {**facts, "lengths": lengths, "context": context}


def _of_step(facts: Facts, known: Model | None) -> dict[str, int]:
    """The layers of a step: all layers of a model once, in the model's mix."""
    if facts["v_dim"]:
        raise Left(INVALID, f"a step needs rows of V as wide as K's, not {facts['v_dim']}")
    if facts["k_scale"] == CHANNEL:
        raise Left(INVALID, "a step has a scale of K for each token: ask for k_scale=token")
    if facts["kept"]:
        raise Left(INVALID, "layers of a step keep only the tokens of their window: ask for kept=0")
    if facts["residency"] != DEFAULTS["residency"]:
        raise Left(INVALID, f"a step walks all layers in turn, it is never {facts['residency']}")
    layers = facts["layers"] or facts["whole"] or (known and known.layers)
    if not layers:
        raise Left(INVALID, "a step needs a number of layers: ask for layers, or a model")
    every = facts["full_every"]
    if every == "model":
        every = known.window_every if known else 0
    return {"layers": layers, "full_every": every}


def between_of(facts: Facts, cpus: tuple[int, ...], site: Site) -> int:
    """Bytes to read between passes, in full cache lines."""
    asked: str | float | Relative = facts["between"]
    if isinstance(asked, str):
        if not facts["model"]:
            raise Left(INVALID, f"between = {asked} needs a model")
        try:
            asked = layer_weights(facts["model"], asked.removeprefix(OF_MODEL))
        except BadArgument as error:
            raise Left(INVALID, error.args[0]) from None
    elif isinstance(asked, Relative):
        held = site.level_bytes(cpus, asked.level)
        if held is None:
            which = lacking(site.machine, cpus, asked.level)
            raise Left(UNKNOWN, f"no L{asked.level} is known for {which}")
        asked = asked.factor * held
    if asked and facts["residency"] == "evicted":
        raise Left(INVALID, "evicted already flushes all caches between passes: ask for between=0")
    return whole_lines(asked)


def _of_lengths(shape: Shape) -> Shape:
    """The shape with checked lengths. If all sequences are as long as the context, they are
    even.
    """
    held = shape.held
    if len(held) != shape.batch:
        what = f"{len(held)} lengths are listed for a batch of {shape.batch}"
        raise Left(INVALID, f"{what}: ask for batch {len(held)}")
    if max(held) > shape.context:
        what = f"a length of {max(held)} is more than the context {shape.context}"
        raise Left(INVALID, f"{what}: ask for context {max(held)}")
    return replace(shape, lengths=EVEN) if min(held) == shape.context else shape


def _capacity(facts: Facts, context: int) -> int:
    """The capacity; unless it is given, twice the context for a cache that grows, else the
    context.
    """
    if facts["op"] in UNCACHED:
        return context
    capacity = facts["capacity"] or context * (2 if facts["op"] == "repack" else 1)
    if context > capacity:
        raise Left(INVALID, f"context {context} is more than capacity {capacity}")
    return capacity


def refuse_idle(point: Point) -> None:
    """Refuse to grow a cache that already has that room, perhaps in its last block."""
    shape = point.shape
    full = replace(point, shape=replace(shape, capacity=shape.context))
    if slice_of(full) == slice_of(point):
        raise Left(INVALID, f"a cache of {shape.context} tokens does not grow to {shape.capacity}")


def _tokens(facts: Facts, heads: list[int], cpus: tuple[int, ...], site: Site) -> int:
    """The context in tokens. A size relative to a cache depends on layout, dtype and batch: below 1
    it is rounded down so that it fits, from 1 on it is rounded up.
    """
    context: int | Relative = facts["context"]
    if not isinstance(context, Relative):
        return context
    if facts["op"] in UNCACHED:
        raise Left(INVALID, f"{facts['op']} has no slice of a cache: give tokens, not {context}")
    held = site.level_bytes(cpus, context.level)
    if held is None:
        raise Left(
            UNKNOWN,
            f"no L{context.level} is known for {lacking(site.machine, cpus, context.level)}",
        )
    _refuse_closed(facts, context, cpus, site)
    sized = sized_by(facts)
    try:
        tokens = tokens_in(
            context.factor * held, context.factor >= 1, heads[1], heads[2], facts["batch"], **sized
        )
    except KvbenchError as error:
        raise Left(INVALID, error.args[0]) from None
    if not tokens:
        raise Left(INVALID, f"{context} of {size(held)} is less than one token")
    return tokens


def _refuse_closed(facts: Facts, context: Relative, cpus: tuple[int, ...], site: Site) -> None:
    """Refuse a size for L3 if no footprint of these CPUs lies only in L3. It matters for one or
    more slices that L3 could hold, walked again and again.
    """
    slices = facts["layers"] or (1 if facts["residency"] == "hot" else math.inf)
    if (
        facts["residency"] == "evicted"
        or context.level != 3
        or context.factor * slices > THRESHOLDS.last
    ):
        return
    if why := site.closed(cpus):
        raise Left(CLOSED, why)

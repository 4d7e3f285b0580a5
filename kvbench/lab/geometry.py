"""Models of which more is known than their attention."""

from kvbench.errors import BadArgument
from kvbench.suite import Model, model, models


def known(name: str) -> Model:
    """One whose hidden and intermediate sizes are stated."""
    found = model(name)
    if not (found.hidden and found.intermediate):
        stated = [other for other, each in models().items() if each.hidden and each.intermediate]
        raise BadArgument(f"--model: suites/models.toml has no hidden size of {name}", f"one of: {', '.join(stated)}")
    return found


def layer_parameters(of: Model) -> int:
    """Weights of one layer: the projections of attention, in and out, and a gated feed-forward."""
    heads = 2 * of.q_heads + 2 * of.kv_heads
    return of.hidden * (heads * of.head_dim + 3 * of.intermediate)

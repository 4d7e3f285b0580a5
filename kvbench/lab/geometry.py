"""Models of which more is known than their attention."""

from kvbench.suite import Model, stated


def known(name: str) -> Model:
    return stated(name, "hidden", "intermediate")


def layer_parameters(of: Model) -> int:
    """Weights of one layer: the projections of attention, in and out, and a gated feed-forward."""
    heads = 2 * of.q_heads + 2 * of.kv_heads
    return of.hidden * (heads * of.head_dim + 3 * of.intermediate)

"""The geometry of a published model."""

from dataclasses import dataclass

from kvbench.model.scores import NONE


@dataclass(frozen=True, slots=True)
class Geometry:
    """The dimensions of a model.

    window: tokens that a layer attends to; 0: all. window_every: in each set of this many layers
    the last attends to all tokens; 0: no layer does. hidden, intermediate: widths of a token
    outside attention and of the feed-forward; 0 if unknown. v_dim, sinks, softcap: as in Shape.
    """

    name: str
    layers: int
    q_heads: int
    kv_heads: int
    head_dim: int
    max_context: int
    window: int = 0
    window_every: int = 0
    hidden: int = 0
    intermediate: int = 0
    v_dim: int = 0
    sinks: str = NONE
    softcap: float = 0.0

    @property
    def layer_elements(self) -> int:
        """Number of weights of one layer: attention, and a gated feed-forward. 0 if they are
        unknown.
        """
        if not self.hidden or not self.intermediate:
            return 0
        rows = (self.q_heads + self.kv_heads) * (self.head_dim + (self.v_dim or self.head_dim))
        return self.hidden * (rows + 3 * self.intermediate)

    def sliding(self, context: int) -> int:
        """How many layers do not attend to all of `context` tokens."""
        if not 0 < self.window < context:
            return 0
        return self.layers - (self.layers // self.window_every if self.window_every else 0)

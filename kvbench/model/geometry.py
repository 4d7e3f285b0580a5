"""The geometry of a published model."""

from dataclasses import dataclass

from kvbench.model.scores import NONE


@dataclass(frozen=True, slots=True)
class Geometry:
    """Of every `window_every` layers the last one attends to everything, the others to `window`
    tokens; window 0 is no window, window_every 0 no layer that attends to everything. `hidden`,
    `intermediate`: what a token has beside attention, and its feed-forward; 0 where unknown.
    `v_dim`, `sinks`, `softcap`: as a Shape has them.
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
        """Weights of one layer: attention, and a gated feed-forward. 0 where they are unknown."""
        if not self.hidden or not self.intermediate:
            return 0
        rows = (self.q_heads + self.kv_heads) * (self.head_dim + (self.v_dim or self.head_dim))
        return self.hidden * (rows + 3 * self.intermediate)

    def sliding(self, context: int) -> int:
        """How many of its layers leave some of so many tokens out."""
        if not 0 < self.window < context:
            return 0
        return self.layers - (self.layers // self.window_every if self.window_every else 0)

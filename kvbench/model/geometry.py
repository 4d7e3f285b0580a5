"""The geometry of a published model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Geometry:
    """Of every `window_every` layers the last one attends to everything, the others to `window`
    tokens; window 0 is no window, window_every 0 no layer that attends to everything.
    """

    name: str
    layers: int
    q_heads: int
    kv_heads: int
    head_dim: int
    max_context: int
    window: int = 0
    window_every: int = 0

    def sliding(self, context: int) -> int:
        """How many of its layers leave some of so many tokens out."""
        if not 0 < self.window < context:
            return 0
        return self.layers - (self.layers // self.window_every if self.window_every else 0)

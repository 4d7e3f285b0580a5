"""A model's weights: what lies in memory, and what of it one step reads. Counts are of bytes, as
stored.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import about

_USUAL = 2  # bytes of a parameter, as models are published


@dataclass(frozen=True, slots=True)
class Weights:
    """A token is sent to `chosen` of the `experts` of a layer."""

    stored: Annotated[int, about("bytes: all of them")]
    always: Annotated[int, about("bytes: that every step reads, whatever its tokens are")]
    row: Annotated[
        int, about("bytes: of a token's input embedding; 0 where its table is the output's, too")
    ] = 0
    routed: Annotated[
        int, about("bytes: of all experts that tokens are sent to, in all layers")
    ] = 0
    experts: Annotated[int, about("of a layer; 0: it is no mixture of them")] = 0
    chosen: Annotated[int, about("experts of a layer that a token is sent to")] = 0
    ahead: Annotated[
        int,
        about("bytes: of layers that predict further tokens, which plain decoding leaves alone"),
    ] = 0
    senses: Annotated[
        int, about("bytes: of vision and audio, which decoding text leaves alone")
    ] = 0
    parameters: Annotated[
        int,
        about(
            "that a token is multiplied with, where they do not take two bytes each; 0: all of them"
            " do"
        ),
    ] = 0

    def distinct(self, batch: int) -> float:
        """Experts of a layer that a step meets, on average, where each token is as likely sent to
        any.
        """
        return (
            self.experts * (1 - (1 - self.chosen / self.experts) ** batch) if self.experts else 0.0
        )

    def read(self, batch: int) -> int:
        """Bytes of a step that gives each of `batch` sequences a token."""
        routed = round(self.routed * self.distinct(batch) / self.experts) if self.experts else 0
        return self.always + batch * self.row + routed

    def multiplied(self) -> int:
        """Parameters that a token is multiplied with."""
        routed = self.routed * self.chosen // self.experts if self.experts else 0
        return self.parameters or (self.always + routed) // _USUAL

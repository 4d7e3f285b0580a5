"""The weights of a model: their size in memory, and how much of them one step reads. Counts are
bytes, as stored.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import about

_USUAL = 2  # bytes of a parameter in most published models


@dataclass(frozen=True, slots=True)
class Weights:
    """The sizes of a model's weights. In a mixture of experts each token is sent to `chosen` of a
    layer's `experts`.
    """

    stored: Annotated[int, about("bytes: all weights")]
    always: Annotated[int, about("bytes: that every step reads, whatever the tokens")]
    row: Annotated[
        int, about("bytes: a token's input embedding; 0 if input and output share the table")
    ] = 0
    routed: Annotated[int, about("bytes: all experts that tokens are sent to, in all layers")] = 0
    experts: Annotated[
        int, about("experts of a layer; 0: the model is not a mixture of experts")
    ] = 0
    chosen: Annotated[int, about("experts of a layer that a token is sent to")] = 0
    ahead: Annotated[
        int,
        about("bytes: layers that predict further tokens, which plain decoding does not use"),
    ] = 0
    senses: Annotated[int, about("bytes: vision and audio, which decoding text does not use")] = 0
    parameters: Annotated[
        int,
        about("parameters that a token is multiplied with; 0: all of them, at two bytes each"),
    ] = 0

    def distinct(self, batch: int) -> float:
        """The mean number of experts of a layer that a step uses, if each token is equally likely
        to be sent to any.
        """
        return (
            self.experts * (1 - (1 - self.chosen / self.experts) ** batch) if self.experts else 0.0
        )

    def read(self, batch: int) -> int:
        """Bytes that a step reads to give each of `batch` sequences a token."""
        routed = round(self.routed * self.distinct(batch) / self.experts) if self.experts else 0
        return self.always + batch * self.row + routed

    def multiplied(self) -> int:
        """Parameters that a token is multiplied with."""
        routed = self.routed * self.chosen // self.experts if self.experts else 0
        return self.parameters or (self.always + routed) // _USUAL

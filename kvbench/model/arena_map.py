"""Where each buffer of a decoder lies, when all of them lie in one block of memory."""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import about


@dataclass(frozen=True, slots=True)
class Buffer:
    name: Annotated[str, about("what it holds")]
    kind: Annotated[str, about("how long it must stay", "input", "persistent", "scratch", "output")]
    offset: Annotated[int, about("bytes: where it begins")]
    end: Annotated[int, about("bytes: where it ends")]
    size: Annotated[int, about("bytes: of it")]
    canary: Annotated[int, about("bytes: of a known pattern behind it")]
    shape: Annotated[tuple[int, ...], about("elements in each direction")]
    about: Annotated[str, about("where its size is from")]


@dataclass(frozen=True, slots=True)
class KindBytes:
    """What buffers of a kind take."""

    bytes: Annotated[int, about("bytes: of them")]
    share: Annotated[float, about("share of the total")]


@dataclass(frozen=True, slots=True)
class ArenaMap:
    """Where each buffer of a decoder lies."""

    model: Annotated[str, about("its name")]
    context: Annotated[int, about("tokens")]
    dtype: Annotated[str, about("number format of the cache")]
    align: Annotated[int, about("bytes: every buffer begins at a multiple of it")]
    total: Annotated[int, about("bytes: of all of it, with gaps and canaries")]
    kinds: Annotated[dict[str, KindBytes], about("by kind of buffer, and between for gaps and canaries")]
    buffers: Annotated[tuple[Buffer, ...], about("in their order")]

    def buffer(self, name: str) -> Buffer:
        return next(buffer for buffer in self.buffers if buffer.name == name)

"""Where each buffer of a decoder lies, when all of them lie in one block of memory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Buffer:
    """`canary`: bytes of a known pattern that lie behind it, at once after its last. `about`: where its size is from.

    kind: "input", "persistent" (kept from token to token), "scratch" (free again after its layer or step), "output".
    """

    name: str
    kind: str
    offset: int
    size: int
    shape: tuple[int, ...]
    about: str
    canary: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class ArenaMap:
    """`align`: every buffer begins at a multiple of it."""

    model: str
    context: int
    dtype: str
    align: int
    buffers: tuple[Buffer, ...]

    @property
    def total(self) -> int:
        """With the gaps that alignment leaves, and the canaries."""
        last = self.buffers[-1]
        return last.end + last.canary

    def buffer(self, name: str) -> Buffer:
        return next(buffer for buffer in self.buffers if buffer.name == name)

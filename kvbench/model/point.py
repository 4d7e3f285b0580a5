"""What is measured: one cell of a sweep."""

from dataclasses import dataclass
from typing import Any

from kvbench.model.kernel import kernel_id
from kvbench.units import cpu_text

HEADS = ("q_heads", "kv_heads", "head_dim")  # of a Shape: what tells models apart


@dataclass(frozen=True, slots=True)
class Shape:
    """One decode step. Every sequence holds `context` tokens; window 0 attends to all of them."""

    layers: int
    batch: int
    q_heads: int
    kv_heads: int
    head_dim: int
    context: int
    capacity: int
    window: int = 0

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Point:
    """What is measured: a kernel on a shape, on these CPUs (one thread each), pages, residency and prefetch scheme."""

    op: str
    variant: str
    layout: str
    dtype: str
    isa: str
    shape: Shape
    cpus: tuple[int, ...]
    pages: str
    residency: str
    prefetch: str
    distance: int
    scale: str
    inner: str
    block_tokens: int
    shuffle: int | None
    pad: int | None
    deterministic: bool

    @property
    def kernel(self) -> str:
        return kernel_id(self.op, self.variant, self.layout, self.dtype, self.isa)

    @property
    def name(self) -> str:
        """All of it in one word: what two runs are joined by."""
        s = self.shape
        return "/".join(
            (
                self.kernel,
                f"b{s.batch}.q{s.q_heads}.kv{s.kv_heads}.d{s.head_dim}",
                f"ctx{s.context}.cap{s.capacity}.win{s.window}.layers{s.layers}",
                f"cpu{cpu_text(self.cpus)}.{self.pages}.{self.residency}",
                f"{self.prefetch}{self.distance}.{self.scale}.{self.inner}.block{self.block_tokens}",
                f"order{_word(self.shuffle)}.pad{_word(self.pad)}.det{int(self.deterministic)}",
            )
        )


def _word(value: int | None) -> str:
    return "-" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Probe:
    """A point without a cache: the machine alone. `bytes` are those of all buffers that a pass walks, together."""

    op: str
    isa: str
    cpus: tuple[int, ...]
    pages: str
    bytes: int
    distance: int = 0  # of the software prefetch; 0 leaves it to the hardware

    @property
    def kernel(self) -> str:
        return kernel_id(self.op, "-", "-", "-", self.isa)

    @property
    def name(self) -> str:
        return f"{self.kernel}/bytes{self.bytes}.ahead{self.distance}/cpu{cpu_text(self.cpus)}.{self.pages}"


@dataclass(frozen=True, slots=True)
class Skip:
    """A combination of a suite's axes that is no point here: its values, the kind of reason, and the particulars."""

    facts: dict[str, Any]
    reason: str
    detail: str

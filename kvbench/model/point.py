"""What is measured: one cell of a sweep."""

from dataclasses import dataclass
from typing import Annotated, Any

from kvbench.model.annotated import Count, Cpus, Size, about
from kvbench.model.kernel import kernel_id
from kvbench.units import cpu_text

HEADS = ("q_heads", "kv_heads", "head_dim")  # of a Shape: what tells models apart


@dataclass(frozen=True, slots=True)
class Shape:
    """One decode step. Every sequence holds `context` tokens; window 0 attends to all of them."""

    layers: Annotated[Count, about("slices in rotation; 0: by the residency")]
    batch: Annotated[Size, about("sequences")]
    q_heads: Annotated[Size, about("query heads")]
    kv_heads: Annotated[Size, about("KV heads")]
    head_dim: Annotated[Size, about("elements of a row")]
    context: Annotated[Size, about("tokens that every sequence holds")]
    capacity: Annotated[Size, about("tokens that there is room for")]
    window: Annotated[Count, about("tokens attended to; 0: all")] = 0

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads


class Measured:
    """A Point or a Probe. As JSON it says by its fields which of them it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Point(Measured):
    """What is measured: a kernel on a shape, on these CPUs (one thread each), pages, residency and prefetch scheme."""

    op: Annotated[str, about("what it does: decode, append, bulk, ...")]
    variant: Annotated[str, about("the way of doing it; - where there is but one")]
    layout: Annotated[str, about("of the cache; - where there is none")]
    dtype: Annotated[str, about("number format of the cache; - where there is none")]
    isa: Annotated[str, about("tier of the instruction set")]
    shape: Annotated[Shape, about("geometry of the model and fill of its cache")]
    cpus: Annotated[Cpus, about("the CPU of each thread")]
    pages: Annotated[str, about("kind of pages that was asked for: base, thp or huge")]
    residency: Annotated[
        str, about("hot: one slice alone; rotate: the slices in turn; evicted: caches swept before a pass")
    ]
    prefetch: Annotated[str, about("scheme of the software prefetch")]
    distance: Annotated[Count, about("bytes: how far ahead it reaches, where the scheme takes a distance")]
    scale: Annotated[str, about("number format of the scales, where the dtype has any")]
    inner: Annotated[str, about("order inside a block of a paged cache")]
    block_tokens: Annotated[Count, about("tokens of a block of a paged cache")]
    shuffle: Annotated[Count | None, about("seed of the order of a paged cache's blocks; null: in order")]
    pad: Annotated[Count | None, about("bytes behind each head's plane; null: the default")]
    deterministic: Annotated[bool, about("whether the work is split by the shape alone")]

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
class Probe(Measured):
    """A point without a cache: the machine alone. `bytes` are those of all buffers that a pass walks, together."""

    op: Annotated[str, about("read, write, copy, flops, latency, clock, ...")]
    isa: Annotated[str, about("tier of the instruction set")]
    cpus: Annotated[Cpus, about("the CPU of each thread")]
    pages: Annotated[str, about("kind of pages that was asked for")]
    bytes: Annotated[Count, about("bytes: of all buffers that a pass walks, together; 0 where none is")]
    distance: Annotated[Count, about("bytes: how far ahead the software prefetch reaches; 0: none")] = 0

    @property
    def kernel(self) -> str:
        return kernel_id(self.op, "-", "-", "-", self.isa)

    @property
    def name(self) -> str:
        return f"{self.kernel}/bytes{self.bytes}.ahead{self.distance}/cpu{cpu_text(self.cpus)}.{self.pages}"


@dataclass(frozen=True, slots=True)
class Skip:
    """A combination of a suite's axes that is no point here: its values, the kind of reason, and the particulars."""

    facts: Annotated[dict[str, Any], about("its values, by axis")]
    reason: Annotated[str, about("the kind of reason")]
    detail: Annotated[str, about("particulars")]

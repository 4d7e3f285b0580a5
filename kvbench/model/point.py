"""A point: what is measured, one cell of a sweep. Each field is declared once, here or in shape.py.
Tables, short names and a suite's product use this order of fields.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from kvbench.model.annotated import Count, Cpus, about
from kvbench.model.chases import CHASES, NONE
from kvbench.model.field import Field, declared, nested, of
from kvbench.model.hardware import PLACES, kernel_id
from kvbench.model.planes import together
from kvbench.model.shape import Shape, lengths_word
from kvbench.units import cpu_text

FLOPS, DOT8, DOT16 = "flops", "dot8", "dot16"  # multiply-adds; products of bytes, of bf16
COMPUTE = (FLOPS, DOT8, DOT16)  # probes of instructions that stay in registers
AUTO = "auto"  # the schedule: chosen by a measurement, or else by the library
LOCAL, INTERLEAVE = "local", "interleave"  # where memory lies
ONE_TOKEN = ("append", "logits")  # ops whose pass handles one token of each sequence
STEP = "step"  # the op of a step of all layers: for each append, then decode, then weights
ATTENDS = ("decode", STEP)  # ops that answer queries
BETWEEN = (*ATTENDS, "append")  # ops that allow other reads between passes or layers
OURS = "kvbench"  # the engine
TOKEN, CHANNEL = "token", "channel"  # what shares a scale of K
K_SCALES = (TOKEN, CHANNEL)
OWN = "own"  # in a duel: each side has the schedule that was chosen for it


class Visited:
    """What a launch visits: a Point, a Probe or a Contrast. In JSON its fields show which it is."""

    __slots__ = ()

    if TYPE_CHECKING:  # what all of them have, some as fields

        @property
        def cpus(self) -> tuple[int, ...]:
            """The CPU of each thread."""

        @property
        def isa(self) -> str:
            """The instruction set."""

        @property
        def words(self) -> tuple[str, ...]:
            """Op, variant, layout, dtype and isa of its kernel."""

        @property
        def name(self) -> str:
            """A name that tells it from all others."""

    @property
    def threads(self) -> int:
        return len(self.cpus)

    @property
    def kernel(self) -> str:
        return kernel_id(*self.words)


@dataclass(frozen=True, slots=True)
class Point(Visited):
    """What is measured: a kernel on a shape, with CPUs (one thread on each), pages, residency and
    schedule.
    """

    op: Annotated[str, about("what it does: decode, append, bulk, repack, ...")] = of(
        "word",
        "decode",
        "{}",
        "What the kernel does.",
        words=("decode", "append", "bulk", "repack", "transpose", "logits", STEP),
    )
    variant: Annotated[str, about("how it does that; - if there is only one way")] = of(
        "word",
        None,
        "{}",
        "How the kernel does it; see kvbench list kernels. [default: the first]",
        usual=True,
    )
    layout: Annotated[str, about("layout of the cache; - if it has none")] = of(
        "word", "head", "{}", "Layout of the cache; see kvbench list kernels.", sized=True
    )
    inner: Annotated[str, about("order of rows inside a block of a paged cache")] = of(
        "word",
        "head",
        "inner {}",
        "Order of rows in a block of a paged cache: head or token.",
        within="layout",
        sized=True,
    )
    block_tokens: Annotated[Count, about("tokens of a block of a paged cache")] = of(
        "count", 16, "block={}", "Tokens in a block of a paged cache.", within="layout", sized=True
    )
    order: Annotated[
        Count | None, about("seed of the order of a paged cache's blocks; null: in ascending order")
    ] = of(
        "word",
        "shuffled",
        "order={}",
        "Order of the blocks of a paged cache.",
        words=("sequential", "shuffled"),
        within="layout",
    )
    dtype: Annotated[str, about("number format of the cache; - if it has none")] = of(
        "word", "f16", "{}", "Number format of K and V.", sized=True
    )
    scale: Annotated[str, about("number format of the scales, if the dtype has scales")] = of(
        "word",
        "f32",
        "{} scales",
        "Number format of the scales, for formats that have them.",
        within="dtype",
        sized=True,
    )
    isa: Annotated[str, about("instruction set")] = of(
        "word",
        "best",
        "{}",
        "Instruction set to use: a tier such as avx2 or neon.",
    )
    shape: Annotated[Shape, about("geometry of the model, and how full its cache is")] = nested()
    residency: Annotated[
        str,
        about(
            "hot: one slice again and again; rotate: the slices in turn; evicted: caches flushed"
            " before a pass"
        ),
    ] = of(
        "word",
        "rotate",
        "{}",
        "hot: one layer again and again; rotate: all in turn; evicted: caches are flushed first.",
        words=("hot", "rotate", "evicted"),
    )
    schedule: Annotated[
        str,
        about("order of rows and prefetches that was asked for; auto: the fastest, as measured"),
    ] = of(
        "word",
        AUTO,
        "{}",
        "How rows are read and prefetched; auto: the fastest that was measured.",
        within="op",
        walked=True,
    )
    pad: Annotated[
        Count | None, about("bytes of padding after each head's plane; null: the default")
    ] = of(
        "count from 0",
        None,
        "pad={}",
        "Bytes of padding after each head. [default: what makes it an odd number of cache lines]",
        sized=True,
    )
    deterministic: Annotated[
        bool, about("whether the work is split by the shape alone, whatever the threads")
    ] = of(
        "flag",
        False,
        "deterministic",
        "Give the same bits with any number of threads.",
        within="op",
        walked=True,
    )
    pages: Annotated[str, about("kind of pages that was asked for: base, thp or huge")] = of(
        "word", "thp", "{}", "Memory pages to ask for: base, thp or huge."
    )
    cpus: Annotated[Cpus, about("the CPU of each thread")] = of(
        "cpus",
        None,
        "CPUs {}",
        f"CPUs to run on: a list such as 0-3,8; or {', '.join(PLACES)}.",
        within="threads",
    )
    memory: Annotated[
        str,
        about(
            "where its memory lies: local, with the threads; interleave, over all nodes; or one"
            " node"
        ),
    ] = of(
        "memory",
        LOCAL,
        "memory {}",
        "NUMA nodes of the memory: local, with the threads; interleave, over all; node0; or nodes,"
        " each in turn.",
        later=True,
    )
    between: Annotated[
        Count,
        about(
            "bytes of memory read before each pass, untimed; in a step after each layer, timed:"
            " the weights"
        ),
    ] = of(
        "between",
        0,
        "{} between",
        "Memory to read before each pass, untimed: bytes such as 64M, a share of a cache such as"
        " 0.5xL3, or model:q4_0, the weights of one layer of the model in that format. In a step it"
        " is read after each layer, and timed.",
        later=True,
    )
    engine: Annotated[
        str, about("whose kernel it is: kvbench's, or the engine's that ours is timed beside")
    ] = of(
        "word", OURS, "{}", "Whose kernel it is; kvbench peers lists them.", within="op", later=True
    )
    v_dtype: Annotated[str, about("number format of V if it differs from K's; else empty")] = of(
        "word", "", within="dtype", axis=False, column=None, later=True
    )
    k_scale: Annotated[
        str,
        about("what shares a scale of K, if the dtype has scales: a token's row, or a channel"),
    ] = of(
        "word",
        TOKEN,
        "K by {}",
        "What shares a scale of K, in formats with scales: token, each row of a head; channel, each"
        " column of a head's rows, with scales given when the cache is made.",
        words=K_SCALES,
        within="dtype",
        sized=True,
        later=True,
    )

    chase: Annotated[
        str,
        about(
            "where a thread chases pointers beside it: none; node, on a free core of its NUMA"
            " node; remote, on another node; sibling, on an SMT sibling of one of its cores"
        ),
    ] = of(
        "word",
        NONE,
        "chased on {}",
        "Measure the latency of memory beside the point: one more thread chases pointers, on a free"
        " core of its NUMA node (node), of another node (remote), or on an SMT sibling of one of"
        " its cores (sibling).",
        words=CHASES,
        later=True,
    )

    @property
    def kv_dtype(self) -> str:
        """The dtype of K and V, as one word."""
        return together(self.dtype, self.v_dtype or self.dtype)

    @property
    def streamed(self) -> int:
        """Bytes that are read before each pass, untimed. A step has none: its reads are timed parts
        of it.
        """
        return 0 if self.op == STEP else self.between

    @property
    def words(self) -> tuple[str, ...]:
        """Op, variant, layout, dtype and isa of its kernel."""
        variant = self.variant if self.engine == OURS else self.engine
        return self.op, variant, self.layout, self.kv_dtype, self.isa

    @property
    def name(self) -> str:
        """All of its fields in one word. Two runs are joined by this name."""
        s = self.shape
        return "/".join(
            (
                self.kernel,
                f"b{s.batch}.q{s.q_heads}.kv{s.kv_heads}.d{s.head_dim}",
                f"ctx{s.context}.cap{s.capacity}.win{s.window}.layers{s.layers}{_later(s, SHAPE)}",
                f"cpu{cpu_text(self.cpus)}.{self.pages}.{self.residency}",
                f"{self.schedule}.{self.scale}.{self.inner}.block{self.block_tokens}",
                f"order{_word(self.order)}.pad{_word(self.pad)}"
                f".det{int(self.deterministic)}{_later(self, POINT)}",
            )
        )


def _later(owner: Any, fields: tuple[Field, ...]) -> str:
    """The values that are not the default, of fields that the first names did not have."""
    values = ((field, getattr(owner, field.name)) for field in fields if field.later)
    return "".join(
        f".{field.name}{_word(value)}" for field, value in values if value != field.default
    )


def _word(value: Any) -> str:
    if isinstance(value, str):
        return lengths_word(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "-" if value is None else str(int(value)) if isinstance(value, bool) else str(value)


POINT, SHAPE = declared(Point), declared(Shape)
_BESIDE = {  # axes and columns beside the fields of a point, each placed before one of them
    "batch": Field(
        "model",
        "word",
        about="A model of suites/models.toml. Options for its heads override it.",
        column=None,
    ),
    "head_dim": Field("group", "count", "query heads on a KV head", axis=False),
    "cpus": Field(
        "threads",
        "threads",
        "how many",
        "all",
        "{}",
        "A number; cores of a domain (one L3), node or socket; all, all+smt; or powers: a series.",
    ),
}


def _all() -> Iterator[Field]:
    place = [field.name for field in POINT].index("residency")
    for field in (*POINT[:place], *SHAPE, *POINT[place:]):
        if field.name in _BESIDE:
            yield _BESIDE[field.name]
        yield field


FIELDS = tuple(_all())
DEFAULTS = {field.name: field.default for field in FIELDS}
# the fields of a shape with plain scores: no sinks, cap or slopes, and no tokens beside the window
PLAIN_SCORES: dict[str, Any] = {
    name: DEFAULTS[name] for name in ("sinks", "softcap", "alibi", "kept")
}
MODEL_SAYS = tuple(field.name for field in FIELDS if field.of_model)  # the model gives these


@dataclass(frozen=True, slots=True)
class Probe(Visited):
    """A measurement of the machine alone, without a cache. `bytes`: all buffers that a pass walks,
    together.
    """

    op: Annotated[str, about("read, write, copy, flops, latency, clock, ...")]
    isa: Annotated[str, about("instruction set")]
    cpus: Annotated[Cpus, about("the CPU of each thread")]
    pages: Annotated[str, about("kind of pages that was asked for")]
    bytes: Annotated[
        Count, about("bytes: all buffers that a pass walks, together; 0 if it walks none")
    ]

    @property
    def words(self) -> tuple[str, ...]:
        return self.op, "-", "-", "-", self.isa

    @property
    def name(self) -> str:
        where = f"cpu{cpu_text(self.cpus)}.{self.pages}"
        return f"{self.kernel}/bytes{self.bytes}/{where}"

"""What is measured: one cell of a sweep. Each field of a point is declared here, once; the order is
that of tables, of short names, and of a suite's product.
"""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from kvbench.model.annotated import Count, Cpus, Lengths, Number, Size, about
from kvbench.model.field import Field, declared, nested, of
from kvbench.model.hardware import PLACES, kernel_id
from kvbench.model.masks import CHAIN, MASKS
from kvbench.model.planes import together
from kvbench.model.scores import NONE, SINKS
from kvbench.units import cpu_text

FLOPS, DOT8, DOT16 = "flops", "dot8", "dot16"  # multiply-adds; products of bytes, of bf16
COMPUTE = (FLOPS, DOT8, DOT16)  # probes of instructions that stay in registers
AUTO = "auto"  # the schedule that a measurement chooses, or the library
LOCAL, INTERLEAVE = "local", "interleave"  # where memory lies
ONE_TOKEN = ("append", "logits")  # ops whose pass is of one token of each sequence
STEP = "step"  # the op of a whole step: for every layer append, then decode, then weights
ATTENDS = ("decode", STEP)  # ops that answer queries
BETWEEN = (*ATTENDS, "append")  # ops between whose passes, or layers, other bytes are read
EVEN, RAGGED, LISTED = "even", "ragged", "listed"  # lengths of a batch's sequences
VOCABULARY = 32_000  # logits of a token, where nobody says how many
OURS = "kvbench"  # the engine
TOKEN, CHANNEL = "token", "channel"  # what shares a scale of K
K_SCALES = (TOKEN, CHANNEL)
OWN = "own"  # in a duel: what is chosen for each side
HEADS = ("q_heads", "kv_heads", "head_dim")  # of a Shape: what tells models apart


@dataclass(frozen=True, slots=True)
class Shape:
    """One decode step. Every sequence holds `context` tokens, or as `lengths` says no more than
    that; window 0 attends to all of them.
    """

    batch: Annotated[Size, about("sequences")] = of(
        "count", 1, "batch={}", "Sequences in the batch.", usual=True
    )
    q_heads: Annotated[Size, about("query heads")] = of(
        "count", None, "q={}", "Query heads.", usual=True
    )
    kv_heads: Annotated[Size, about("KV heads")] = of(
        "count", None, "kv={}", "KV heads.", usual=True
    )
    head_dim: Annotated[Size, about("elements of a row")] = of(
        "count", None, "d={}", "Elements of a row of K or V.", usual=True
    )
    context: Annotated[Size, about("tokens that every sequence holds, or at most")] = of(
        "context", 4096, "t={}", "Tokens in every sequence, such as 8k."
    )
    capacity: Annotated[Size, about("tokens that there is room for")] = of(
        "count",
        None,
        "cap={}",
        "Room of the cache, in tokens. [default: the context, of repack twice that]",
    )
    window: Annotated[Count, about("tokens attended to; 0: all")] = of(
        "window",
        0,
        "win={}",
        "Attend only to this many of the last tokens; 0: to all.",
        within="op",
    )
    layers: Annotated[Count, about("slices in rotation; 0: by the residency")] = of(
        "layers",
        0,
        "layers={}",
        "Layers to walk in turn; 0: more than the caches hold (1 if hot or evicted); model: whole"
        " sets of its layers.",
    )
    vocabulary: Annotated[Count, about("logits of a token; 0 where the op has none")] = of(
        "count from 0",
        0,
        "{} logits",
        f"Logits of a token, of the op logits. [default: the model's, else {VOCABULARY}]",
        later=True,
    )

    full_every: Annotated[
        Count,
        about(
            "of so many layers the last attends to all tokens, the others to the window; 0: none"
        ),
    ] = of(
        "full_every",
        0,
        "full={}",
        "Of a step: of every so many layers the last attends to all tokens, the others to the"
        " window; 0: none; model: as the model has it.",
        later=True,
    )
    lengths: Annotated[
        Lengths, about("of the sequences: even, drawn by a seed, or those that a file lists")
    ] = of(
        "lengths",
        EVEN,
        "lengths {}",
        "Lengths of the sequences: even, all the context; ragged:SEED, drawn from 1 to the context,"
        " the first of them the context; trace:SEED, drawn from real requests, which decide the"
        " context (trace-mean: all the mean of these, trace-longest: all the longest); or a file of"
        " numbers, one for each sequence.",
        within="op",
        later=True,
    )

    q_len: Annotated[Size, about("queries of each sequence in a step, for its newest tokens")] = of(
        "queries",
        1,
        "{}",
        "Queries of each sequence in a step, for its newest tokens: 1 to 32, as speculative"
        " decoding has them.",
        within="op",
        later=True,
    )
    mask: Annotated[str, about("which of the newest tokens each query attends to")] = of(
        "word",
        CHAIN,
        "{}",
        "Which of as many newest tokens each query attends to: chain, those up to its own; block,"
        " all; tree, its ancestors in a binary tree.",
        words=MASKS,
        within="op",
        later=True,
    )
    v_dim: Annotated[Count, about("elements of a row of V; 0: those of a row of K")] = of(
        "count from 0",
        0,
        "v={}",
        "Elements of a row of V, where they are not head_dim. [default: the model's, else 0]",
        later=True,
        of_model=True,
    )
    sinks: Annotated[str, about("heads: every query head has a sink; none")] = of(
        "word",
        NONE,
        "sinks",
        "heads: every query head has a sink, a score of no token that takes its share of the"
        " weights; none. [default: the model's, else none]",
        words=SINKS,
        within="op",
        later=True,
        of_model=True,
    )
    softcap: Annotated[Number, about("absolute: c of c * tanh(score / c); 0: no cap")] = of(
        "number",
        0.0,
        "cap {:g}",
        "Cap of the scores: c * tanh(score / c); 0: none. [default: the model's, else 0]",
        within="op",
        later=True,
        of_model=True,
    )
    alibi: Annotated[
        Number, about("absolute: largest bias of ALiBi, of which heads' slopes are made; 0: none")
    ] = of(
        "number",
        0.0,
        "alibi {:g}",
        "Largest bias of ALiBi, from which query heads have their slopes: 8 most often; 0: none.",
        within="op",
        later=True,
    )
    kept: Annotated[Count, about("first tokens that are attended to beside the window")] = of(
        "count from 0",
        0,
        "kept={}",
        "With a window: attend to so many of the first tokens as well.",
        within="op",
        later=True,
    )

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads

    @property
    def query_rows(self) -> int:
        """Of a sequence, that attend to the rows of one KV head."""
        return self.q_len * self.group

    @property
    def width_of_v(self) -> int:
        """Elements of a row of V, and of an output."""
        return self.v_dim or self.head_dim

    @property
    def parts_of_flops(self) -> tuple[float, float]:
        """Of K and of V, in those of attention."""
        of_k = self.head_dim / (self.head_dim + self.width_of_v)
        return of_k, 1 - of_k

    @property
    def reach(self) -> int:
        """Tokens that a sequence's queries attend to together, at most; 0: all."""
        return self.window and self.kept + self.window + self.q_len - 1

    @property
    def attended(self) -> int:
        """Tokens that one query attends to, at most."""
        return min(self.context, self.window + self.kept) if self.window else self.context

    @property
    def held(self) -> tuple[int, ...]:
        """Tokens of each sequence. Python promises that random() gives the same for a seed."""
        kind, _, told = self.lengths.partition(":")
        if kind == LISTED:
            return tuple(map(int, told.split(",")))
        if kind == EVEN:
            return (self.context,) * self.batch
        drawn = random.Random(int(told))
        others = (1 + int(drawn.random() * self.context) for _ in range(self.batch - 1))
        return self.context, *others


class Visited:
    """A Point, a Probe or a Contrast: what a launch visits. As JSON it says by its fields which of
    them it is.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # what all of them have, some as fields

        @property
        def cpus(self) -> tuple[int, ...]:
            """One for each thread."""

        @property
        def isa(self) -> str:
            """Tier of the instruction set."""

        @property
        def words(self) -> tuple[str, ...]:
            """Of its kernel."""

        @property
        def name(self) -> str:
            """All that it is, in one word."""

    @property
    def threads(self) -> int:
        return len(self.cpus)

    @property
    def kernel(self) -> str:
        return kernel_id(*self.words)


@dataclass(frozen=True, slots=True)
class Point(Visited):
    """What is measured: a kernel on a shape, on these CPUs (one thread each), pages, residency and
    schedule.
    """

    op: Annotated[str, about("what it does: decode, append, bulk, repack, ...")] = of(
        "word",
        "decode",
        "{}",
        "What the kernel does.",
        words=("decode", "append", "bulk", "repack", "transpose", "logits", STEP),
    )
    variant: Annotated[str, about("the way of doing it; - where there is but one")] = of(
        "word",
        None,
        "{}",
        "How the kernel does it; see kvbench list kernels. [default: the first]",
        usual=True,
    )
    layout: Annotated[str, about("of the cache; - where there is none")] = of(
        "word", "head", "{}", "Layout of the cache; see kvbench list kernels.", sized=True
    )
    inner: Annotated[str, about("order inside a block of a paged cache")] = of(
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
        Count | None, about("seed of the order of a paged cache's blocks; null: in order")
    ] = of(
        "word",
        "shuffled",
        "order={}",
        "Order of the blocks of a paged cache.",
        words=("sequential", "shuffled"),
        within="layout",
    )
    dtype: Annotated[str, about("number format of the cache; - where there is none")] = of(
        "word", "f16", "{}", "Number format of K and V.", sized=True
    )
    scale: Annotated[str, about("number format of the scales, where the dtype has any")] = of(
        "word",
        "f32",
        "{} scales",
        "Number format of the scales, for formats that have them.",
        within="dtype",
        sized=True,
    )
    isa: Annotated[str, about("tier of the instruction set")] = of(
        "word",
        "best",
        "{}",
        "Instruction set to use: a tier such as avx2 or neon.",
    )
    shape: Annotated[Shape, about("geometry of the model and fill of its cache")] = nested()
    residency: Annotated[
        str,
        about(
            "hot: one slice alone; rotate: the slices in turn; evicted: caches swept before a pass"
        ),
    ] = of(
        "word",
        "rotate",
        "{}",
        "hot: one layer again and again; rotate: all in turn; evicted: caches are flushed first.",
        words=("hot", "rotate", "evicted"),
    )
    schedule: Annotated[
        str, about("order of rows and prefetches that was asked for; auto: the library's choice")
    ] = of(
        "word",
        AUTO,
        "{}",
        "How rows are read and prefetched; auto: the fastest that was measured.",
        within="op",
        walked=True,
    )
    pad: Annotated[Count | None, about("bytes behind each head's plane; null: the default")] = of(
        "count from 0",
        None,
        "pad={}",
        "Bytes of padding after each head. [default: what makes it an odd number of cache lines]",
        sized=True,
    )
    deterministic: Annotated[bool, about("whether the work is split by the shape alone")] = of(
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
            "where its pages lie: local, with the threads; interleave, over all nodes; or a node"
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
            "bytes of memory read before each pass, untimed; of a step, timed, after each layer: "
            "the weights"
        ),
    ] = of(
        "between",
        0,
        "{} between",
        "Memory to read before each pass, untimed: bytes such as 64M, a share of a cache such as"
        " 0.5xL3, or model:q4_0, the weights of one of the model's layers in that format. Of a"
        " step it is read after each layer, and timed.",
        later=True,
    )
    engine: Annotated[
        str, about("whose kernel it is: kvbench's, or that of a peer, beside which ours is timed")
    ] = of(
        "word", OURS, "{}", "Whose kernel it is; kvbench peers lists them.", within="op", later=True
    )
    v_dtype: Annotated[str, about("number format of V, where K has another; else empty")] = of(
        "word", "", within="dtype", axis=False, column=None, later=True
    )
    k_scale: Annotated[
        str,
        about("what shares a scale of K, where the dtype has scales: a token's row, or a channel"),
    ] = of(
        "word",
        TOKEN,
        "K by {}",
        "What shares a scale of K, of formats that have scales: token, each row of a head; channel,"
        " each element of all rows of a head, given when the cache is made.",
        words=K_SCALES,
        within="dtype",
        sized=True,
        later=True,
    )

    @property
    def kv_dtype(self) -> str:
        """The dtype of K and V, as one word."""
        return together(self.dtype, self.v_dtype or self.dtype)

    @property
    def streamed(self) -> int:
        """Bytes that are read before each pass, untimed: those of a step are part of it."""
        return 0 if self.op == STEP else self.between

    @property
    def words(self) -> tuple[str, ...]:
        """Of its kernel."""
        variant = self.variant if self.engine == OURS else self.engine
        return self.op, variant, self.layout, self.kv_dtype, self.isa

    @property
    def name(self) -> str:
        """All of it in one word: what two runs are joined by."""
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
    """What the first names of points did not have, where it is not the default."""
    values = ((field, getattr(owner, field.name)) for field in fields if field.later)
    return "".join(
        f".{field.name}{_word(value)}" for field, value in values if value != field.default
    )


def lengths_word(lengths: str) -> str:
    """As tables and names say it: of those that a file lists, a digest of them."""
    kind, _, told = lengths.partition(":")
    if kind != LISTED:
        return lengths
    return f"{kind}:{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def _word(value: Any) -> str:
    if isinstance(value, str):
        return lengths_word(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "-" if value is None else str(int(value)) if isinstance(value, bool) else str(value)


POINT, SHAPE = declared(Point), declared(Shape)
_BESIDE = {  # what is asked or said of a point beside its own fields, each before one of them
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
# a shape whose scores are weighed as they are, of all tokens of its window and of no others
PLAIN_SCORES: dict[str, Any] = {
    name: DEFAULTS[name] for name in ("sinks", "softcap", "alibi", "kept")
}
MODEL_SAYS = tuple(field.name for field in FIELDS if field.of_model)  # beside its heads


@dataclass(frozen=True, slots=True)
class Probe(Visited):
    """A point without a cache: the machine alone. `bytes` are those of all buffers that a pass
    walks, together.
    """

    op: Annotated[str, about("read, write, copy, flops, latency, clock, ...")]
    isa: Annotated[str, about("tier of the instruction set")]
    cpus: Annotated[Cpus, about("the CPU of each thread")]
    pages: Annotated[str, about("kind of pages that was asked for")]
    bytes: Annotated[
        Count, about("bytes: of all buffers that a pass walks, together; 0 where none is")
    ]

    @property
    def words(self) -> tuple[str, ...]:
        return self.op, "-", "-", "-", self.isa

    @property
    def name(self) -> str:
        where = f"cpu{cpu_text(self.cpus)}.{self.pages}"
        return f"{self.kernel}/bytes{self.bytes}/{where}"

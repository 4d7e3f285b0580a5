"""What kvbench explain finds for a model on a machine. Counts are of bytes unless a name says
otherwise.
"""

from dataclasses import dataclass
from typing import Annotated

from kvbench.model.annotated import Printed, about
from kvbench.model.size import Decoder
from kvbench.model.weights import Weights

READS, ARITHMETIC = "reads", "arithmetic"
YES, IF, NO, OPEN = "yes", "if", "no", "open"
PAYS = (YES, IF, NO, OPEN)


@dataclass(frozen=True, slots=True)
class Format:
    """A number format of the cache on this machine. Contexts are tokens of every sequence."""

    dtype: Annotated[str, about("number format of K and V")]
    gbps: Annotated[
        float | None, about("GB/s: of that decode with its query and output; null if unknown")
    ]
    low: Annotated[float | None, about("GB/s: lower end of its interval")]
    high: Annotated[float | None, about("GB/s: upper end of its interval")]
    decode: Annotated[
        str,
        about("the point whose decode was measured; empty: the best read, which no decode exceeds"),
    ]
    group: Annotated[int | None, about("query heads on a KV head of that point; null: none")]
    overtakes: Annotated[
        int | None, about("tokens: from where a step reads more cache than weights; null: nowhere")
    ]
    pays: Annotated[
        int | None,
        about("tokens: from where it gives 5 % more than the 16 bits beside it; null: nowhere"),
    ]


@dataclass(frozen=True, slots=True)
class Expected:
    """One format at one context."""

    dtype: Annotated[str, about("number format of K and V")]
    bytes: Annotated[int, about("bytes: of the cache that a step reads, all sequences")]
    most: Annotated[
        float | None, about("tokens per second: of the batch, if a step read all as the best read")
    ]
    tokens: Annotated[
        float | None, about("tokens per second: with the cache at its format's own rate")
    ]
    seconds: Annotated[float | None, about("seconds: of a step for the cache alone, at that rate")]
    users: Annotated[
        int | None, about("sequences that fit memory beside the weights; null if unknown")
    ]


@dataclass(frozen=True, slots=True)
class Row:
    context: Annotated[int, about("tokens of every sequence")]
    slice_bytes: Annotated[
        int, about("bytes: of a layer that attends to most, all sequences, padded")
    ]
    level: Annotated[str, about("where that lies: L1, L2, L3, DRAM, mixed, unknown")]
    cells: Annotated[tuple[Expected, ...], about("by number format")]
    best: Annotated[
        str,
        about(
            "the fastest format that was measured; of those level with it the one that rounds least"
        ),
    ]

    def of(self, dtype: str) -> Expected:
        return next(cell for cell in self.cells if cell.dtype == dtype)


@dataclass(frozen=True, slots=True)
class Half:
    """A number format of a pair, for both K and V; or the pair."""

    dtype: Annotated[str, about("number format of K and V; of two, K + V")]
    bytes_per_token: Annotated[int, about("bytes: of a token of one sequence in all layers")]
    error: Annotated[
        float, about("share: by which it changes the output, root mean square; of normal keys")
    ]
    error_heavy: Annotated[float, about("share: the same, of keys with some large elements")]
    alone: Annotated[
        float | None, about("tokens per second: of the batch, of the cache alone; null if unknown")
    ]
    tokens: Annotated[
        float | None, about("tokens per second: of the batch, with the weights; null if unknown")
    ]
    decode: Annotated[
        str, about("the point whose decode was measured; empty: at most, by the best read")
    ]


@dataclass(frozen=True, slots=True)
class Beside:
    """A pair of number formats beside its halves."""

    pair: Annotated[str, about("K + V")]
    context: Annotated[int, about("tokens of every sequence")]
    formats: Annotated[tuple[Half, ...], about("K's for both, V's for both, and the pair")]


@dataclass(frozen=True, slots=True)
class Measured:
    """A rate that somebody measured, beside what memory allows. Seconds are of a step."""

    tokens: Annotated[float, about("tokens per second: of the batch, as given")]
    context: Annotated[int, about("tokens of every sequence, as given")]
    share: Annotated[float, about("share of what the best read allows")]
    missing: Annotated[float, about("seconds: more than reading all of it at best takes")]
    cache: Annotated[float, about("seconds: that reading the cache at best takes")]
    dtype: Annotated[str, about("number format whose decode is the fastest there")]
    low: Annotated[
        float,
        about("tokens per second: with that decode, if the cache took no longer than reading it"),
    ]
    high: Annotated[
        float, about("tokens per second: with that decode, if all that is missing is the cache's")
    ]


@dataclass(frozen=True, slots=True)
class Served:
    """One format at one context on a server that was not measured."""

    context: Annotated[int, about("tokens of every sequence")]
    dtype: Annotated[str, about("number format of K and V")]
    cache: Annotated[float, about("tokens per second: of the batch, of the cache alone")]
    tokens: Annotated[
        float, about("tokens per second: of the batch, with the weights where they are known")
    ]
    limit: Annotated[str, about("what limits reading the cache", "memory", "core")]


@dataclass(frozen=True, slots=True)
class Server:
    """A model: the cache takes the longer of its bytes over the bandwidth and its core time over
    the cores; weights, where they are known, take their bytes over the bandwidth.
    """

    cores: Annotated[int, about("as given")]
    bandwidth: Annotated[float, about("GB/s: of its memory, as given")]
    cells: Annotated[tuple[Served, ...], about("by context and number format")]
    lacking: Annotated[tuple[str, ...], about("formats whose core speed was not measured")]


@dataclass(frozen=True, slots=True)
class Attention:
    """An engine's own attention over one layer of one sequence: a line through the times that a
    run has of it, over the context.
    """

    dtype: Annotated[str, about("number format of K and V")]
    layout: Annotated[str, about("in which the engine keeps its cache")]
    pages: Annotated[str, about("of memory: what was asked for where it was timed")]
    contexts: Annotated[tuple[int, ...], about("tokens: at which the run timed it")]
    heads: Annotated[
        tuple[int, int, int], about("query heads, KV heads and elements of a row that were timed")
    ]
    scale: Annotated[
        float, about("ratio: bytes of a token in a layer of this model over those that were timed")
    ]
    start: Annotated[float, about("seconds: of a layer, where the line begins, at no token")]
    slope: Annotated[
        float, about("seconds: of a layer, that it takes longer for each 1,000 tokens")
    ]
    off: Annotated[float, about("share: how far a time of the run lies from the line at most")]


@dataclass(frozen=True, slots=True)
class Held:
    """What an engine reached, and what its step is made of. Shares are of that step."""

    tokens: Annotated[float, about("tokens per second: as given")]
    step: Annotated[float, about("seconds: of a step")]
    weights: Annotated[float, about("share: reading the weights")]
    attention: Annotated[float, about("share: the engine's attention, as it was timed alone")]
    rest: Annotated[float, about("share: everything else; below 0 where the parts take longer")]
    left: Annotated[float, about("seconds: everything else, or by how much the parts take longer")]
    over: Annotated[bool, about("whether the parts alone take longer than the step")]
    off: Annotated[float, about("share: of what was reached, that the prediction is above it")]
    far: Annotated[bool, about("whether that is more than a prediction may be off")]
    part: Annotated[
        str,
        about(
            "which part is off more, by contexts of this format: what grows with them, or what does"
            " not; empty where one context alone was measured",
            *("attention", "other", ""),
        ),
    ]


@dataclass(frozen=True, slots=True)
class Predicted:
    """A step of an engine at one context: the weights, then its attention in every layer."""

    context: Annotated[int, about("tokens")]
    dtype: Annotated[str, about("number format of K and V")]
    level: Annotated[str, about("where weights and cache lie: L1, L2, L3, DRAM, mixed, unknown")]
    reads: Annotated[str, about("of which level the plain reads are that weights are divided by")]
    weights: Annotated[float, about("seconds: reading the weights")]
    attention: Annotated[float, about("seconds: the engine's attention in all layers")]
    tokens: Annotated[float, about("tokens per second: predicted")]
    low: Annotated[float, about("tokens per second: with the slower ends of both")]
    high: Annotated[float, about("tokens per second: with the faster ends of both")]
    outside: Annotated[bool, about("whether the run timed no context as short, or none as long")]
    held: Annotated[Held | None, about("what --measured gave there; else null")]


@dataclass(frozen=True, slots=True)
class Apart:
    """Steps that were measured at several contexts, as a line over the context, less the line of
    those predicted there.
    """

    dtype: Annotated[str, about("number format of K and V")]
    stays: Annotated[float, about("seconds: that a step takes longer, whatever the context")]
    grows: Annotated[float, about("seconds: that it takes longer for each 1,000 tokens")]


@dataclass(frozen=True, slots=True)
class Engine:
    """Tokens per second of an engine, predicted from its own attention and the model's weights."""

    name: Annotated[str, about("as kvbench peers calls it")]
    most: Annotated[float, about("share: by which a prediction may be off")]
    attention: Annotated[tuple[Attention, ...], about("by number format")]
    rows: Annotated[tuple[Predicted, ...], about("by number format and context")]
    apart: Annotated[tuple[Apart, ...], about("of formats that were measured at several contexts")]


@dataclass(frozen=True, slots=True)
class Range:
    """A number that is known within bounds."""

    value: Annotated[
        float | None, about("in the unit of its key: as measured; null: bounds alone are known")
    ]
    low: Annotated[float, about("in the unit of its key: at least")]
    high: Annotated[float, about("in the unit of its key: at most")]


@dataclass(frozen=True, slots=True)
class Queries:
    """How much longer attention takes for several queries of a step than for one. It takes no less
    than for fewer, no more than for more, and no more than as many steps.
    """

    queries: Annotated[
        int | None, about("that `times` are of: as many, or the next more that were timed")
    ]
    times: Annotated[Range, about("ratio: its time for the queries of the step over that for one")]
    gbps: Annotated[
        float | None, about("GB/s: of K, V and scales with one query; null: none was timed")
    ]
    kernel: Annotated[str, about("variant and layout that were timed; empty: none")]
    group: Annotated[int | None, about("query heads on a KV head there; null: none")]
    context: Annotated[int | None, about("tokens of every sequence there; null: none")]


@dataclass(frozen=True, slots=True)
class Drafted:
    """A step that verifies drafts, beside a plain one, at one context. `tokens`, `times` and
    `pays` include what drafting costs, if that is given.
    """

    context: Annotated[int, about("tokens of every sequence")]
    attention: Annotated[Queries, about("of the step that verifies")]
    plain: Annotated[Range, about("seconds: of a plain step")]
    step: Annotated[Range, about("seconds: of a step that verifies, without drafting")]
    cost: Annotated[
        float | None, about("seconds: of drafting for a step, at most; null: not given")
    ]
    before: Annotated[Range, about("tokens per second: of the batch, by plain steps")]
    tokens: Annotated[Range, about("tokens per second: of the batch, with drafts")]
    times: Annotated[Range, about("ratio: tokens per second with drafts over those without")]
    spare: Annotated[
        Range, about("seconds: that drafting for a step may cost and pay; below 0: it cannot pay")
    ]
    share: Annotated[
        float, about("share of a plain step: that drafting may cost and pay, at least")
    ]
    pays: Annotated[
        str, about("whether it pays; if: where drafting costs less than the low of `spare`", *PAYS)
    ]


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring contexts with one verdict."""

    pays: Annotated[str, about("as at each of them", *PAYS)]
    first: Annotated[int, about("tokens: the shortest of them")]
    last: Annotated[int, about("tokens: the longest of them")]
    spare: Annotated[float, about("seconds: that drafting may cost at each of them, at least")]


@dataclass(frozen=True, slots=True)
class DraftedFormat:
    """Drafting with one format of the cache."""

    dtype: Annotated[str, about("number format of K and V")]
    rows: Annotated[tuple[Drafted, ...], about("by context")]
    spans: Annotated[tuple[Span, ...], about("of contexts, from the shortest on")]


@dataclass(frozen=True, slots=True)
class Drafting:
    """Tokens that are guessed, then verified together in one step, with the newest token."""

    drafts: Annotated[int, about("tokens of every sequence that are drafted for a step")]
    queries: Annotated[int, about("of a sequence in a step that verifies: one more than drafts")]
    accept: Annotated[
        tuple[float, ...], about("share of the steps that accept a draft, by its place")
    ]
    powers: Annotated[bool, about("whether one share was given, of which these are powers")]
    yields: Annotated[
        float, about("tokens: of each sequence that a step gives on average; the first is no draft")
    ]
    read: Annotated[int, about("bytes: of weights that a step that verifies reads")]
    parameters: Annotated[int, about("of the weights: that each token is multiplied with")]
    reading: Annotated[float, about("seconds: reading these weights")]
    float32: Annotated[
        float | None, about("seconds: multiplying with them in float32; null: no peak is known")
    ]
    narrow: Annotated[
        float | None,
        about("seconds: multiplying with them as bytes or bf16, at best; null: no peak is known"),
    ]
    limit: Annotated[
        str,
        about(
            "what the weights take: the time to read them; or, in float32, that to multiply, which"
            " is longer: then ranges go from `narrow` or reading to float32",
            READS,
            ARITHMETIC,
        ),
    ]
    formats: Annotated[tuple[DraftedFormat, ...], about("by number format of the cache")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained(Printed):
    """What limits a model's decoding here, by arithmetic and by what the machine's own kernels
    reached.
    """

    model: Annotated[str, about("its name")]
    source: Annotated[str, about("where its geometry is from")]
    max_context: Annotated[int, about("tokens: its longest context")]
    decoder: Annotated[Decoder, about("its geometry, at that context")]
    weights: Annotated[Weights | None, about("of the model; null if unknown")]
    read: Annotated[int | None, about("bytes: of weights that a step reads; null if unknown")]
    experts: Annotated[
        float,
        about("ratio: experts of a layer that a step meets, on average; 0: no mixture of them"),
    ]
    why: Annotated[str, about("why the weights are unknown; else empty")]
    machine: Annotated[str, about("this machine, or the run that was named")]
    threads: Annotated[int, about("how many read")]
    gbps: Annotated[float | None, about("GB/s: plain reads of memory; null if unknown")]
    low: Annotated[float | None, about("GB/s: lower end of its interval")]
    high: Annotated[float | None, about("GB/s: upper end of its interval")]
    best_gbps: Annotated[
        float | None, about("GB/s: reads of memory in their best form; null if unknown")
    ]
    gflops: Annotated[float | None, about("GFLOP/s: of the multiply-adds; null if unknown")]
    memory: Annotated[int | None, about("bytes: of the machine; null if unknown")]
    base: Annotated[str, about("the 16 bits that other formats are held against")]
    l3: Annotated[
        int | None,
        about("tokens: up to which a layer's slice in `base` fits L3; null: no L3 is known"),
    ]
    formats: Annotated[tuple[Format, ...], about("that are told of")]
    rows: Annotated[tuple[Row, ...], about("by context, in octaves")]
    measured: Annotated[Measured | None, about("what --measured gave; else null")]
    pairs: Annotated[
        tuple[Beside, ...], about("pairs that --dtype gave, each beside its halves")
    ] = ()
    lines: Annotated[tuple[str, ...], about("five, in plain words")] = ()
    server: Annotated[Server | None, about("what --cores and --bandwidth gave; else null")] = None
    engine: Annotated[Engine | None, about("what --engine gave; else null")] = None
    drafting: Annotated[Drafting | None, about("what --draft gave; else null")] = None

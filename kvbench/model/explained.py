"""What `kvbench explain` finds for a model on a machine. Counts are bytes unless a name says
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
        float | None,
        about("GB/s: of the measured decode, with its query and output; null if unknown"),
    ]
    low: Annotated[float | None, about("GB/s: lower end of its interval")]
    high: Annotated[float | None, about("GB/s: upper end of its interval")]
    decode: Annotated[
        str,
        about("the point whose decode was measured; empty: the best read is used, an upper limit"),
    ]
    group: Annotated[
        int | None, about("query heads per KV head of the measured point; null: none was measured")
    ]
    overtakes: Annotated[
        int | None,
        about("tokens: from this context on a step reads more cache than weights; null: never"),
    ]
    pays: Annotated[
        int | None,
        about("tokens: from this context on it is 5 % faster than the 16-bit format; null: never"),
    ]


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of one format at one context."""

    dtype: Annotated[str, about("number format of K and V")]
    bytes: Annotated[int, about("bytes: the part of the cache that a step reads, all sequences")]
    most: Annotated[
        float | None,
        about("tokens per second: of the batch, if a step read everything at the best read rate"),
    ]
    tokens: Annotated[
        float | None,
        about("tokens per second: of the batch, with the cache read at its format's own rate"),
    ]
    seconds: Annotated[
        float | None, about("seconds: for the cache alone in one step, at that rate")
    ]
    users: Annotated[
        int | None, about("sequences that fit in memory beside the weights; null if unknown")
    ]


@dataclass(frozen=True, slots=True)
class Row:
    context: Annotated[int, about("tokens of every sequence")]
    slice_bytes: Annotated[
        int,
        about(
            "bytes: one of the layers that attend to the most tokens, all sequences, with padding"
        ),
    ]
    level: Annotated[
        str, about("cache level that holds that slice: L1, L2, L3, DRAM, mixed, unknown")
    ]
    cells: Annotated[tuple[Expected, ...], about("by number format")]
    best: Annotated[
        str,
        about("the fastest measured format; if several are level, the one that rounds least"),
    ]

    def of(self, dtype: str) -> Expected:
        return next(cell for cell in self.cells if cell.dtype == dtype)


@dataclass(frozen=True, slots=True)
class Half:
    """A pair of number formats, or one of its two formats used for both K and V."""

    dtype: Annotated[str, about("number format of K and V; K + V for a pair")]
    bytes_per_token: Annotated[int, about("bytes: of one token of one sequence in all layers")]
    error: Annotated[
        float,
        about("share: root mean square error of the output, with keys from a normal distribution"),
    ]
    error_heavy: Annotated[
        float, about("share: the same error, with keys of which some elements are large")
    ]
    alone: Annotated[
        float | None,
        about("tokens per second: of the batch, reading the cache alone; null if unknown"),
    ]
    tokens: Annotated[
        float | None, about("tokens per second: of the batch, with the weights; null if unknown")
    ]
    decode: Annotated[
        str, about("the point whose decode was measured; empty: upper limit from the best read")
    ]


@dataclass(frozen=True, slots=True)
class Beside:
    """A pair of number formats beside its halves."""

    pair: Annotated[str, about("K + V")]
    context: Annotated[int, about("tokens of every sequence")]
    formats: Annotated[
        tuple[Half, ...], about("K's format for both, V's format for both, and the pair")
    ]


@dataclass(frozen=True, slots=True)
class Measured:
    """A rate that the user measured, compared with what memory allows. Seconds are per step."""

    tokens: Annotated[float, about("tokens per second: of the batch, as given")]
    context: Annotated[int, about("tokens of every sequence, as given")]
    share: Annotated[float, about("share of the rate that the best read allows")]
    missing: Annotated[float, about("seconds: beyond the time to read everything at the best rate")]
    cache: Annotated[float, about("seconds: to read the cache at the best rate")]
    dtype: Annotated[str, about("number format whose decode is the fastest at this context")]
    low: Annotated[
        float,
        about("tokens per second: with that decode, if the missing time is not the cache's"),
    ]
    high: Annotated[
        float, about("tokens per second: with that decode, if all the missing time is the cache's")
    ]


@dataclass(frozen=True, slots=True)
class Served:
    """One format at one context on a server that was not measured."""

    context: Annotated[int, about("tokens of every sequence")]
    dtype: Annotated[str, about("number format of K and V")]
    cache: Annotated[float, about("tokens per second: of the batch, reading the cache alone")]
    tokens: Annotated[
        float, about("tokens per second: of the batch, with the weights if they are known")
    ]
    limit: Annotated[str, about("what limits the reading of the cache", "memory", "core")]


@dataclass(frozen=True, slots=True)
class Server:
    """A simple model of a server that was not measured.

    The cache takes the longer of two times: its bytes over the bandwidth, and its core time over
    the cores. Weights take their bytes over the bandwidth, if they are known.
    """

    cores: Annotated[int, about("as given")]
    bandwidth: Annotated[float, about("GB/s: of its memory, as given")]
    cells: Annotated[tuple[Served, ...], about("by context and number format")]
    lacking: Annotated[tuple[str, ...], about("formats whose core speed was not measured")]


@dataclass(frozen=True, slots=True)
class Attention:
    """An engine's own attention over one layer of one sequence, at the contexts that a run timed.
    Between them the time is taken from a straight line.
    """

    dtype: Annotated[str, about("number format of K and V")]
    layout: Annotated[str, about("layout of the engine's cache")]
    pages: Annotated[str, about("kind of memory pages that was asked for")]
    contexts: Annotated[tuple[int, ...], about("tokens: the contexts that the run timed")]
    heads: Annotated[
        tuple[int, int, int], about("query heads, KV heads and elements of a row that were timed")
    ]
    scale: Annotated[
        float, about("ratio: bytes per token and layer of this model over those that were timed")
    ]
    seconds: Annotated[tuple[float, ...], about("seconds: of a layer at each of these contexts")]
    start: Annotated[float, about("seconds: at context 0, of a line fitted to these times")]
    slope: Annotated[float, about("seconds: that this line adds for each 1,000 tokens")]
    off: Annotated[float, about("share: largest distance of a measured time from this line")]


@dataclass(frozen=True, slots=True)
class Held:
    """What an engine reached, and the parts of its step. Shares are shares of that step."""

    tokens: Annotated[float, about("tokens per second: as given")]
    step: Annotated[float, about("seconds: of a step")]
    weights: Annotated[float, about("share: reading the weights")]
    attention: Annotated[float, about("share: the engine's attention, as timed alone")]
    rest: Annotated[
        float, about("share: everything else; below 0 if the parts take longer than the step")
    ]
    left: Annotated[float, about("seconds: everything else, or by how much the parts take longer")]
    over: Annotated[bool, about("whether the parts alone take longer than the step")]
    off: Annotated[float, about("share of the measured rate by which the prediction exceeds it")]
    far: Annotated[bool, about("whether the prediction is off by more than it may be")]
    part: Annotated[
        str,
        about(
            "the part of the prediction that is off more: attention grows with the context,"
            " other does not; empty if only one context was measured",
            *("attention", "other", ""),
        ),
    ]


@dataclass(frozen=True, slots=True)
class Predicted:
    """A step of an engine at one context: the weights, then its attention in every layer."""

    context: Annotated[int, about("tokens")]
    dtype: Annotated[str, about("number format of K and V")]
    level: Annotated[
        str, about("level that holds weights and cache: L1, L2, L3, DRAM, mixed, unknown")
    ]
    reads: Annotated[str, about("level of the plain reads whose rate the weights are divided by")]
    weights: Annotated[float, about("seconds: reading the weights")]
    attention: Annotated[float, about("seconds: the engine's attention in all layers")]
    tokens: Annotated[float, about("tokens per second: predicted")]
    low: Annotated[float, about("tokens per second: with the slower ends of both parts")]
    high: Annotated[float, about("tokens per second: with the faster ends of both parts")]
    outside: Annotated[
        bool, about("whether the context lies outside the contexts that the run timed")
    ]
    held: Annotated[Held | None, about("what --measured gave at this context; else null")]


@dataclass(frozen=True, slots=True)
class Apart:
    """How far measured steps are from predicted ones: the difference of two straight lines over the
    context.
    """

    dtype: Annotated[str, about("number format of K and V")]
    stays: Annotated[float, about("seconds: that a measured step takes longer at any context")]
    grows: Annotated[float, about("seconds: that it takes longer for each further 1,000 tokens")]


@dataclass(frozen=True, slots=True)
class Engine:
    """Tokens per second of an engine, predicted from its own attention and the model's weights."""

    name: Annotated[str, about("the engine's name in kvbench peers")]
    most: Annotated[float, about("share: by which a prediction may be off")]
    attention: Annotated[tuple[Attention, ...], about("by number format")]
    rows: Annotated[tuple[Predicted, ...], about("by number format and context")]
    apart: Annotated[tuple[Apart, ...], about("by format, where several contexts were measured")]


@dataclass(frozen=True, slots=True)
class Range:
    """A number that is known within limits."""

    value: Annotated[
        float | None,
        about("in the unit of its key: as measured; null if only the limits are known"),
    ]
    low: Annotated[float, about("in the unit of its key: at least")]
    high: Annotated[float, about("in the unit of its key: at most")]


@dataclass(frozen=True, slots=True)
class Queries:
    """How much longer attention takes for several queries in a step than for one.

    The ratio is at least that of fewer queries, at most that of more, and at most the number of
    queries.
    """

    queries: Annotated[
        int | None,
        about(
            "number of queries that `times` was timed with: this many, or the next larger number"
            " that was timed"
        ),
    ]
    times: Annotated[
        Range, about("ratio: attention time for the queries of the step over that for one query")
    ]
    gbps: Annotated[
        float | None, about("GB/s: of K, V and scales with one query; null if not timed")
    ]
    kernel: Annotated[str, about("variant and layout that were timed; empty if none was")]
    group: Annotated[
        int | None, about("query heads per KV head that were timed; null if none were")
    ]
    context: Annotated[
        int | None, about("tokens of every sequence that were timed; null if none were")
    ]


@dataclass(frozen=True, slots=True)
class Drafted:
    """A step that verifies drafts beside a plain step, at one context. `tokens`, `times` and `pays`
    include the cost of drafting, if it is given.
    """

    context: Annotated[int, about("tokens of every sequence")]
    attention: Annotated[Queries, about("attention in the step that verifies")]
    plain: Annotated[Range, about("seconds: one plain step")]
    step: Annotated[Range, about("seconds: one step that verifies, without the drafting itself")]
    cost: Annotated[
        float | None, about("seconds: the most that drafting for a step costs; null: not given")
    ]
    before: Annotated[Range, about("tokens per second: of the batch, by plain steps")]
    tokens: Annotated[Range, about("tokens per second: of the batch, with drafts")]
    times: Annotated[Range, about("ratio: tokens per second with drafts over those without")]
    spare: Annotated[
        Range,
        about(
            "seconds: the most that drafting for a step may cost so that it pays; below 0: it"
            " cannot pay"
        ),
    ]
    share: Annotated[float, about("share of a plain step that drafting may cost and surely pay")]
    pays: Annotated[
        str,
        about(
            "whether it pays; if: it pays where drafting costs less than the low end of `spare`",
            *PAYS,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring contexts with the same verdict."""

    pays: Annotated[str, about("the verdict at each of these contexts", *PAYS)]
    first: Annotated[int, about("tokens: the shortest of these contexts")]
    last: Annotated[int, about("tokens: the longest of these contexts")]
    spare: Annotated[float, about("seconds: that drafting may cost at any of these contexts")]


@dataclass(frozen=True, slots=True)
class DraftedFormat:
    """Drafting with one format of the cache."""

    dtype: Annotated[str, about("number format of K and V")]
    rows: Annotated[tuple[Drafted, ...], about("by context")]
    spans: Annotated[tuple[Span, ...], about("contexts with the same verdict, the shortest first")]


@dataclass(frozen=True, slots=True)
class Drafting:
    """Speculative decoding: drafted tokens are verified together with the newest token in one
    step.
    """

    drafts: Annotated[int, about("tokens that are drafted for each sequence and step")]
    queries: Annotated[int, about("queries of a sequence in a step that verifies: drafts + 1")]
    accept: Annotated[
        tuple[float, ...],
        about("share of the steps that accept the first draft, the second draft, and so on"),
    ]
    powers: Annotated[bool, about("whether one share was given, so that the shares are its powers")]
    yields: Annotated[
        float, about("tokens: that a step yields per sequence on average; the first is not a draft")
    ]
    read: Annotated[int, about("bytes: of weights that a verifying step reads")]
    parameters: Annotated[int, about("weights that each token is multiplied with")]
    reading: Annotated[float, about("seconds: reading these weights")]
    float32: Annotated[
        float | None, about("seconds: multiplying with them in float32; null: the peak is unknown")
    ]
    narrow: Annotated[
        float | None,
        about("seconds: multiplying with them as bytes or bf16 at best; null: the peak is unknown"),
    ]
    limit: Annotated[
        str,
        about(
            "what takes longer for the weights: to read them, or to multiply in float32; if it"
            " is to multiply, ranges go from `narrow` or reading up to float32",
            READS,
            ARITHMETIC,
        ),
    ]
    formats: Annotated[tuple[DraftedFormat, ...], about("by number format of the cache")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained(Printed):
    """What limits a model's decoding here: by arithmetic, and by the rates of the kernels on this
    machine.
    """

    model: Annotated[str, about("its name")]
    source: Annotated[str, about("where its geometry comes from")]
    max_context: Annotated[int, about("tokens: its longest context")]
    decoder: Annotated[Decoder, about("its geometry, at that context")]
    weights: Annotated[Weights | None, about("of the model; null if unknown")]
    read: Annotated[int | None, about("bytes: of weights that a step reads; null if unknown")]
    experts: Annotated[
        float,
        about("ratio: experts of a layer that a step uses on average; 0: the model has no experts"),
    ]
    why: Annotated[str, about("why the weights are unknown; else empty")]
    machine: Annotated[str, about("this machine, or the run that was named")]
    threads: Annotated[int, about("threads that read")]
    gbps: Annotated[float | None, about("GB/s: plain reads of memory; null if unknown")]
    low: Annotated[float | None, about("GB/s: lower end of its interval")]
    high: Annotated[float | None, about("GB/s: upper end of its interval")]
    best_gbps: Annotated[
        float | None, about("GB/s: reads of memory in the fastest form; null if unknown")
    ]
    gflops: Annotated[float | None, about("GFLOP/s: multiply-adds; null if unknown")]
    memory: Annotated[int | None, about("bytes: memory of the machine; null if unknown")]
    base: Annotated[str, about("the 16-bit format that the other formats are compared with")]
    l3: Annotated[
        int | None,
        about("tokens: the largest context whose slice in `base` fits L3; null: no L3 is known"),
    ]
    formats: Annotated[tuple[Format, ...], about("the number formats of the cache")]
    rows: Annotated[tuple[Row, ...], about("by context, each twice the one before")]
    measured: Annotated[Measured | None, about("what --measured gave; else null")]
    pairs: Annotated[
        tuple[Beside, ...], about("pairs that --dtype gave, each beside its two formats")
    ] = ()
    lines: Annotated[tuple[str, ...], about("a summary of five lines in plain words")] = ()
    server: Annotated[Server | None, about("what --cores and --bandwidth gave; else null")] = None
    engine: Annotated[Engine | None, about("what --engine gave; else null")] = None
    drafting: Annotated[Drafting | None, about("what --draft gave; else null")] = None

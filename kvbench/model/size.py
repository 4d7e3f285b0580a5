"""What `kvbench size` is asked, and what it finds. Counts are bytes unless a name says
otherwise.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import UNSET, UnsetType

from kvbench.model.annotated import Printed, about
from kvbench.model.point import K_SCALES, TOKEN
from kvbench.model.scores import NONE, SINKS


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model whose cache is to be sized. Its first `ephemeral` layers belong to an encoder."""

    model: Annotated[str, about("its name; empty if the geometry was given")]
    layers: Annotated[int, about("number of layers")]
    q_heads: Annotated[int, about("query heads")]
    kv_heads: Annotated[int, about("KV heads")]
    head_dim: Annotated[int, about("elements of a row")]
    context: Annotated[int, about("tokens that every sequence holds")]
    batch: Annotated[int, about("sequences")]
    dtype: Annotated[str, about("number format of K and V")]
    scale: Annotated[str, about("number format of the scales, if there are any")]
    layout: Annotated[str, about("layout of the cache")]
    inner: Annotated[str, about("order of rows inside a block of a paged cache")]
    block_tokens: Annotated[int, about("tokens of a block of a paged cache")]
    window: Annotated[int, about("tokens that a sliding layer attends to; 0: no layer slides")] = 0
    window_every: Annotated[
        int, about("in each set of this many layers the last attends to everything; 0: none does")
    ] = 0
    ephemeral: Annotated[int, about("layers whose K and V are not kept")] = 0
    capacity: Annotated[
        int | None,
        about("tokens that each layer has room for; null: the tokens that it attends to"),
    ] = None
    pad: Annotated[
        int | None, about("bytes: of padding after each head's plane; null: the library's choice")
    ] = None
    latent: Annotated[
        int, about("elements of a K row that also serve as V; 0: V has rows of its own")
    ] = 0

    v_dim: Annotated[int, about("elements of a row of V; 0: those of a row of K")] = 0
    k_scale: Annotated[
        str, about("what shares a scale of K, if the dtype has scales", *K_SCALES)
    ] = TOKEN
    sinks: Annotated[str, about("whether every query head has a sink: heads or none", *SINKS)] = (
        NONE
    )
    softcap: Annotated[float, about("absolute: cap of the scores; 0: none")] = 0.0

    @property
    def sides(self) -> int:
        """Rows of a token in a KV head: one of K and one of V, or one that is both."""
        return 1 if self.latent else 2

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.q_heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers with the same window and size."""

    count: Annotated[int, about("number of layers")]
    window: Annotated[int, about("tokens that they attend to; 0: all")]
    held: Annotated[int, about("tokens of a sequence that each layer holds")]
    capacity: Annotated[int, about("tokens that each layer has room for")]
    read: Annotated[int, about("tokens of a sequence that a decode reads")]
    bytes: Annotated[int, about("bytes: held by one layer, all sequences")]


@dataclass(frozen=True, slots=True)
class Side:
    """The K part of the cache, or the V part."""

    dtype: Annotated[str, about("its number format")]
    width: Annotated[int, about("elements of a row")]
    bytes_per_token: Annotated[int, about("bytes: one token of one sequence in one layer")]
    bytes: Annotated[int, about("bytes: all tokens that are held, all layers and sequences")]


@dataclass(frozen=True, slots=True)
class Allocated:
    """The memory that the library takes for all layers."""

    rows: Annotated[int, about("bytes: elements of the tokens that are held")]
    scales: Annotated[int, about("bytes: their scales")]
    unused: Annotated[int, about("bytes: room for tokens that are not held yet")]
    block_rounding: Annotated[int, about("bytes: of last blocks, past the capacity")]
    row_padding: Annotated[int, about("bytes: after rows, up to full cache lines")]
    head_padding: Annotated[int, about("bytes: between heads")]
    line_rounding: Annotated[int, about("bytes: after planes, up to full cache lines")]
    total: Annotated[int, about("bytes: the sum of the above")]
    page_rounding: Annotated[int, about("bytes: after the total, up to full pages")]
    mapped: Annotated[int, about("bytes: total plus page_rounding")]
    page_bytes: Annotated[int, about("bytes: one page")]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a paged cache."""

    tokens: Annotated[int, about("tokens of a block")]
    bytes: Annotated[int, about("bytes: K, V and scales of a block, in one layer")]
    per_layer: Annotated[
        int, about("blocks of all sequences in one of the layers that attend to most")
    ]
    table_bytes: Annotated[
        int, about("bytes: the page table that all layers share; not part of any other number")
    ]


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """Layers whose K and V are not kept."""

    layers: Annotated[int, about("number of layers")]
    persistent: Annotated[int, about("bytes: kept, always 0")]
    passing: Annotated[int, about("bytes: one layer while it runs, all sequences")]


@dataclass(frozen=True, slots=True)
class Rung:
    """The same model with another number of KV heads."""

    name: Annotated[str, about("MHA, GQA or MQA")]
    kv_heads: Annotated[int, about("KV heads")]
    group: Annotated[int, about("query heads on each KV head")]
    bytes: Annotated[int, about("bytes: K, V and scales, as `bytes` of the model")]
    bytes_per_token: Annotated[int, about("bytes: one token of one sequence in all layers")]
    ai: Annotated[float, about("FLOP per byte: arithmetic intensity of a decode")]
    own: Annotated[bool, about("whether this is the model itself")]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Many users on several copies of the model."""

    users: Annotated[int, about("sequences of each replica")]
    replicas: Annotated[int, about("copies of the model")]
    bytes_per_user: Annotated[int, about("bytes: one sequence")]
    bytes_per_replica: Annotated[
        int, about("bytes: its sequences, and the weights if they are given")
    ]
    bytes: Annotated[int, about("bytes: all replicas")]
    weights: Annotated[int | None, about("bytes: weights of one copy; null if not given")]


@dataclass(frozen=True, slots=True)
class Reserved:
    """The memory that sequences of several lengths take, stored in one of two ways."""

    bytes: Annotated[float, about("bytes: allocated for a sequence, on average")]
    waste: Annotated[float, about("share of these bytes that hold no token, padding included")]
    padding: Annotated[float, about("share of these bytes that can never hold a token")]
    sequences: Annotated[
        int | None, about("sequences that fit in the budget; null without a budget")
    ]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Sequences of several lengths, stored in two ways."""

    lengths: Annotated[str, about("as they were asked for")]
    mean: Annotated[float, about("tokens: of a sequence, on average")]
    block_tokens: Annotated[int, about("tokens of a block")]
    contiguous: Annotated[Reserved, about("one cache per sequence, with room for the longest")]
    paged: Annotated[Reserved, about("only the blocks of a pool that each sequence needs")]


@dataclass(frozen=True, slots=True)
class Admission:
    """What fits in a given memory."""

    budget: Annotated[int | None, about("bytes: that memory; null if not given")]
    tokens: Annotated[
        int | None,
        about("tokens of one sequence that fit; null without a budget, or if there is no limit"),
    ]
    sequences: Annotated[
        int | None, about("full sequences that fit; null without a budget, or if nothing is held")
    ]
    reservation: Annotated[
        Reservation | None, about("sequences of several lengths; null if none are given")
    ]


@dataclass(frozen=True, slots=True)
class Level:
    """All caches of one level that serve the threads."""

    level: Annotated[int, about("1, 2, 3")]
    capacity: Annotated[int, about("bytes: all caches of that level that serve these CPUs")]
    holds: Annotated[
        int, about("bytes: the largest footprint that they hold, split evenly over the threads")
    ]
    fits: Annotated[bool, about("whether they hold the slice")]
    context: Annotated[
        int | None, about("most tokens at which a layer's slice fits; null: any number fits")
    ]
    gbps: Annotated[float | None, about("GB/s: the best read of that level; null if not measured")]


@dataclass(frozen=True, slots=True)
class Fit:
    """The cache level that holds the slice of a layer, in the words of kvbench.regime."""

    machine: Annotated[str, about("this machine, or the path that was named")]
    cpus: Annotated[tuple[int, ...], about("one thread runs on each")]
    slice_bytes: Annotated[
        int,
        about("bytes: that a decode walks in one of the layers that attend to most, with padding"),
    ]
    word: Annotated[
        str, about("L1, L2, L3, DRAM, mixed, unknown; empty if no layer keeps anything")
    ]
    reason: Annotated[str, about("the reason, as a word")]
    walked: Annotated[
        float, about("bytes: compared with limit, of one thread or of all; 0 if no size decides")
    ]
    limit: Annotated[float, about("bytes: the limit that the reason is about")]
    levels: Annotated[tuple[Level, ...], about("of the caches that serve these CPUs")]


@dataclass(frozen=True, slots=True)
class Bound:
    """How fast steps can be: at the rate of a measured decode; or at most, if a step only read at
    the best rate.
    """

    bytes: Annotated[int, about("bytes: that a step reads")]
    level: Annotated[
        str,
        about("level that holds them: L1, L2, L3, DRAM, mixed, unknown; empty if nothing is read"),
    ]
    footprint: Annotated[int | None, about("bytes: walked by the measurement; null if unknown")] = (
        None
    )
    gbps: Annotated[
        float | None, about("GB/s: of the measurement, a decode with its query and output")
    ] = None
    tokens: Annotated[
        float | None, about("tokens per second: of the whole batch; null if unknown")
    ] = None
    low: Annotated[
        float | None, about("tokens per second: from the low end of the reads; null if unknown")
    ] = None
    high: Annotated[
        float | None, about("tokens per second: from the high end of the reads; null if unknown")
    ] = None
    reason: Annotated[str, about("why it is unknown; else empty")] = ""
    decode: Annotated[str, about("the point whose decode was measured; empty: the best read")] = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """Limits of the rate, without the weights and with them."""

    kv: Annotated[Bound, about("reading the cache alone")]
    weights: Annotated[Bound | None, about("reading the weights too; null if they are not given")]


@dataclass(frozen=True, slots=True)
class Buffer:
    name: Annotated[str, about("what it holds")]
    kind: Annotated[
        str, about("how long it must be kept", "input", "persistent", "scratch", "output")
    ]
    offset: Annotated[int, about("bytes: its start")]
    end: Annotated[int, about("bytes: its end")]
    size: Annotated[int, about("bytes: its size")]
    canary: Annotated[int, about("bytes: a known pattern after it")]
    shape: Annotated[tuple[int, ...], about("its dimensions")]
    about: Annotated[str, about("where its size comes from")]


@dataclass(frozen=True, slots=True)
class KindBytes:
    """The memory that all buffers of a kind take."""

    bytes: Annotated[int, about("bytes: these buffers")]
    share: Annotated[float, about("share of the total")]


@dataclass(frozen=True, slots=True)
class ArenaMap:
    """The position of each buffer of a decoder."""

    model: Annotated[str, about("its name")]
    context: Annotated[int, about("tokens")]
    dtype: Annotated[str, about("number format of the cache")]
    align: Annotated[int, about("bytes: every buffer begins at a multiple of it")]
    total: Annotated[int, about("bytes: everything, with gaps and canaries")]
    kinds: Annotated[
        dict[str, KindBytes], about("by kind of buffer, and between for gaps and canaries")
    ]
    buffers: Annotated[tuple[Buffer, ...], about("in the order of their offsets")]

    def buffer(self, name: str) -> Buffer:
        return next(buffer for buffer in self.buffers if buffer.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size(Printed):
    """The memory that the cache of a decoder takes."""

    decoder: Annotated[Decoder, about("what was asked")]
    formula: Annotated[str, about("the bytes as a product of numbers")]
    bytes: Annotated[
        int, about("bytes: K, V and scales of the held tokens, all layers and sequences")
    ]
    bytes_per_token: Annotated[int, about("bytes: one token of one sequence in all layers")]
    bytes_per_next_token: Annotated[
        int, about("bytes: that the cache grows by for one more token of a sequence")
    ]
    bytes_per_layer: Annotated[
        int, about("bytes: one of the layers that attend to most, all sequences")
    ]
    bytes_per_layer_side: Annotated[int, about("bytes: K in that layer; V: see `sides`")]
    sides: Annotated[tuple[Side, ...], about("the K part and the V part")]
    streamed: Annotated[
        int, about("bytes: K, V and scales that one decode step reads, all layers and sequences")
    ]
    scale_share: Annotated[float, about("share of the rows' bytes that the scales add")]
    ai: Annotated[float, about("FLOP per byte: arithmetic intensity of a decode, 2 G / b")]
    layers: Annotated[tuple[Layers, ...], about("groups of equal layers, without ephemeral ones")]
    ephemeral: Annotated[
        Ephemeral, about("layers of an encoder: their K and V are not kept after the layer has run")
    ]
    allocated: Annotated[Allocated, about("memory that the library takes for all layers")]
    blocks: Annotated[Blocks | None, about("blocks of a paged cache; else null")]
    ladder: Annotated[tuple[Rung, ...], about("the same model with other numbers of KV heads")]
    fleet: Annotated[Fleet, about("many users on several copies of the model")]
    admission: Annotated[Admission, about("what fits in a given memory")]
    fit: Annotated[Fit, about("the cache level that holds the slice of a layer")]
    tokens_per_second: Annotated[
        Rates,
        about("at the rate of the same decode if measured; else an upper limit from the best read"),
    ]
    notes: Annotated[tuple[str, ...], about("remarks")]
    map: Annotated[
        ArenaMap | UnsetType, about("with --map: the position of each buffer of a decoder")
    ] = UNSET
